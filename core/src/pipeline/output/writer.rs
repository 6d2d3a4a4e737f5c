//! What the formats have in common: where the files of a shard are made, and how documents get into them.

use std::io;
use std::path::Path;

use super::unfinished::Unfinished;
use crate::pipeline::documents::Document;
use crate::tokens::TokenId;

/// The files of one shard in one format.
pub(in crate::pipeline) trait Writer: Send {
    /// Appends a document.
    fn write(&mut self, tokens: &[TokenId], document: &Document) -> io::Result<()>;

    /// Completes the files and returns them.
    fn finish(self: Box<Self>) -> io::Result<Vec<Unfinished>>;
}

/// Where the files of a shard are made.
pub(in crate::pipeline) struct Target<'a> {
    /// The folder of unfinished files.
    pub(in crate::pipeline) folder: &'a Path,
    /// The index of the shard.
    pub(in crate::pipeline) index: usize,
    /// The name of the shard.
    pub(in crate::pipeline) name: &'a str,
    /// The file that is read.
    pub(in crate::pipeline) source: &'a Path,
}

impl Target<'_> {
    /// Begins the file of the shard's name and this extension.
    pub(super) fn create(&self, extension: &str) -> io::Result<Unfinished> {
        let path = self.folder.join(format!("{}.{extension}", self.index));
        Unfinished::create(path, format!("{}.{extension}", self.name))
    }
}
