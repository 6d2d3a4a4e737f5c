//! A batch of records, as the threads that encode get it.

use std::sync::Arc;

use super::error::Place;
use crate::parquet::{Kept, Meaning, Rows};

/// The size at which a batch is complete, in bytes.
pub(super) const BATCH: usize = 1 << 20;

/// What is to be taken out of records.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'a> {
    /// The keys that lead to the text, from the outermost one.
    pub(super) field: &'a [String],
    /// The keys that lead to the document's name.
    pub(super) id: Option<&'a [String]>,
    /// The most bytes that a record may have.
    pub(super) limit: usize,
    /// The name of a column that is made, if the other columns of a table are kept beside it.
    pub(super) keep_beside: Option<&'a str>,
}

/// Whole records of a shard.
pub(super) struct Batch {
    /// The place of the first record.
    pub(super) place: Place,
    pub(super) content: Content,
}

/// What records are.
pub(super) enum Content {
    /// Bytes, in which each has to be found.
    Bytes(Vec<u8>),
    /// Rows of a table.
    Rows(Table),
}

/// Rows of the columns that are wanted. Each of these may have a row more, which is not complete.
#[derive(Default)]
pub(super) struct Table {
    /// Where the page of each row's text begins in the file.
    pub(super) pages: Vec<u64>,
    pub(super) text: Rows,
    /// The names of documents, and what these are.
    pub(super) id: Option<(Meaning, Rows)>,
    pub(super) kept: Option<Arc<KeptRows>>,
}

/// Rows of the columns that are kept.
pub(super) struct KeptRows {
    pub(super) columns: Arc<[Kept]>,
    /// Those of each column.
    pub(super) rows: Vec<Rows>,
}
