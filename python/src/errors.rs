//! Which exception each error of the core becomes.

use offlock_core::memory::OutOfMemory;
use offlock_core::tokens::{self, ErrorKind};
use pyo3::exceptions::{PyKeyError, PyMemoryError, PyValueError};
use pyo3::prelude::*;

use crate::region::{Failure, cancelled};

/// `MemoryError`.
#[cold]
pub(crate) fn no_memory(error: OutOfMemory) -> PyErr {
    PyMemoryError::new_err(error.to_string())
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
            ErrorKind::UnknownToken { .. } => PyKeyError::new_err(self.to_string()),
            _ => PyValueError::new_err(self.to_string()),
        }
    }
}
