//! What can go wrong with tokens.

use super::TokenId;
use crate::Stopped;
use crate::memory::OutOfMemory;
use std::fmt;

/// Why an operation on tokens failed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A token that the encoding does not have, and its index among the tokens given.
    UnknownToken {
        /// The token.
        token: TokenId,
        /// Its index in the list that was to be decoded.
        index: usize,
    },
    /// A byte of the text for which a custom vocabulary has no token.
    UnknownByte {
        /// The byte.
        byte: u8,
        /// Its offset in the text, in bytes.
        offset: usize,
    },
    /// The pattern of a custom encoding is not a valid regular expression.
    BadPattern {
        /// What the regular expression compiler says.
        message: String,
    },
    /// The pattern of a custom encoding gave up on the text (it backtracks too much).
    PatternFailed {
        /// What the regular expression engine says.
        message: String,
        /// Where in the text the search began, in bytes.
        offset: usize,
    },
    /// The ranks or special tokens of a custom encoding contradict each other.
    BadVocabulary {
        /// What is wrong, naming the token.
        message: String,
    },
    /// A model's tokenizer needs something that is not here.
    Unsupported {
        /// What it needs.
        missing: String,
    },
    /// A chunk may have fewer tokens than one character of the text.
    LimitTooSmall {
        /// The number of tokens of the character.
        needed: usize,
        /// Where it is in the text, in bytes.
        offset: usize,
    },
    /// The tokens of a text that goes on cannot be known.
    CannotStream {
        /// What of the tokenizer is in the way.
        reason: String,
    },
    /// The text of a stream is not UTF-8.
    InvalidUtf8 {
        /// Where the first invalid character begins, in bytes from the beginning of the text.
        offset: usize,
    },
    /// A stream would keep back more of its text than it may.
    KeptTooMuch {
        /// How much it may keep back, in bytes.
        limit: usize,
    },
    /// A stream whose text has ended got more.
    StreamEnded,
    /// There is no memory for what the operation makes.
    OutOfMemory,
    /// The operation was interrupted.
    Stopped,
}

/// A failed operation on tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// What went wrong.
    pub kind: ErrorKind,
}

impl Error {
    /// The same error, found in a part of the text that begins at `start`.
    pub(super) fn in_part_at(mut self, start: usize) -> Self {
        if let ErrorKind::UnknownByte { offset, .. } | ErrorKind::PatternFailed { offset, .. } =
            &mut self.kind
        {
            *offset += start;
        }
        self
    }
}

impl From<ErrorKind> for Error {
    fn from(kind: ErrorKind) -> Self {
        Self { kind }
    }
}

impl From<Stopped> for Error {
    fn from(_: Stopped) -> Self {
        ErrorKind::Stopped.into()
    }
}

impl From<OutOfMemory> for Error {
    fn from(_: OutOfMemory) -> Self {
        ErrorKind::OutOfMemory.into()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            ErrorKind::UnknownToken { token, index } => {
                write!(f, "invalid token for decoding: {token} (at index {index})")
            }
            ErrorKind::UnknownByte { byte, offset } => {
                write!(f, "the vocabulary has no token for the byte 0x{byte:02x} (at offset {offset})")
            }
            ErrorKind::BadPattern { message } => write!(f, "invalid pattern: {message}"),
            ErrorKind::PatternFailed { message, offset } => {
                write!(f, "regex error while tokenizing: {message} (at offset {offset})")
            }
            ErrorKind::BadVocabulary { message } => f.write_str(message),
            ErrorKind::Unsupported { missing } => {
                write!(f, "only byte-level byte pair encoding is supported, not {missing}")
            }
            ErrorKind::LimitTooSmall { needed, offset } => {
                write!(f, "a chunk needs at least {needed} tokens for one character (at byte {offset})")
            }
            ErrorKind::CannotStream { reason } => {
                write!(f, "the text cannot be encoded as it arrives: {reason}")
            }
            ErrorKind::InvalidUtf8 { offset } => write!(f, "the text is not valid UTF-8 (at byte {offset})"),
            ErrorKind::KeptTooMuch { limit } => {
                write!(f, "more than {limit} bytes of the text have no final tokens yet")
            }
            ErrorKind::StreamEnded => f.write_str("the text of the stream has ended"),
            ErrorKind::OutOfMemory => OutOfMemory.fmt(f),
            ErrorKind::Stopped => Stopped.fmt(f),
        }
    }
}

impl std::error::Error for Error {}
