//! The errors of this module.

use std::fmt;

use crate::Stopped;
use crate::memory::OutOfMemory;

/// Why a text could not be cut, measured or stored.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The task was stopped.
    Stopped,
    /// Memory ran out.
    OutOfMemory,
    /// A piece is not UTF-8: its own bytes are not, or it begins or ends inside a character.
    NotUtf8 {
        /// Number of the piece.
        piece: usize,
        /// The offset at which it begins.
        start: usize,
        /// The offset in the text of the first byte that is not part of a character.
        at: usize,
        /// The piece itself.
        bytes: Box<[u8]>,
    },
    /// An offset is negative or lies after the end of the text.
    OffsetOutside {
        /// Number of the offset.
        index: usize,
        /// The offset.
        offset: i64,
        /// Length of the text.
        end: usize,
    },
    /// An offset is smaller than the one before it.
    OffsetDecreases {
        /// Number of the offset.
        index: usize,
        /// The offset.
        offset: i64,
        /// The one before it.
        before: usize,
    },
    /// A record has more or fewer fields than the first one.
    FieldCount {
        /// Number of the record.
        record: usize,
        /// Offset of its first byte.
        at: usize,
        /// Its fields.
        found: usize,
        /// The fields of the first record.
        expected: usize,
    },
    /// A piece is too long for an arena, whose positions have 32 bits.
    TooLong {
        /// Number of the piece.
        piece: usize,
        /// Its length in bytes.
        bytes: usize,
    },
}

impl From<Stopped> for Error {
    fn from(_: Stopped) -> Self {
        Self::Stopped
    }
}

impl From<OutOfMemory> for Error {
    fn from(_: OutOfMemory) -> Self {
        Self::OutOfMemory
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped => Stopped.fmt(f),
            Self::OutOfMemory => OutOfMemory.fmt(f),
            Self::NotUtf8 { piece, at, .. } => write!(f, "piece {piece} is not UTF-8 at offset {at}"),
            Self::OffsetOutside { index, offset, end } => {
                write!(f, "offset {index} is {offset}, not in 0..={end}")
            }
            Self::OffsetDecreases { index, offset, before } => {
                write!(f, "offset {index} is {offset}, less than the one before it, {before}")
            }
            Self::FieldCount { record, at, found, expected } => {
                let plural = if *found == 1 { "" } else { "s" };
                write!(
                    f,
                    "record {record} at offset {at} has {found} field{plural}, the first one has {expected}"
                )
            }
            Self::TooLong { piece, bytes } => {
                write!(f, "piece {piece} has {bytes} bytes, more than an arena can hold")
            }
        }
    }
}

impl std::error::Error for Error {}
