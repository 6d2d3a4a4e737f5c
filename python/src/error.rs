//! Exceptions: how they get their messages, and which exception an error of the core becomes.

use std::borrow::Cow;

use offlock_core::Stopped;
use offlock_core::memory::OutOfMemory;
use offlock_core::tokens::{self, ErrorKind};
use pyo3::exceptions::{PyKeyError, PyMemoryError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use pyo3::{PyErrArguments, PyTypeInfo};

use crate::cpython::object;
use crate::objects::imported;

/// Exceptions with a message, in place of `new_err`.
pub(crate) trait WithMessage: PyTypeInfo {
    /// An exception of this class. It has no message if there is no memory for one.
    fn with_message(message: impl Into<Cow<'static, str>>) -> PyErr {
        PyErr::new::<Self, _>(ExceptionMessage(message.into()))
    }
}

impl<T: PyTypeInfo> WithMessage for T {}

/// An exception of a class that is known at run time only; as with [`WithMessage`].
pub(crate) fn of_class(class: PyResult<&Bound<'_, PyType>>, message: impl Into<Cow<'static, str>>) -> PyErr {
    class
        .map_or_else(|error| error, |class| PyErr::from_type(class.clone(), ExceptionMessage(message.into())))
}

/// PyO3 makes an exception where it is raised, outside of the code that catches panics. Its own conversion of
/// a string panics when there is no memory, which would abort the process there.
struct ExceptionMessage(Cow<'static, str>);

impl PyErrArguments for ExceptionMessage {
    fn arguments(self, py: Python<'_>) -> Py<PyAny> {
        object::text(py, &self.0).map_or_else(|_| py.None(), |text| text.into_any().unbind())
    }
}

pyo3::create_exception!(
    offlock,
    InternalError,
    PyRuntimeError,
    "A bug in offlock: its native code panicked. The call had no effect."
);

/// `concurrent.futures.CancelledError`, for a run that another thread stopped.
pub(crate) fn cancelled(py: Python<'_>) -> PyErr {
    static CLASS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    match imported(&CLASS, py, "concurrent.futures", "CancelledError") {
        Ok(class) => match class.call0() {
            Ok(exception) => PyErr::from_value(exception),
            Err(error) => error,
        },
        Err(error) => error,
    }
}

/// The reason why a run ended without a result, as the interpreter has to see it.
pub(crate) trait IntoException: Send {
    /// The exception, when the run was not interrupted or cancelled.
    fn into_exception(self, py: Python<'_>) -> PyErr;
}

impl IntoException for Stopped {
    fn into_exception(self, py: Python<'_>) -> PyErr {
        cancelled(py)
    }
}

/// `MemoryError`.
#[cold]
pub(crate) fn no_memory(error: OutOfMemory) -> PyErr {
    PyMemoryError::with_message(error.to_string())
}

impl IntoException for OutOfMemory {
    fn into_exception(self, _: Python<'_>) -> PyErr {
        no_memory(self)
    }
}

impl IntoException for tokens::Error {
    fn into_exception(self, py: Python<'_>) -> PyErr {
        match self.kind {
            ErrorKind::Stopped => cancelled(py),
            ErrorKind::OutOfMemory => no_memory(OutOfMemory),
            ErrorKind::UnknownToken { .. } => PyKeyError::with_message(self.to_string()),
            _ => PyValueError::with_message(self.to_string()),
        }
    }
}
