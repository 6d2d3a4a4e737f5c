//! What can go wrong with compressed data.

use std::fmt;

use crate::Stopped;
use crate::memory::OutOfMemory;

/// The kind of a failure; the first six are zlib's own return codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A preset dictionary is needed, and none was given.
    NeedDict,
    /// A parameter is out of range, or the stream is used in the wrong state.
    Stream,
    /// The data is not what its format demands.
    Data,
    /// The data ends too early.
    Buf,
    /// Memory ran out.
    Mem,
    /// The engine is not of the version that the caller was built for.
    Version,
    /// The output would be larger than the caller allows.
    Limit,
    /// The data does not begin like a gzip file.
    NotGzip,
    /// A gzip member was made with a compression method other than deflate.
    GzipMethod,
    /// The checksum at the end of a gzip member does not fit its content.
    GzipCrc,
    /// The length at the end of a gzip member does not fit its content.
    GzipLength,
    /// A gzip member ends before its checksum and length are complete.
    GzipFooter,
    /// The run was asked to stop.
    Stopped,
}

impl ErrorKind {
    /// zlib's return code for this kind; what zlib does not know counts as bad data.
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

    /// zlib's own words for a failure that has no message of its own.
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

/// A failure: its kind, the engine's message, and where it happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// What kind of failure it is.
    pub kind: ErrorKind,
    /// The engine's words, empty when it has none.
    pub detail: String,
    /// How many bytes of input were read when it happened.
    pub offset: u64,
}

impl Error {
    /// A failure of which nothing more is known than its kind and place.
    pub fn new(kind: ErrorKind, offset: u64) -> Self {
        Self { kind, detail: String::new(), offset }
    }

    /// A failure in the words of `detail`.
    pub fn with_detail(kind: ErrorKind, detail: impl Into<String>, offset: u64) -> Self {
        Self { kind, detail: detail.into(), offset }
    }

    /// The engine's message, or zlib's words for the kind.
    pub fn message(&self) -> &str {
        if self.detail.is_empty() { self.kind.words() } else { &self.detail }
    }

    /// The same failure, seen from a place `before` bytes earlier in the input.
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
