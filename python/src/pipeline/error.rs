//! Errors of the pipeline as Python's exceptions.

use offlock_core::memory::OutOfMemory;
use offlock_core::pipeline::{Error, ErrorKind};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

use super::file_name::FileName;
use crate::cpython::object;
use crate::error::{IntoException, WithMessage, cancelled, no_memory};
use crate::gil_yield::Yielder;
use crate::objects::{Int, Text, imported, tuple};

impl IntoException for Error {
    fn into_exception(self, py: Python<'_>) -> PyErr {
        match &self.kind {
            ErrorKind::Stopped => cancelled(py),
            ErrorKind::OutOfMemory => no_memory(OutOfMemory),
            ErrorKind::Io { code: Some(code), .. } => system_error(py, *code, &self),
            ErrorKind::Io { .. } => PyOSError::with_message(self.to_string()),
            ErrorKind::Invalid { .. } => PyValueError::with_message(self.to_string()),
            _ => record_error(py, &self).map_or_else(|error| error, PyErr::from_value),
        }
    }
}

/// The subclass of `OSError` for a number of the system, with the file's name.
fn system_error(py: Python<'_>, code: i32, error: &Error) -> PyErr {
    let make = || {
        let message = match &error.kind {
            // The exception shows the number itself.
            ErrorKind::Io { message, .. } => message.split(" (os error").next().unwrap_or_default(),
            _ => "",
        };
        py.get_type::<PyOSError>().call1((Int(code as usize), Text(message), FileName(&error.path)))
    };
    make().map_or_else(|failed| failed, PyErr::from_value)
}

/// The `RecordError` of an input that is at fault.
fn record_error<'py>(py: Python<'py>, error: &Error) -> PyResult<Bound<'py, PyAny>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let place = error.record.map(|place| (Int(place.number as usize), Int(place.offset as usize)));
    let (record, offset) = place.unzip();
    let message = object::text(py, &error.to_string())?;
    imported(&CLASS, py, "offlock.pipeline", "RecordError")?.call1((
        message,
        FileName(&error.path),
        record,
        offset,
    ))
}

/// A tuple of `RecordError`s; other threads can hold the lock between them.
pub(super) fn record_errors<'py>(py: Python<'py>, errors: &[Error]) -> PyResult<Bound<'py, PyAny>> {
    let mut yielder = Yielder::yielding();
    let made = errors.iter().map(|error| {
        yielder.tick_many(py, LIKE_OBJECTS)?;
        record_error(py, error)
    });
    tuple(py, made.collect::<PyResult<Vec<_>>>()?)
}

/// Making a `RecordError`, whose class is written in Python, takes as long as making this many small objects.
const LIKE_OBJECTS: usize = 32;
