//! The errors of this module.

use std::fmt;
use std::io;

use crate::Stopped;
use crate::memory::OutOfMemory;

/// What is wrong with a file.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// It is not what the format demands.
    Malformed {
        /// What is wrong.
        message: &'static str,
        /// Where, in bytes from the beginning of the file.
        offset: u64,
    },
    /// It uses what is not supported.
    Unsupported {
        /// What that is.
        message: String,
    },
    /// The system refused to read or write.
    Io(io::Error),
    /// Memory ran out.
    OutOfMemory,
    /// The task was stopped.
    Stopped,
}

impl Error {
    pub(super) fn unsupported(message: impl Into<String>) -> Self {
        Self::Unsupported { message: message.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed { message, offset } => write!(f, "{message}, at byte {offset} of the file"),
            Self::Unsupported { message } => f.write_str(message),
            Self::Io(error) => error.fmt(f),
            Self::OutOfMemory => OutOfMemory.fmt(f),
            Self::Stopped => Stopped.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<OutOfMemory> for Error {
    fn from(_: OutOfMemory) -> Self {
        Self::OutOfMemory
    }
}

impl From<Stopped> for Error {
    fn from(_: Stopped) -> Self {
        Self::Stopped
    }
}

/// What is wrong with a part of a file, whose caller knows where that is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fault {
    /// It is not what the format demands.
    Wrong(&'static str),
    /// It uses what is not supported.
    Unsupported(String),
    /// Memory ran out.
    OutOfMemory,
    /// The task was stopped.
    Stopped,
}

pub(super) const OTHER_SIZE: Fault = Fault::Wrong("a page has another size than its header says");

impl Fault {
    /// The error of what stands at this place of the file.
    pub(super) fn at(self, offset: u64) -> Error {
        match self {
            Self::Wrong(message) => Error::Malformed { message, offset },
            Self::Unsupported(message) => Error::Unsupported { message },
            Self::OutOfMemory => Error::OutOfMemory,
            Self::Stopped => Error::Stopped,
        }
    }
}

impl From<OutOfMemory> for Fault {
    fn from(_: OutOfMemory) -> Self {
        Self::OutOfMemory
    }
}

impl From<Stopped> for Fault {
    fn from(_: Stopped) -> Self {
        Self::Stopped
    }
}
