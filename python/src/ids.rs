//! Token ids between Rust and Python: lists of `int` built cheaply, and ids read from what callers hand in.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use offlock_core::tokens::TokenId;
use pyo3::buffer::{Element, PyBuffer};
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyList, PyString, PyTuple};

/// The most `int` objects that a table keeps: more than any vocabulary of today has.
const KEPT: usize = 1 << 20;
/// A table is made once this many ids were handed out: a program that encodes little does not pay for it.
const WORTH_A_TABLE: usize = 1 << 15;

/// The `int` objects of an encoding's ids, made once and shared by all the lists that it returns.
///
/// To make an `int` costs more than to find the token. To take a reference to one that exists costs a third.
pub(crate) struct IntTable {
    ints: OnceLock<Box<[Py<PyInt>]>>,
    size: usize,
    handed_out: AtomicUsize,
}

impl IntTable {
    /// A table for ids up to `max`.
    pub(crate) fn new(max: TokenId) -> Self {
        let size = KEPT.min(max as usize + 1);
        Self { ints: OnceLock::new(), size, handed_out: AtomicUsize::new(0) }
    }

    /// The ids as a list.
    pub(crate) fn list<'py>(&self, py: Python<'py>, ids: &[TokenId]) -> PyResult<Bound<'py, PyList>> {
        match self.ints(py, ids.len()) {
            Some(ints) => list_of(py, ids, ints),
            None => PyList::new(py, ids.iter().map(|&id| int(py, id))),
        }
    }

    /// Many of them, in a list of lists.
    pub(crate) fn lists<'py>(&self, py: Python<'py>, all: &[Vec<TokenId>]) -> PyResult<Bound<'py, PyList>> {
        let lists: Vec<_> = all.iter().map(|ids| self.list(py, ids)).collect::<PyResult<_>>()?;
        PyList::new(py, lists)
    }

    /// The table, if there is one or it is worth making one for `more` ids.
    fn ints(&self, py: Python<'_>, more: usize) -> Option<&[Py<PyInt>]> {
        // Without a GIL, threads would wait for each other at the reference counts of shared objects.
        if cfg!(Py_GIL_DISABLED) {
            return None;
        }
        if let Some(ints) = self.ints.get() {
            return Some(ints);
        }
        let before = self.handed_out.fetch_add(more, Ordering::Relaxed);
        // Nobody waits here: making integers never gives up the GIL.
        (before + more >= WORTH_A_TABLE).then(|| {
            &**self.ints.get_or_init(|| (0..self.size as TokenId).map(|id| int(py, id).unbind()).collect())
        })
    }
}

/// What `PyList::new` does, in two thirds of the time.
fn list_of<'py>(py: Python<'py>, ids: &[TokenId], ints: &[Py<PyInt>]) -> PyResult<Bound<'py, PyList>> {
    // SAFETY: the new list has room for `ids.len()` items, all empty, and nobody else knows it until it is returned. Each
    // item gets an object together with a reference of its own.
    unsafe {
        let list = Bound::from_owned_ptr_or_err(py, ffi::PyList_New(ids.len() as ffi::Py_ssize_t))?;
        let items = (*list.as_ptr().cast::<ffi::PyListObject>()).ob_item;
        for (index, &id) in ids.iter().enumerate() {
            let item = match ints.get(id as usize) {
                Some(kept) => kept.clone_ref(py).into_ptr(),
                None => int(py, id).into_ptr(),
            };
            items.add(index).write(item);
        }
        Ok(list.cast_into_unchecked())
    }
}

fn int(py: Python<'_>, id: TokenId) -> Bound<'_, PyInt> {
    let Ok(int) = id.into_pyobject(py);
    int
}

/// The ids in `tokens`: a list, a tuple, any other sequence of integers, or a buffer of them such as a numpy array.
///
/// `TypeError` for anything else, `OverflowError` for an integer that is no 32-bit id; both name its index.
pub(crate) fn read(tokens: &Bound<'_, PyAny>) -> PyResult<Vec<TokenId>> {
    if let Ok(list) = tokens.cast::<PyList>() {
        return list.iter().enumerate().map(read_item).collect();
    }
    if let Ok(tuple) = tokens.cast::<PyTuple>() {
        return tuple.iter().enumerate().map(read_item).collect();
    }
    match read_buffer(tokens) {
        Some(ids) => ids,
        None => read_sequence(tokens),
    }
}

fn read_item((index, item): (usize, Bound<'_, PyAny>)) -> PyResult<TokenId> {
    item.extract().map_err(|error: PyErr| explain(&item, index, &error))
}

fn explain(item: &Bound<'_, PyAny>, index: usize, error: &PyErr) -> PyErr {
    let shown = item.repr().map_or_else(|_| item.get_type().to_string(), |repr| repr.to_string());
    if error.is_instance_of::<PyOverflowError>(item.py()) {
        return PyOverflowError::new_err(format!("token {shown} at index {index} is not in 0..=4294967295"));
    }
    PyTypeError::new_err(format!("token {shown} at index {index} is not an integer"))
}

/// `None` when `tokens` is no one-dimensional buffer of integers.
fn read_buffer(tokens: &Bound<'_, PyAny>) -> Option<PyResult<Vec<TokenId>>> {
    read_buffer_of::<u32>(tokens)
        .or_else(|| read_buffer_of::<i64>(tokens))
        .or_else(|| read_buffer_of::<i32>(tokens))
        .or_else(|| read_buffer_of::<u64>(tokens))
        .or_else(|| read_buffer_of::<u16>(tokens))
}

fn read_buffer_of<T>(tokens: &Bound<'_, PyAny>) -> Option<PyResult<Vec<TokenId>>>
where
    T: Element + TryInto<TokenId> + std::fmt::Display,
{
    let buffer = PyBuffer::<T>::get(tokens).ok().filter(|buffer| buffer.dimensions() == 1)?;
    let values = match buffer.to_vec(tokens.py()) {
        Ok(values) => values,
        Err(error) => return Some(Err(error)),
    };
    Some(values.into_iter().enumerate().map(|(index, value)| narrow(value, index)).collect())
}

fn narrow<T: TryInto<TokenId> + std::fmt::Display + Copy>(value: T, index: usize) -> PyResult<TokenId> {
    value.try_into().map_err(|_| {
        PyOverflowError::new_err(format!("token {value} at index {index} is not in 0..=4294967295"))
    })
}

fn read_sequence(tokens: &Bound<'_, PyAny>) -> PyResult<Vec<TokenId>> {
    // SAFETY: only looks at the type of a live object.
    let is_sequence = unsafe { ffi::PySequence_Check(tokens.as_ptr()) == 1 };
    if !is_sequence || tokens.is_instance_of::<PyString>() {
        let kind = tokens.get_type();
        return Err(PyTypeError::new_err(format!(
            "tokens must be a sequence of integers, not {}",
            kind.name()?
        )));
    }
    tokens.try_iter()?.enumerate().map(|(index, item)| read_item((index, item?))).collect()
}
