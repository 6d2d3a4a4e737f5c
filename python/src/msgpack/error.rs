//! The core's errors as the exceptions that msgpack raises.

use offlock_core::memory::OutOfMemory;
use offlock_core::msgpack::{Error, ErrorKind};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use super::classes;
use crate::error::IntoException;
use crate::error::{WithMessage, no_memory, of_class};

/// An exception for one complete message.
pub(super) struct DecodeError(pub(super) Error);

impl IntoException for DecodeError {
    fn into_exception(self, py: Python<'_>) -> PyErr {
        exception(py, self.0)
    }
}

impl From<Error> for DecodeError {
    fn from(error: Error) -> Self {
        Self(error)
    }
}

impl From<OutOfMemory> for DecodeError {
    fn from(error: OutOfMemory) -> Self {
        Self(error.into())
    }
}

/// The exception for `error`.
#[cold]
pub(super) fn exception(py: Python<'_>, error: Error) -> PyErr {
    match error.kind {
        ErrorKind::Reserved(_) => of_class(classes::format_error(py), error.to_string()),
        ErrorKind::TooDeep(_) => of_class(classes::stack_error(py), error.to_string()),
        ErrorKind::Truncated => PyValueError::with_message(format!("Unpack failed: {error}")),
        ErrorKind::Unexpected { .. } => PyTypeError::with_message(error.to_string()),
        ErrorKind::OutOfMemory => no_memory(OutOfMemory),
        ErrorKind::Stopped => offlock_core::Stopped.into_exception(py),
        _ => PyValueError::with_message(error.to_string()),
    }
}
