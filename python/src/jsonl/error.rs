//! Errors in JSON lines as Python's exceptions.

use offlock_core::jsonl::{Error, ErrorKind};
use offlock_core::memory::OutOfMemory;
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyType};

use crate::cpython::object;
use crate::error::{IntoException, WithMessage, cancelled, no_memory};
use crate::objects::{Int, imported};

/// The most bytes of a line that an exception has.
const SHOWN: usize = 1 << 20;

/// An error in these lines.
pub(super) struct InLines<'a>(pub(super) Error, pub(super) &'a [u8]);

impl IntoException for InLines<'_> {
    fn into_exception(self, py: Python<'_>) -> PyErr {
        let Self(error, lines) = &self;
        match error.kind {
            ErrorKind::Stopped => cancelled(py),
            ErrorKind::OutOfMemory => no_memory(OutOfMemory),
            ErrorKind::Unexpected { .. } => PyTypeError::with_message(error.to_string()),
            ErrorKind::IntegerTooLarge => PyOverflowError::with_message(error.to_string()),
            _ => decode_error(py, error, lines).map_or_else(|failed| failed, PyErr::from_value),
        }
    }
}

/// The `DecodeError` for a line, which the exception shows.
fn decode_error<'py>(py: Python<'py>, error: &Error, lines: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let line = lines[error.start..].split(|&byte| byte == b'\n').next().unwrap_or_default();
    imported(&CLASS, py, "offlock.jsonl", "DecodeError")?.call1((
        object::text(py, &error.kind.to_string())?,
        PyBytes::new_with(py, line.len().min(SHOWN), |to| {
            to.copy_from_slice(&line[..to.len()]);
            Ok(())
        })?,
        Int(error.line as usize),
        Int(error.start),
        Int(error.column),
    ))
}
