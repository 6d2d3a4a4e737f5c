//! The errors of this module, which carry zlib's codes and messages.

use std::fmt;

use crate::Stopped;
use crate::memory::OutOfMemory;

/// The kind of an error; the first six are zlib's own return codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A preset dictionary is needed, and none was given.
    NeedDict,
    /// A parameter is out of range, or the stream is used in the wrong state.
    Stream,
    /// The data is invalid.
    Data,
    /// The data is truncated.
    Buf,
    /// Memory ran out.
    Mem,
    /// The engine's version is not the one that the caller was built for.
    Version,
    /// The output would be larger than the caller allows.
    Limit,
    /// The data does not begin like a gzip file.
    NotGzip,
    /// A gzip member was made with a compression method other than deflate.
    GzipMethod,
    /// The checksum at the end of a gzip member does not match its content.
    GzipCrc,
    /// The length at the end of a gzip member does not match its content.
    GzipLength,
    /// A gzip member ends before its checksum and length are complete.
    GzipFooter,
    /// The task was stopped.
    Stopped,
}

impl ErrorKind {
    /// zlib's return code for this kind. Kinds that zlib does not know count as invalid data.
    pub const fn code(self) -> i32 {
        match self {
            Self::NeedDict => 2,
            Self::Stream => -2,
            Self::Mem => -4,
            Self::Buf | Self::GzipFooter => -5,
            Self::Version => -6,
            _ => -3,
        }
    }

    /// The kind for a return code of zlib.
    pub(super) const fn of(code: i32) -> Self {
        match code {
            2 => Self::NeedDict,
            -2 => Self::Stream,
            -4 => Self::Mem,
            -5 => Self::Buf,
            -6 => Self::Version,
            _ => Self::Data,
        }
    }

    /// zlib's message for an error that has no message of its own.
    const fn words(self) -> &'static str {
        match self {
            Self::NeedDict => "need dictionary",
            Self::Stream => "stream error",
            Self::Data => "data error",
            Self::Buf => "buffer error",
            Self::Mem => "insufficient memory",
            Self::Version => "incompatible version",
            Self::Limit => "the output would exceed max_output",
            Self::NotGzip => "not in gzip format",
            Self::GzipMethod => "unsupported compression method",
            Self::GzipCrc => "invalid compressed data -- crc error",
            Self::GzipLength => "invalid compressed data -- length error",
            Self::GzipFooter => "footer is not found",
            Self::Stopped => "the operation was interrupted",
        }
    }
}

/// An error: its kind, the engine's message, and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// The kind.
    pub kind: ErrorKind,
    /// The engine's message, empty if it has none.
    pub detail: String,
    /// The number of bytes of input that were read when the error occurred.
    pub offset: u64,
}

impl Error {
    /// An error without a message.
    pub fn new(kind: ErrorKind, offset: u64) -> Self {
        Self { kind, detail: String::new(), offset }
    }

    /// An error with a message.
    pub fn with_detail(kind: ErrorKind, detail: impl Into<String>, offset: u64) -> Self {
        Self { kind, detail: detail.into(), offset }
    }

    /// The engine's message, or zlib's message for the kind.
    pub fn message(&self) -> &str {
        if self.detail.is_empty() { self.kind.words() } else { &self.detail }
    }

    /// The same error, with `before` bytes added to its offset.
    #[must_use]
    pub fn after(mut self, before: usize) -> Self {
        self.offset += before as u64;
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {} of the input", self.message(), self.offset)
    }
}

impl std::error::Error for Error {}

impl From<Stopped> for Error {
    fn from(_: Stopped) -> Self {
        Self::new(ErrorKind::Stopped, 0)
    }
}

impl From<OutOfMemory> for Error {
    fn from(_: OutOfMemory) -> Self {
        Self::new(ErrorKind::Mem, 0)
    }
}
