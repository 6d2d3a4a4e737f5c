//! The records of a shard, in batches.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::batch::{Batch, Wanted};
use super::error::Error;
use super::rows::RowReader;
use super::shard::Format;
use super::stream::Stream;
use crate::{Task, parquet};

/// A shard that is read.
pub(super) enum Records {
    /// Records that follow each other.
    Stream(Box<Stream>),
    /// Rows of a table.
    Rows(Box<RowReader>),
    /// A table that cannot be opened, as this says, of so many bytes.
    Broken(Option<Error>, u64),
}

impl Records {
    /// Opens a shard. If the name does not tell its format, the first bytes do.
    pub(super) fn open(
        path: &Path,
        format: Option<Format>,
        wanted: Wanted<'_>,
        task: &Task<'_>,
    ) -> Result<Self, Error> {
        let is_table = match format {
            None => begins_a_table(path)?,
            Some(format) => format == Format::Parquet,
        };
        if !is_table {
            return Stream::open(path, format, wanted.limit, task).map(Box::new).map(Self::Stream);
        }
        match RowReader::open(path, wanted, task) {
            Ok(rows) => Ok(Self::Rows(Box::new(rows))),
            Err(error) if error.concerns_input() => {
                let size = path.metadata().map_or(0, |about| about.len());
                Ok(Self::Broken(Some(error), size))
            }
            Err(error) => Err(error),
        }
    }

    /// The format of the shard.
    pub(super) fn format(&self) -> Format {
        match self {
            Self::Stream(stream) => stream.format(),
            Self::Rows(_) | Self::Broken(..) => Format::Parquet,
        }
    }

    /// The number of bytes of the file that have been read.
    pub(super) fn read(&self) -> u64 {
        match self {
            Self::Stream(stream) => stream.read(),
            Self::Rows(rows) => rows.read(),
            Self::Broken(_, size) => *size,
        }
    }

    /// The next batch. After an error about a record, the next call goes on behind that record; if the rest
    /// cannot be read, the next call returns `None`.
    pub(super) fn next(&mut self, task: &Task<'_>) -> Result<Option<Batch>, Error> {
        match self {
            Self::Stream(stream) => stream.next(task),
            Self::Rows(rows) => rows.next(task),
            Self::Broken(error, _) => error.take().map_or(Ok(None), Err),
        }
    }
}

/// Whether a file begins as Parquet does.
fn begins_a_table(path: &Path) -> Result<bool, Error> {
    let mut magic = Vec::new();
    let file = File::open(path).map_err(|error| Error::new(path, error))?;
    let length = parquet::MAGIC.len() as u64;
    file.take(length).read_to_end(&mut magic).map_err(|error| Error::new(path, error))?;
    Ok(magic == parquet::MAGIC)
}
