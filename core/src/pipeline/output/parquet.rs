//! Parquet: `NAME.parquet`.
//!
//! A row is a document. Its tokens are in the column `input_ids`, the name by which `transformers` and `datasets` know
//! them: lists of integers of 32 bits without a sign. Of a shard that is a table itself, the columns that are in no group
//! are kept, but that of the texts; of others, the documents' names are in the column `id`, texts, of which those that
//! have none are missing. Pages are compressed with Zstandard.

use std::io;
use std::sync::Arc;

use super::unfinished::{Complete, Unfinished};
use super::writer::{Target, Writer};
use crate::memory::OutOfMemory;
use crate::parquet::{self, Error, Kept};
use crate::pipeline::batch::KeptRows;
use crate::pipeline::documents::Document;
use crate::tokens::TokenId;
use crate::{Stopped, Task};

/// The column of tokens.
pub(super) const COLUMN: &str = "input_ids";

/// That of the names of documents that come from no table.
const NAMES: &str = "id";

pub(super) struct Files {
    file: File,
    /// The rows that the next documents come from, if they come from a table.
    kept: Option<Arc<KeptRows>>,
}

/// The file, whose columns are known when the first documents come.
enum File {
    Begun(Unfinished),
    Open(Box<parquet::Writer<Unfinished>>),
    /// An error has occurred.
    Lost,
}

impl Files {
    pub(super) fn begin(target: &Target) -> io::Result<Self> {
        Ok(Self { file: File::Begun(target.create("parquet")?), kept: None })
    }

    fn open(&mut self) -> io::Result<&mut parquet::Writer<Unfinished>> {
        self.file = match std::mem::replace(&mut self.file, File::Lost) {
            File::Begun(file) => {
                let names = [Kept::text(NAMES)];
                let columns = self.kept.as_ref().map_or(&names[..], |kept| &kept.columns[..]);
                File::Open(Box::new(parquet::Writer::begin(file, columns, COLUMN).map_err(into_io)?))
            }
            file => file,
        };
        match &mut self.file {
            File::Open(writer) => Ok(writer),
            _ => Err(given_up()),
        }
    }
}

impl Writer for Files {
    fn keep(&mut self, kept: &Arc<KeptRows>) -> io::Result<()> {
        self.kept = Some(Arc::clone(kept));
        self.open().map(drop)
    }

    fn write(&mut self, tokens: &[TokenId], document: &Document, task: &Task<'_>) -> io::Result<()> {
        let kept = self.kept.clone();
        let writer = self.open()?;
        match kept {
            Some(kept) => writer.row(kept.rows.iter().map(|rows| rows.get(document.row)), tokens, task),
            None => writer.row([document.id.as_ref().map(String::as_bytes)], tokens, task),
        }
        .map_err(into_io)
    }

    fn finish(mut self: Box<Self>) -> io::Result<Vec<Complete>> {
        self.open()?;
        match self.file {
            File::Open(writer) => Ok(vec![writer.finish().map_err(into_io)?.complete()?]),
            File::Begun(_) | File::Lost => Err(given_up()),
        }
    }
}

fn into_io(error: Error) -> io::Error {
    match error {
        Error::Io(error) => error,
        Error::Stopped => io::Error::other(Stopped),
        Error::OutOfMemory => io::Error::other(OutOfMemory),
        error => io::Error::other(error),
    }
}

fn given_up() -> io::Error {
    io::Error::other("the file was given up after an error")
}
