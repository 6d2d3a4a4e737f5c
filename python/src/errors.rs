//! Which exception each error of the core becomes, and how exceptions get their messages.

use std::borrow::Cow;

use offlock_core::memory::OutOfMemory;
use offlock_core::tokens::{self, ErrorKind};
use pyo3::exceptions::{PyKeyError, PyMemoryError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyType;
use pyo3::{PyErrArguments, PyTypeInfo};

use crate::bytes;
use crate::region::{Failure, cancelled};

/// Exceptions with a message, in place of `new_err`.
pub(crate) trait WithMessage: PyTypeInfo {
    /// An exception of this class. One that is raised where there is no memory for its message goes without.
    fn with_message(message: impl Into<Cow<'static, str>>) -> PyErr {
        PyErr::new::<Self, _>(Message(message.into()))
    }
}

impl<T: PyTypeInfo> WithMessage for T {}

/// An exception of a class that is known at run time only; as with [`WithMessage`].
pub(crate) fn of_class(class: PyResult<&Bound<'_, PyType>>, message: impl Into<Cow<'static, str>>) -> PyErr {
    class.map_or_else(|error| error, |class| PyErr::from_type(class.clone(), Message(message.into())))
}

/// PyO3 makes an exception where it is raised, outside of what catches panics: its own conversion of a string panics when
/// there is no memory, which would end the process there.
struct Message(Cow<'static, str>);

impl PyErrArguments for Message {
    fn arguments(self, py: Python<'_>) -> Py<PyAny> {
        bytes::text(py, &self.0).map_or_else(|_| py.None(), |text| text.into_any().unbind())
    }
}

/// `MemoryError`.
#[cold]
pub(crate) fn no_memory(error: OutOfMemory) -> PyErr {
    PyMemoryError::with_message(error.to_string())
}

impl Failure for OutOfMemory {
    fn into_exception(self, _: Python<'_>) -> PyErr {
        no_memory(self)
    }
}

impl Failure for tokens::Error {
    fn into_exception(self, py: Python<'_>) -> PyErr {
        match self.kind {
            ErrorKind::Stopped => cancelled(py),
            ErrorKind::OutOfMemory => no_memory(OutOfMemory),
            ErrorKind::UnknownToken { .. } => PyKeyError::with_message(self.to_string()),
            _ => PyValueError::with_message(self.to_string()),
        }
    }
}
