//! The errors of this module.

use std::fmt;

use crate::Stopped;
use crate::away::NoResult;
use crate::memory::OutOfMemory;

/// The kind of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The library refused to compress.
    Compress,
    /// The data is invalid, or needs another dictionary.
    Decompress,
    /// The data ends inside a frame.
    Truncated,
    /// The output would be larger than the caller allows.
    Limit,
    /// The size of the content cannot be pledged.
    Pledge,
    /// The dictionary cannot be used for compression.
    CompressionDictionary,
    /// The dictionary cannot be used for decompression.
    DecompressionDictionary,
    /// No dictionary can be trained.
    Train,
    /// The dictionary cannot be finalized.
    Finalize,
    /// What the input begins with is no frame, or not all of it.
    Frame,
    /// The stream was at work on another thread when the process forked: its state is in the parent only.
    Forked,
    /// Memory ran out.
    OutOfMemory,
    /// The task was stopped.
    Stopped,
}

impl ErrorKind {
    const fn words(self) -> &'static str {
        match self {
            Self::Compress => "Unable to compress Zstandard data",
            Self::Decompress => "Unable to decompress Zstandard data",
            Self::Truncated => "Compressed data ended before the end-of-stream marker was reached",
            Self::Limit => "the output would exceed max_output",
            Self::Pledge => "Unable to set pledged uncompressed content size",
            Self::CompressionDictionary => "Unable to load Zstandard dictionary or prefix for compression",
            Self::DecompressionDictionary => {
                "Unable to load Zstandard dictionary or prefix for decompression"
            }
            Self::Train => "Unable to train the Zstandard dictionary",
            Self::Finalize => "Unable to finalize the Zstandard dictionary",
            Self::Frame => {
                "Error when finding the compressed size of a Zstandard frame: the input must begin with a whole frame"
            }
            Self::Forked => "the stream was at work on another thread when the process forked",
            Self::OutOfMemory => "out of memory",
            Self::Stopped => "the operation was interrupted",
        }
    }

    /// Whether the place in the input says something about the error.
    const fn has_place(self) -> bool {
        matches!(self, Self::Decompress | Self::Truncated | Self::Limit | Self::Frame)
    }
}

/// An error: its kind, the library's own words, and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// The kind.
    pub kind: ErrorKind,
    /// The library's words, empty if it has none.
    pub detail: &'static str,
    /// The number of bytes of input that were read when the error occurred.
    pub offset: u64,
}

impl Error {
    /// An error without words of the library.
    pub const fn new(kind: ErrorKind, offset: u64) -> Self {
        Self { kind, detail: "", offset }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.words())?;
        if !self.detail.is_empty() {
            write!(f, ": {}", self.detail)?;
        }
        if self.kind.has_place() {
            write!(f, " (at byte {} of the input)", self.offset)?;
        }
        Ok(())
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
        Self::new(ErrorKind::OutOfMemory, 0)
    }
}

impl From<NoResult> for Error {
    fn from(none: NoResult) -> Self {
        Self::new(if none == NoResult::Stopped { ErrorKind::Stopped } else { ErrorKind::Forked }, 0)
    }
}
