//! Token ids read from the callers' arguments.

use offlock_core::tokens::TokenId;
use pyo3::buffer::Element;
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};

use super::packed::PackedTokens;
use crate::borrow;
use crate::cpython::items::append_leading_ints;
use crate::cpython::object::is_sequence;
use crate::error::WithMessage;
use crate::gil_yield::Yielder;
use crate::large::{LARGE, Large, reserve};
use crate::region::{Cancel, aside};

/// The ids in `tokens`: a list, a tuple, any other sequence of integers, or a buffer of them such as a numpy
/// array.
///
/// `TypeError` for anything else, `OverflowError` for an integer that is not a 32-bit id; both name its
/// index. Other threads can hold the lock now and then; changes that they make to a list affect the items
/// that were not read yet. `cancel` ends the call from another thread.
pub(crate) fn read(
    tokens: &Bound<'_, PyAny>,
    cancel: Option<&Bound<'_, Cancel>>,
) -> PyResult<Large<Vec<TokenId>>> {
    let mut ids = Large::new(Vec::new());
    read_to(tokens, &mut ids, &mut Yielder::yielding().cancel(cancel.map(Bound::get)))?;
    Ok(ids)
}

/// As [`read`]. Also accepts other iterables, such as a generator.
pub(crate) fn read_iterable(tokens: &Bound<'_, PyAny>) -> PyResult<Large<Vec<TokenId>>> {
    if is_sequence(tokens) {
        return read(tokens, None);
    }
    let mut ids = Large::new(Vec::new());
    read_items(tokens, &mut ids, &mut Yielder::yielding())?;
    Ok(ids)
}

/// As [`read`], appended to the ids that are there.
pub(crate) fn read_to(
    tokens: &Bound<'_, PyAny>,
    ids: &mut Vec<TokenId>,
    yielder: &mut Yielder,
) -> PyResult<()> {
    let py = tokens.py();
    if let Ok(list) = tokens.cast::<PyList>() {
        let before = ids.len();
        read_leading_ints(list, ids, yielder)?;
        // By index: reading an item that is not an int can run code that changes the list.
        let rest = (ids.len() - before..).take_while(|index| *index < list.len());
        let rest = rest.map_while(|index| Some((index, list.get_item(index).ok()?)));
        return extend(py, ids, rest, yielder);
    }
    if let Ok(packed) = tokens.cast::<PackedTokens>() {
        return copy(py, &packed.get().0, ids);
    }
    if let Ok(tuple) = tokens.cast::<PyTuple>() {
        return extend(py, ids, tuple.iter().enumerate(), yielder);
    }
    match read_buffer(tokens) {
        Some(values) if ids.is_empty() => *ids = values?,
        Some(values) => copy(py, &values?, ids)?,
        None => read_sequence(tokens, ids, yielder)?,
    }
    Ok(())
}

fn copy(py: Python<'_>, from: &[TokenId], ids: &mut Vec<TokenId>) -> PyResult<()> {
    reserve(ids, from.len())?;
    if size_of_val(from) < LARGE {
        ids.extend_from_slice(from);
    } else {
        aside(py, || ids.extend_from_slice(from));
    }
    Ok(())
}

fn extend<'py>(
    py: Python<'py>,
    ids: &mut Vec<TokenId>,
    more: impl Iterator<Item = (usize, Bound<'py, PyAny>)>,
    yielder: &mut Yielder,
) -> PyResult<()> {
    for item in more {
        yielder.tick(py)?;
        let id = read_item(item)?;
        reserve(ids, 1)?;
        ids.push(id);
    }
    Ok(())
}

/// Items that are read between two checks of the clock.
const STRETCH: usize = 1 << 14;

/// Reads up to the first item that is not exactly an `int` or not an id: nearly always all of them. Takes no
/// references, which would take longer than the reads.
fn read_leading_ints(
    list: &Bound<'_, PyList>,
    ids: &mut Vec<TokenId>,
    yielder: &mut Yielder,
) -> PyResult<()> {
    // Without a GIL another thread may change the list meanwhile.
    if cfg!(Py_GIL_DISABLED) {
        return Ok(());
    }
    let (before, mut read) = (ids.len(), 0);
    reserve(ids, list.len())?;
    // The length is read again each time: other threads may have changed the list between two stretches.
    while read == ids.len() - before && read < list.len() {
        let stretch = read..list.len().min(read + STRETCH);
        let work = stretch.len() / 8;
        reserve(ids, stretch.len())?;
        read = stretch.end;
        append_leading_ints(list, stretch, ids);
        yielder.tick_many(list.py(), work)?;
    }
    Ok(())
}

fn read_item((index, item): (usize, Bound<'_, PyAny>)) -> PyResult<TokenId> {
    item.extract().map_err(|error: PyErr| explain(&item, index, &error))
}

fn explain(item: &Bound<'_, PyAny>, index: usize, error: &PyErr) -> PyErr {
    let shown = item.repr().map_or_else(|_| item.get_type().to_string(), |repr| repr.to_string());
    if error.is_instance_of::<PyOverflowError>(item.py()) {
        return PyOverflowError::with_message(format!(
            "token {shown} at index {index} is not in 0..=4294967295"
        ));
    }
    PyTypeError::with_message(format!("token {shown} at index {index} is not an integer"))
}

/// `None` when `tokens` is not a one-dimensional buffer of integers.
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
    borrow::numbers::<T, _>(tokens, narrow)
}

fn narrow<T: TryInto<TokenId> + std::fmt::Display + Copy>(index: usize, value: T) -> PyResult<TokenId> {
    value.try_into().map_err(|_| {
        PyOverflowError::with_message(format!("token {value} at index {index} is not in 0..=4294967295"))
    })
}

fn read_sequence(tokens: &Bound<'_, PyAny>, ids: &mut Vec<TokenId>, yielder: &mut Yielder) -> PyResult<()> {
    if !is_sequence(tokens) || tokens.is_instance_of::<PyString>() {
        let kind = tokens.get_type();
        return Err(PyTypeError::with_message(format!(
            "tokens must be a sequence of integers, not {}",
            kind.name()?
        )));
    }
    read_items(tokens, ids, yielder)
}

fn read_items(tokens: &Bound<'_, PyAny>, ids: &mut Vec<TokenId>, yielder: &mut Yielder) -> PyResult<()> {
    for (index, item) in tokens.try_iter()?.enumerate() {
        extend(tokens.py(), ids, std::iter::once((index, item?)), yielder)?;
    }
    Ok(())
}
