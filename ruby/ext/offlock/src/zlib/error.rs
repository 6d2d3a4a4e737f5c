//! Converts the core's errors to exceptions.

use magnus::{Error, ExceptionClass, Module, RModule, Ruby};
use offlock_core::Stopped;
use offlock_core::deflate::{self, ErrorKind};
use offlock_core::memory::OutOfMemory;

use crate::error::{IntoException, no_memory};

/// An error of the core, as the class of `Offlock::Zlib` with zlib's name for it.
pub(super) struct ZlibError(pub(super) deflate::Error);

impl ZlibError {
    /// The class's name inside `Offlock::Zlib`.
    fn class(&self) -> &'static str {
        match self.0.kind {
            ErrorKind::NeedDict => "NeedDict",
            ErrorKind::Stream => "StreamError",
            ErrorKind::Data => "DataError",
            ErrorKind::Buf => "BufError",
            ErrorKind::Version => "VersionError",
            ErrorKind::Limit => "OutputLimitError",
            ErrorKind::NotGzip | ErrorKind::GzipMethod => "GzipFile::Error",
            ErrorKind::GzipFooter => "GzipFile::NoFooter",
            ErrorKind::GzipCrc => "GzipFile::CRCError",
            ErrorKind::GzipLength => "GzipFile::LengthError",
            _ => "Error",
        }
    }

    /// The message of the original, and the offset of the bad data.
    fn text(&self) -> String {
        let words = match self.0.kind {
            ErrorKind::GzipCrc => "invalid compressed data -- crc error",
            ErrorKind::GzipLength => "invalid compressed data -- length error",
            _ => self.0.message(),
        };
        match self.0.kind {
            ErrorKind::Data | ErrorKind::Buf | ErrorKind::Limit => {
                format!("{words} (at byte {} of the input)", self.0.offset)
            }
            _ => words.to_owned(),
        }
    }
}

/// An error while reading a gzip file, where missing input is reported as the end of the file.
pub(super) struct GzipError(deflate::Error);

impl From<deflate::Error> for GzipError {
    fn from(error: deflate::Error) -> Self {
        Self(error)
    }
}

impl IntoException for GzipError {
    fn into_exception(self, ruby: &Ruby) -> Error {
        let Self(mut error) = self;
        match error.kind {
            ErrorKind::Buf => {
                (error.kind, error.detail) = (ErrorKind::NotGzip, "unexpected end of file".into())
            }
            // The original reports a missing footer only when all of it is missing.
            ErrorKind::GzipFooter if !error.detail.is_empty() => {
                (error.kind, error.detail) = (ErrorKind::NotGzip, "unexpected end of string".into())
            }
            _ => {}
        }
        ZlibError(error).into_exception(ruby)
    }
}

impl From<deflate::Error> for ZlibError {
    fn from(error: deflate::Error) -> Self {
        Self(error)
    }
}

impl From<OutOfMemory> for ZlibError {
    fn from(none: OutOfMemory) -> Self {
        Self(none.into())
    }
}

impl From<Stopped> for ZlibError {
    fn from(stopped: Stopped) -> Self {
        Self(stopped.into())
    }
}

impl IntoException for ZlibError {
    fn into_exception(self, ruby: &Ruby) -> Error {
        match self.0.kind {
            ErrorKind::Stopped => return Stopped.into_exception(ruby),
            // As in the original, whose engine allocates its memory with Ruby.
            ErrorKind::Mem => return no_memory(ruby),
            _ => {}
        }
        match class(ruby, self.class()) {
            Ok(class) => Error::new(class, self.text()),
            Err(error) => error,
        }
    }
}

fn class(ruby: &Ruby, name: &str) -> Result<ExceptionClass, Error> {
    let offlock: RModule = ruby.class_object().const_get("Offlock")?;
    let zlib: RModule = offlock.const_get("Zlib")?;
    match name.split_once("::") {
        None => zlib.const_get(name),
        Some((outer, inner)) => zlib.const_get::<_, magnus::RClass>(outer)?.const_get(inner),
    }
}

/// An error in one of many inputs.
pub(super) struct BatchError(pub(super) deflate::IndexedError);

impl IntoException for BatchError {
    fn into_exception(self, ruby: &Ruby) -> Error {
        let (index, mut error) = self.0;
        if error.kind != ErrorKind::Stopped {
            error.detail = format!("input {index}: {}", error.message());
        }
        ZlibError(error).into_exception(ruby)
    }
}
