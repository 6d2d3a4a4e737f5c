//! The exception of each failure.

use offlock_core::memory::OutOfMemory;
use offlock_core::zstd::{Error, ErrorKind};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

use crate::error::{IntoException, cancelled, no_memory, of_class};
use crate::objects::imported;

impl IntoException for Error {
    fn into_exception(self, py: Python<'_>) -> PyErr {
        match self.kind {
            ErrorKind::Stopped => cancelled(py),
            ErrorKind::OutOfMemory => no_memory(OutOfMemory),
            ErrorKind::Limit => of_class(class(py, &LIMIT, "OutputLimitError"), self.to_string()),
            _ => of_class(class(py, &ERROR, "ZstdError"), self.to_string()),
        }
    }
}

static ERROR: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static LIMIT: PyOnceLock<Py<PyType>> = PyOnceLock::new();

fn class<'py>(
    py: Python<'py>,
    known: &'static PyOnceLock<Py<PyType>>,
    name: &str,
) -> PyResult<&'py Bound<'py, PyType>> {
    imported(known, py, "offlock.zstd", name)
}

/// `ZstdError` with a message.
pub(super) fn invalid(py: Python<'_>, message: &'static str) -> PyErr {
    of_class(class(py, &ERROR, "ZstdError"), message)
}
