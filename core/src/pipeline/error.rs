//! What can go wrong with shards, and where.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::memory::OutOfMemory;
use crate::{Stopped, deflate, msgpack, parquet, tokens};

/// Why a shard, a record or a result failed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The system refused to read or write.
    Io {
        /// The system's message.
        message: String,
        /// The system's number of the error (`errno`), if it has one.
        code: Option<i32>,
    },
    /// A name or a setting that cannot work.
    Invalid {
        /// What is wrong with it.
        message: String,
    },
    /// The compressed data is invalid or truncated; the rest of the shard cannot be read.
    Compression {
        /// What is wrong, and where in the file.
        message: String,
    },
    /// The record is not what its format demands.
    Malformed {
        /// What is wrong with it.
        message: String,
    },
    /// The record has no such field, or null there.
    MissingField,
    /// The field is not a string.
    NotText {
        /// What it is.
        found: &'static str,
    },
    /// The text is not UTF-8.
    NotUtf8,
    /// The record is longer than the limit.
    TooLong {
        /// The limit in bytes.
        limit: usize,
        /// Whether the records behind it cannot be found.
        ends_shard: bool,
    },
    /// The text could not be encoded.
    Tokens(tokens::Error),
    /// There is no memory for the work.
    OutOfMemory,
    /// The operation was interrupted.
    Stopped,
}

/// A failure, the shard it belongs to, and its place there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// What went wrong.
    pub kind: ErrorKind,
    /// The file.
    pub path: PathBuf,
    /// The record, if it is one that failed.
    pub record: Option<Place>,
}

/// The place of a record in its shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The number of the record, the first being 1. In formats of lines, the number of the line.
    pub number: u64,
    /// The offset of its first byte in the decompressed data; of a row of a table, that of its page in the file.
    pub offset: u64,
    /// Whether the record is a row of a table.
    pub is_page: bool,
}

impl Error {
    pub(super) fn new(path: &Path, kind: impl Into<ErrorKind>) -> Self {
        Self { kind: kind.into(), path: path.to_owned(), record: None }
    }

    pub(super) fn in_record(path: &Path, place: Place, kind: impl Into<ErrorKind>) -> Self {
        Self { record: Some(place), ..Self::new(path, kind) }
    }

    /// Whether the input is at fault, so that other records may still be read.
    pub(super) fn concerns_input(&self) -> bool {
        use ErrorKind as E;
        !matches!(self.kind, E::Invalid { .. } | E::Io { .. } | E::OutOfMemory | E::Stopped)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.path.display())?;
        match self.record {
            None => {}
            Some(Place { number, offset, is_page: false }) => {
                write!(f, "record {number} (at byte {offset} of the decompressed data): ")?;
            }
            Some(Place { number, offset, is_page: true }) => {
                write!(f, "record {number} (in the page at byte {offset} of the file): ")?;
            }
        }
        self.kind.fmt(f)
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { message, .. }
            | Self::Invalid { message }
            | Self::Compression { message }
            | Self::Malformed { message } => f.write_str(message),
            Self::MissingField => f.write_str("the record does not have the field"),
            Self::NotText { found } => write!(f, "the field is not a string but {found}"),
            Self::NotUtf8 => f.write_str("the text is not valid UTF-8"),
            Self::TooLong { limit, ends_shard } => {
                write!(f, "the record is longer than {limit} bytes, the limit")?;
                if *ends_shard { f.write_str("; the rest of the shard is not read") } else { Ok(()) }
            }
            Self::Tokens(error) => error.fmt(f),
            Self::OutOfMemory => OutOfMemory.fmt(f),
            Self::Stopped => Stopped.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

impl From<io::Error> for ErrorKind {
    fn from(error: io::Error) -> Self {
        match error.get_ref() {
            Some(inner) if inner.is::<Stopped>() => return Self::Stopped,
            Some(inner) if inner.is::<OutOfMemory>() => return Self::OutOfMemory,
            _ => {}
        }
        Self::Io { message: error.to_string(), code: error.raw_os_error() }
    }
}

impl From<Stopped> for ErrorKind {
    fn from(_: Stopped) -> Self {
        Self::Stopped
    }
}

impl From<OutOfMemory> for ErrorKind {
    fn from(_: OutOfMemory) -> Self {
        Self::OutOfMemory
    }
}

impl From<deflate::Error> for ErrorKind {
    fn from(error: deflate::Error) -> Self {
        match error.kind {
            deflate::ErrorKind::Stopped => Self::Stopped,
            deflate::ErrorKind::Mem => Self::OutOfMemory,
            deflate::ErrorKind::Buf | deflate::ErrorKind::GzipFooter => {
                Self::Compression { message: format!("the gzip data ends early, at byte {}", error.offset) }
            }
            _ => Self::Compression { message: format!("gzip: {} at byte {}", error.message(), error.offset) },
        }
    }
}

impl From<msgpack::Error> for ErrorKind {
    fn from(error: msgpack::Error) -> Self {
        match error.kind {
            msgpack::ErrorKind::Stopped => Self::Stopped,
            msgpack::ErrorKind::OutOfMemory => Self::OutOfMemory,
            _ => Self::Malformed { message: format!("MessagePack: {error}") },
        }
    }
}

impl From<tokens::Error> for ErrorKind {
    fn from(error: tokens::Error) -> Self {
        match error.kind {
            tokens::ErrorKind::Stopped => Self::Stopped,
            tokens::ErrorKind::OutOfMemory => Self::OutOfMemory,
            _ => Self::Tokens(error),
        }
    }
}

impl From<parquet::Error> for ErrorKind {
    fn from(error: parquet::Error) -> Self {
        match error {
            parquet::Error::Stopped => Self::Stopped,
            parquet::Error::OutOfMemory => Self::OutOfMemory,
            parquet::Error::Io(error) => error.into(),
            error => Self::Malformed { message: format!("Parquet: {error}") },
        }
    }
}
