//! The argument that names the wanted fields.

use offlock_core::jsonl::{MAX_KEYS, Paths};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PySequence, PyString};

use crate::error::WithMessage;

/// One field, of which the result is a list, or several, of which it is a tuple of lists.
pub(super) struct Wanted {
    pub(super) paths: Paths,
    pub(super) is_single: bool,
}

impl Wanted {
    /// A key, or a sequence of which each item is a key or the keys that lead to a field.
    pub(super) fn new(fields: &Bound<'_, PyAny>) -> PyResult<Self> {
        let is_single = fields.is_instance_of::<PyString>();
        let paths = if is_single {
            vec![vec![key(fields)?]]
        } else {
            each(fields, |field| {
                if field.is_instance_of::<PyString>() { Ok(vec![key(field)?]) } else { each(field, key) }
            })?
        };
        let paths = Paths::new(&paths)
            .ok_or_else(|| PyValueError::with_message(format!("a field is named by 1 to {MAX_KEYS} keys")))?;
        Ok(Self { paths, is_single })
    }
}

fn key(key: &Bound<'_, PyAny>) -> PyResult<String> {
    match key.cast::<PyString>() {
        Ok(key) => Ok(key.to_str()?.to_owned()),
        Err(_) => Err(wrong_type()),
    }
}

/// What `take` returns for each item of a sequence.
fn each<T>(items: &Bound<'_, PyAny>, take: impl Fn(&Bound<'_, PyAny>) -> PyResult<T>) -> PyResult<Vec<T>> {
    let items = items.cast::<PySequence>().map_err(|_| wrong_type())?;
    items.try_iter()?.map(|item| take(&item?)).collect()
}

fn wrong_type() -> PyErr {
    PyTypeError::with_message("fields must be a str, or a list of str and of tuples of str")
}
