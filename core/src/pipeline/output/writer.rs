//! What the formats have in common: where the files of a shard are made, and how documents get into them.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use super::unfinished::{Complete, Unfinished};
use crate::Task;
use crate::pipeline::batch::KeptRows;
use crate::pipeline::documents::Document;
use crate::tokens::TokenId;

/// The files of one shard in one format.
pub(in crate::pipeline) trait Writer: Send {
    /// Is told of the rows that the next documents come from, before the first of them. Called for a shard that keeps
    /// columns of a table, even if it has no rows.
    fn keep(&mut self, _: &Arc<KeptRows>) -> io::Result<()> {
        Ok(())
    }

    /// Appends a document.
    fn write(&mut self, tokens: &[TokenId], document: &Document, task: &Task<'_>) -> io::Result<()>;

    /// Completes the files and returns them.
    fn finish(self: Box<Self>) -> io::Result<Vec<Complete>>;
}

/// Where the files of a shard are made.
#[derive(Clone)]
pub(in crate::pipeline) struct Target {
    /// The folder of unfinished files.
    pub(in crate::pipeline) folder: PathBuf,
    /// The index of the shard.
    pub(in crate::pipeline) index: usize,
    /// The name of the shard.
    pub(in crate::pipeline) name: String,
    /// The file that is read.
    pub(in crate::pipeline) source: PathBuf,
}

impl Target {
    /// Begins the file of the shard's name and this extension.
    pub(super) fn create(&self, extension: &str) -> io::Result<Unfinished> {
        self.create_named(extension, format!("{}.{extension}", self.name))
    }

    /// Begins a file in the folder of the shard's name.
    pub(super) fn create_below(&self, file: &str) -> io::Result<Unfinished> {
        self.create_named(file, format!("{}/{file}", self.name))
    }

    fn create_named(&self, kind: &str, name: String) -> io::Result<Unfinished> {
        Unfinished::create(self.folder.join(format!("{}.{kind}", self.index)), name)
    }
}
