//! Which exception each error of the core becomes.

use offlock_core::tokens::{self, ErrorKind};
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;

use crate::region::{Failure, cancelled};

impl Failure for tokens::Error {
    fn into_exception(self, py: Python<'_>) -> PyErr {
        match self.kind {
            ErrorKind::Stopped => cancelled(py),
            ErrorKind::UnknownToken { .. } => PyKeyError::new_err(self.to_string()),
            _ => PyValueError::new_err(self.to_string()),
        }
    }
}
