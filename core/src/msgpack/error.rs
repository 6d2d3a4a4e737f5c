//! The errors of this module.

use std::fmt;

use crate::Stopped;
use crate::memory::OutOfMemory;

/// What is wrong with a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The input ends before the message does.
    Truncated,
    /// A byte that begins no value: 0xc1.
    Reserved(u8),
    /// Containers are nested deeper than allowed; holds the limit.
    TooDeep(usize),
    /// A string, binary, array, map or extension is longer than allowed.
    TooLong {
        /// What is too long: `"str"`, `"bin"`, `"array"`, `"map"` or `"ext"`.
        what: &'static str,
        /// The declared length.
        length: u64,
        /// The limit.
        limit: u64,
    },
    /// The payload of a timestamp is not 4, 8 or 12 bytes long; holds its length.
    Timestamp(usize),
    /// A message of 4 GiB or more cannot be indexed; holds its length.
    TooLarge(usize),
    /// A value is of another type than the operation needs.
    Unexpected {
        /// What the operation needs.
        wanted: &'static str,
        /// What it found.
        found: &'static str,
    },
    /// Memory ran out.
    OutOfMemory,
    /// The task was stopped.
    Stopped,
}

/// An error in a message, and its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Error {
    /// What is wrong.
    pub kind: ErrorKind,
    /// The offset at which the value in question begins.
    pub offset: usize,
}

impl Error {
    #[cold]
    pub(super) const fn new(kind: ErrorKind, offset: usize) -> Self {
        Self { kind, offset }
    }
}

impl From<Stopped> for Error {
    fn from(_: Stopped) -> Self {
        Self::new(ErrorKind::Stopped, 0)
    }
}

impl From<OutOfMemory> for Error {
    fn from(_: OutOfMemory) -> Self {
        Self::new(ErrorKind::OutOfMemory, 0)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            ErrorKind::Truncated => {
                write!(f, "incomplete input: the value at offset {} is cut off", self.offset)
            }
            ErrorKind::Reserved(byte) => write!(f, "invalid byte 0x{byte:02x} at offset {}", self.offset),
            ErrorKind::TooDeep(limit) => {
                write!(f, "more than {limit} levels of nesting at offset {}", self.offset)
            }
            ErrorKind::TooLong { what, length, limit } => {
                write!(f, "{length} exceeds max_{what}_len({limit}) at offset {}", self.offset)
            }
            ErrorKind::Timestamp(length) => {
                write!(f, "invalid timestamp data (length {length}) at offset {}", self.offset)
            }
            ErrorKind::TooLarge(length) => write!(f, "a message of {length} bytes is too large to index"),
            ErrorKind::Unexpected { wanted, found } => {
                write!(f, "expected {wanted} at offset {}, found {found}", self.offset)
            }
            ErrorKind::OutOfMemory => OutOfMemory.fmt(f),
            ErrorKind::Stopped => Stopped.fmt(f),
        }
    }
}

impl std::error::Error for Error {}
