//! Token ids read from what callers hand in.

use offlock_core::memory;
use offlock_core::tokens::TokenId;
use pyo3::buffer::Element;
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};

use crate::borrow;
use crate::errors::no_memory;
use crate::packed::PackedTokens;

/// The ids in `tokens`: a list, a tuple, any other sequence of integers, or a buffer of them such as a numpy array.
///
/// `TypeError` for anything else, `OverflowError` for an integer that is no 32-bit id; both name its index.
pub(crate) fn read(tokens: &Bound<'_, PyAny>) -> PyResult<Vec<TokenId>> {
    let mut ids = Vec::new();
    read_to(tokens, &mut ids)?;
    Ok(ids)
}

/// As [`read`], and of what is no sequence, such as a generator, all that it gives.
pub(crate) fn read_iterable(tokens: &Bound<'_, PyAny>) -> PyResult<Vec<TokenId>> {
    if is_sequence(tokens) { read(tokens) } else { read_items(tokens) }
}

/// As [`read`], behind the ids that are there.
pub(crate) fn read_to(tokens: &Bound<'_, PyAny>, ids: &mut Vec<TokenId>) -> PyResult<()> {
    if let Ok(list) = tokens.cast::<PyList>() {
        let before = ids.len();
        read_leading_ints(list, ids)?;
        // By number: to read an item that is no int can run code that changes the list.
        let rest = (ids.len() - before..).map_while(|index| Some((index, list.get_item(index).ok()?)));
        return extend(ids, rest.map(read_item));
    }
    if let Ok(packed) = tokens.cast::<PackedTokens>() {
        return memory::append(ids, &packed.get().0).map_err(no_memory);
    }
    if let Ok(tuple) = tokens.cast::<PyTuple>() {
        return extend(ids, tuple.iter().enumerate().map(read_item));
    }
    match read_buffer(tokens) {
        Some(values) => memory::append(ids, &values?).map_err(no_memory),
        None => memory::append(ids, &read_sequence(tokens)?).map_err(no_memory),
    }
}

fn extend(ids: &mut Vec<TokenId>, more: impl Iterator<Item = PyResult<TokenId>>) -> PyResult<()> {
    for id in more {
        memory::push(ids, id?).map_err(no_memory)?;
    }
    Ok(())
}

/// Reads up to the first item that is not exactly an `int` or no id: nearly always all of them. Without references taken,
/// which would take longer than the reading.
fn read_leading_ints(list: &Bound<'_, PyList>, ids: &mut Vec<TokenId>) -> PyResult<()> {
    // Without a GIL another thread may change the list meanwhile.
    if cfg!(Py_GIL_DISABLED) {
        return Ok(());
    }
    memory::reserve(ids, list.len()).map_err(no_memory)?;
    // SAFETY: the lock is held, and reading exact ints runs no code that could give it up or change the list, so that the
    // list keeps its items as long as they are looked at.
    unsafe {
        let mut overflow = 0;
        let exact = |item: &*mut ffi::PyObject| ffi::PyLong_CheckExact(*item) == 1;
        let items = (0..list.len()).map(|at| ffi::PyList_GET_ITEM(list.as_ptr(), at as ffi::Py_ssize_t));
        let values =
            items.take_while(exact).map(|item| ffi::PyLong_AsLongAndOverflow(item, &raw mut overflow));
        ids.extend(values.map_while(|value| TokenId::try_from(value).ok()));
    }
    Ok(())
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
    let values = match borrow::numbers::<T>(tokens)? {
        Ok(values) => values,
        Err(error) => return Some(Err(error)),
    };
    let mut ids = Vec::new();
    let read = values.into_iter().enumerate().map(|(index, value)| narrow(value, index));
    Some(extend(&mut ids, read).map(|()| ids))
}

fn narrow<T: TryInto<TokenId> + std::fmt::Display + Copy>(value: T, index: usize) -> PyResult<TokenId> {
    value.try_into().map_err(|_| {
        PyOverflowError::new_err(format!("token {value} at index {index} is not in 0..=4294967295"))
    })
}

fn read_sequence(tokens: &Bound<'_, PyAny>) -> PyResult<Vec<TokenId>> {
    if !is_sequence(tokens) || tokens.is_instance_of::<PyString>() {
        let kind = tokens.get_type();
        return Err(PyTypeError::new_err(format!(
            "tokens must be a sequence of integers, not {}",
            kind.name()?
        )));
    }
    read_items(tokens)
}

fn is_sequence(tokens: &Bound<'_, PyAny>) -> bool {
    // SAFETY: only looks at the type of a live object.
    unsafe { ffi::PySequence_Check(tokens.as_ptr()) == 1 }
}

fn read_items(tokens: &Bound<'_, PyAny>) -> PyResult<Vec<TokenId>> {
    let mut ids = Vec::new();
    extend(&mut ids, tokens.try_iter()?.enumerate().map(|(index, item)| read_item((index, item?))))?;
    Ok(ids)
}
