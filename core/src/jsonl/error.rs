//! The errors of this module.

use std::fmt;

use crate::Stopped;
use crate::memory::OutOfMemory;

/// What is wrong with a line.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// It is not JSON.
    Syntax {
        /// The parser's message.
        message: String,
    },
    /// It is not UTF-8.
    NotUtf8,
    /// An escape `\uD800` to `\uDFFF` is not one of a pair, so the string has no UTF-8.
    LoneSurrogate,
    /// The record or a value is of another type than the operation needs.
    Unexpected {
        /// What the operation needs.
        wanted: &'static str,
        /// What it found.
        found: &'static str,
    },
    /// A wanted integer has more than 64 bits.
    IntegerTooLarge,
    /// It is longer than the limit, which this holds, in bytes.
    TooLong(usize),
    /// Memory ran out.
    OutOfMemory,
    /// The task was stopped.
    Stopped,
}

/// An error in the data, and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// What is wrong.
    pub kind: ErrorKind,
    /// The number of the line, the first being 1.
    pub line: u64,
    /// The offset of the line's first byte in the data.
    pub start: usize,
    /// The offset in the line of the byte in question.
    pub column: usize,
}

impl ErrorKind {
    /// As an error whose place is not known or does not matter.
    pub(super) const fn nowhere(self) -> Error {
        Error { kind: self, line: 0, start: 0, column: 0 }
    }
}

/// An error of the parser, which counts lines, of which there is one, and columns from 1.
pub(crate) fn syntax(error: &serde_json::Error) -> Error {
    let message = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let message = message.strip_suffix(&place).unwrap_or(&message).to_owned();
    Error { column: error.column().saturating_sub(1), ..ErrorKind::Syntax { message }.nowhere() }
}

impl From<Stopped> for Error {
    fn from(_: Stopped) -> Self {
        ErrorKind::Stopped.nowhere()
    }
}

impl From<OutOfMemory> for Error {
    fn from(_: OutOfMemory) -> Self {
        ErrorKind::OutOfMemory.nowhere()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)?;
        if matches!(self.kind, ErrorKind::OutOfMemory | ErrorKind::Stopped) {
            return Ok(());
        }
        write!(f, ": line {} column {} (byte {})", self.line, self.column + 1, self.start + self.column)
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax { message } => f.write_str(message),
            Self::NotUtf8 => f.write_str("the line is not valid UTF-8"),
            Self::LoneSurrogate => f.write_str("a surrogate that is not one of a pair"),
            Self::Unexpected { wanted, found } => write!(f, "expected {wanted}, found {found}"),
            Self::IntegerTooLarge => f.write_str("an integer of more than 64 bits"),
            Self::TooLong(limit) => write!(f, "the line is longer than {limit} bytes, the limit"),
            Self::OutOfMemory => OutOfMemory.fmt(f),
            Self::Stopped => Stopped.fmt(f),
        }
    }
}

impl std::error::Error for Error {}
