//! What can be asked about strings: which kinds there are, and what views keep alive.

use std::collections::HashSet;
use std::ptr;

use offlock_core::text::Memory;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyType};

use super::collect::{Container, Filling};
use super::hook;
use super::pool::{self, BLOCK};
use super::view;

/// Lets strings be built in blocks from now on.
#[pyfunction]
pub(super) fn enable_blocks(py: Python<'_>) -> PyResult<()> {
    hook::install(py)
}

/// Why each kind is not available; `None` for one that is.
#[pyfunction]
pub(super) fn unavailable(py: Python<'_>) -> PyResult<[(&'static str, Option<String>); 3]> {
    Ok([("str", None), ("block", hook::unavailable(py)?), ("view", view::unavailable(py)?)])
}

/// The class of views.
#[pyfunction]
pub(super) fn view_class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    view::class(py)
}

/// The bytes that these strings keep alive, with what they share.
#[pyfunction]
pub(super) fn retained(strings: &Bound<'_, PyAny>) -> PyResult<usize> {
    let (mut blocks, mut memories, mut bytes) = (HashSet::new(), HashSet::new(), 0);
    for string in strings.try_iter()? {
        let string = string?.cast_into::<PyString>()?;
        match pool::home_of(string.as_ptr()) {
            Some(block) if blocks.insert(block) => {
                bytes += BLOCK;
                // SAFETY: the string keeps its block alive, and that the characters.
                let characters = unsafe { pool::characters_of(block) };
                let new = characters.filter(|memory| memories.insert(ptr::from_ref(*memory)));
                bytes += new.map_or(0, Memory::bytes);
            }
            Some(_) => {}
            None => bytes += string.call_method0("__sizeof__")?.extract::<usize>()?,
        }
    }
    Ok(bytes)
}

/// The same strings as a list or tuple, those that share memory with others replaced by exact ones that do not.
#[pyfunction]
pub(super) fn compact<'py>(strings: &Bound<'py, PyAny>, into: Container) -> PyResult<Bound<'py, PyAny>> {
    let py = strings.py();
    let detached: Vec<_> = strings.try_iter()?.map(|string| detached(string?)).collect::<PyResult<_>>()?;
    let mut filling = Filling::new(py, into, detached.len())?;
    detached.into_iter().for_each(|string| filling.push(string.into_any()));
    Ok(filling.finish())
}

fn detached(string: Bound<'_, PyAny>) -> PyResult<Bound<'_, PyString>> {
    let string = string.cast_into::<PyString>()?;
    let shares = pool::home_of(string.as_ptr()).is_some();
    Ok(if shares { PyString::new(string.py(), string.to_str()?) } else { string })
}

/// How many blocks are taken, how many there are, and how often the memory of one was offered to the system.
#[pyfunction]
pub(super) fn blocks() -> (usize, usize, usize) {
    pool::usage()
}
