//! What all runs have in common.

use std::num::NonZero;
use std::thread;

use super::documents::{Extraction, OnError};
use super::model::Model;
use super::shard::Format;

/// How shards are read, and what encodes their texts.
#[derive(Debug)]
pub struct Settings {
    /// What encodes the texts.
    pub model: Model,
    /// The format of all shards; `None` if their names and contents tell it.
    pub format: Option<Format>,
    /// The keys that lead to the text of a record, from the outermost one.
    pub field: Vec<String>,
    /// The most bytes of a record, once decompressed; of a longer one an error is made.
    pub max_doc_bytes: usize,
    /// What to do with a record that fails.
    pub on_error: OnError,
    /// The most threads; 0 for one per processor.
    pub threads: usize,
}

impl Settings {
    /// The field `text` of records of at most 64 MiB, on all processors; the first error ends the run.
    pub fn new(model: Model) -> Self {
        Self {
            model,
            format: None,
            field: vec!["text".to_owned()],
            max_doc_bytes: 64 << 20,
            on_error: OnError::Fail,
            threads: 0,
        }
    }

    /// The number of threads.
    pub(super) fn thread_count(&self) -> usize {
        match self.threads {
            0 => thread::available_parallelism().map_or(1, NonZero::get),
            threads => threads,
        }
    }

    pub(super) fn extraction(&self) -> Extraction<'_> {
        Extraction {
            model: &self.model,
            field: &self.field,
            id: None,
            keep_beside: None,
            limit: self.max_doc_bytes,
            before: None,
            after: None,
            may_be_empty: true,
            on_error: self.on_error,
        }
    }
}
