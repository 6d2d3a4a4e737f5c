//! The exception of each failure.

use offlock_core::deflate::{Error, ErrorKind};
use pyo3::exceptions::{PyEOFError, PyMemoryError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

use crate::error::{IntoException, WithMessage, cancelled, of_class};
use crate::objects::imported;

/// A failure with zlib's own message: `Error -3 while decompressing data: invalid block type`.
pub(super) struct DeflateError {
    doing: &'static str,
    error: Error,
}

impl DeflateError {
    /// For `map_err`: a failure while `doing` something.
    pub(super) fn while_(doing: &'static str) -> impl Fn(Error) -> Self + Copy {
        move |error| Self { doing, error }
    }

    fn text(&self) -> String {
        let Error { kind, offset, .. } = self.error;
        format!(
            "Error {} {}: {} (at byte {offset} of the input)",
            kind.code(),
            self.doing,
            words(&self.error)
        )
    }
}

/// The engine's message for a failure, or that of the original.
pub(super) fn words(error: &Error) -> &str {
    match error.kind {
        _ if !error.detail.is_empty() => error.message(),
        ErrorKind::Buf => "incomplete or truncated stream",
        ErrorKind::Stream => "inconsistent stream state",
        ErrorKind::Data => "invalid input data",
        ErrorKind::NeedDict => "a preset dictionary is needed",
        _ => error.message(),
    }
}

impl IntoException for DeflateError {
    fn into_exception(self, py: Python<'_>) -> PyErr {
        match self.error.kind {
            ErrorKind::Stopped => cancelled(py),
            ErrorKind::Mem => PyMemoryError::with_message("Out of memory while (de)compressing data"),
            ErrorKind::Limit => of_class(limit_class(py), self.error.to_string()),
            _ => of_class(error_class(py), self.text()),
        }
    }
}

/// A failure with the message of the module `gzip`.
pub(super) struct GzipError(pub(super) Error);

impl IntoException for GzipError {
    fn into_exception(self, py: Python<'_>) -> PyErr {
        let Self(error) = self;
        let offset = error.offset;
        let bad =
            |text: String| of_class(bad_gzip_class(py), format!("{text} (at byte {offset} of the input)"));
        match error.kind {
            ErrorKind::NotGzip => bad("Not a gzipped file".into()),
            ErrorKind::GzipMethod => bad("Unknown compression method".into()),
            ErrorKind::GzipCrc | ErrorKind::GzipLength => bad(error.detail),
            ErrorKind::GzipFooter | ErrorKind::Buf => {
                PyEOFError::with_message("Compressed file ended before the end-of-stream marker was reached")
            }
            _ => DeflateError { doing: "while decompressing data", error }.into_exception(py),
        }
    }
}

/// `zlib.error` itself, so that code that catches it for the original also catches offlock's errors.
pub(super) fn error_class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    imported(&CLASS, py, "zlib", "error")
}

fn bad_gzip_class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    imported(&CLASS, py, "gzip", "BadGzipFile")
}

fn limit_class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    imported(&CLASS, py, "offlock.zlib", "OutputLimitError")
}
