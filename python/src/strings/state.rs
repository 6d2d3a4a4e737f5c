//! What can be asked about strings (which kinds there are, what they keep alive), and how they are detached.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
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
    let (mut plain, mut blocks, mut memories) = (HashSet::new(), HashSet::new(), HashSet::new());
    let mut bytes = 0;
    for string in held(strings)? {
        match pool::home_of(string.as_ptr()) {
            Some(block) if blocks.insert(block) => {
                bytes += BLOCK;
                // SAFETY: the string keeps its block alive, and that the characters.
                let characters = unsafe { pool::characters_of(block) };
                let new = characters.filter(|memory| memories.insert(ptr::from_ref(*memory)));
                bytes += new.map_or(0, Memory::bytes);
            }
            None if plain.insert(string.as_ptr()) => {
                bytes += string.call_method0("__sizeof__")?.extract::<usize>()?;
            }
            _ => {}
        }
    }
    Ok(bytes)
}

/// The same strings as a list or tuple, those that share memory with others replaced by exact ones that do not. What was
/// one object stays one.
#[pyfunction]
pub(super) fn compact<'py>(strings: &Bound<'py, PyAny>, into: Container) -> PyResult<Bound<'py, PyAny>> {
    let (py, strings) = (strings.py(), held(strings)?);
    let mut detached: HashMap<_, Bound<'py, PyString>> = HashMap::new();
    for string in strings.iter().filter(|string| pool::home_of(string.as_ptr()).is_some()) {
        if let Entry::Vacant(new) = detached.entry(string.as_ptr()) {
            new.insert(PyString::new(py, string.to_str()?));
        }
    }
    let mut filling = Filling::new(py, into, strings.len())?;
    for string in strings {
        filling.push(detached.get(&string.as_ptr()).unwrap_or(&string).clone().into_any());
    }
    Ok(filling.finish())
}

/// The strings, each with a reference: their addresses are not used again meanwhile.
fn held<'py>(strings: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyString>>> {
    strings.try_iter()?.map(|string| Ok(string?.cast_into()?)).collect()
}

/// How many blocks are taken, how many there are, and how often the memory of one was offered to the system.
#[pyfunction]
pub(super) fn blocks() -> (usize, usize, usize) {
    pool::usage()
}
