//! Lists of `int` objects built in one pass, from objects that were made before.
//!
//! Making an `int` takes longer than finding a token. Where the interpreter has immortal objects (CPython
//! 3.12 on), the kept ones are immortal too and lie in one block, in order. A list is then filled by
//! arithmetic alone: the objects are neither read nor written to. Elsewhere a list takes a reference to each.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use offlock_core::memory;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyList};

use crate::cpython::immortal_ints::ImmortalInts;
use crate::cpython::object;
use crate::cpython::sequence::{Container, SequenceBuilder};
use crate::cpython::short_sequence::short_list;
use crate::error::no_memory;
use crate::gil_yield::Yielder;

/// How many are kept, from 0 on: as many as the largest public vocabularies have tokens.
const KEPT: usize = 1 << 18;
/// They are made once this many were requested: a program that needs few does not pay for them.
const WORTH_KEEPING: usize = 1 << 15;

/// Values that are put into a list between two checks of the clock.
const STRETCH: usize = 4096;

/// `values` as a list. Other threads can hold the lock now and then if there are many values.
pub(crate) fn list<'py>(
    py: Python<'py>,
    values: &[u32],
    yielder: &mut Yielder,
) -> PyResult<Bound<'py, PyList>> {
    match Kept::get(py, values.len(), yielder)? {
        None => filled(py, values, |_| None, yielder),
        Some(Kept::Immortal(ints)) => filled(py, values, |value| ints.get(py, value), yielder),
        Some(Kept::Counted(ints)) => {
            let kept = |value| Some(ints.get(value as usize)?.bind(py).clone().into_any());
            filled(py, values, kept, yielder)
        }
    }
}

/// Many sequences of values, as a list of lists.
pub(crate) fn lists<'py>(
    py: Python<'py>,
    all: &[Vec<u32>],
    yielder: &mut Yielder,
) -> PyResult<Bound<'py, PyList>> {
    let mut lists = SequenceBuilder::new(py, Container::List, all.len())?;
    for values in all {
        yielder.tick_many(py, 1 + values.len() / 8)?;
        lists.push(list(py, values, yielder)?);
    }
    Ok(lists.finish().cast_into()?)
}

/// `kept` returns the kept object, or `None` if an object has to be made.
fn filled<'py>(
    py: Python<'py>,
    values: &[u32],
    kept: impl Fn(u32) -> Option<Bound<'py, PyAny>>,
    yielder: &mut Yielder,
) -> PyResult<Bound<'py, PyList>> {
    if values.len() > STRETCH {
        return filled_in_stretches(py, values, kept, yielder);
    }
    short_list(py, values.iter().map(|&value| new(py, kept(value), value)))
}

fn filled_in_stretches<'py>(
    py: Python<'py>,
    values: &[u32],
    kept: impl Fn(u32) -> Option<Bound<'py, PyAny>>,
    yielder: &mut Yielder,
) -> PyResult<Bound<'py, PyList>> {
    let mut list = SequenceBuilder::new(py, Container::List, values.len())?;
    for stretch in values.chunks(STRETCH) {
        let items = stretch.iter().map(|&value| new(py, kept(value), value));
        list.try_extend(stretch.len(), items)?;
        yielder.tick_many(py, stretch.len() / 8)?;
    }
    Ok(list.finish().cast_into()?)
}

/// The object that is kept for `value`, or a new one.
#[inline]
fn new<'py>(py: Python<'py>, kept: Option<Bound<'py, PyAny>>, value: u32) -> PyResult<Bound<'py, PyAny>> {
    match kept {
        Some(kept) => Ok(kept),
        None => object::size(py, value as usize).map(Bound::into_any),
    }
}

static KEPT_INTS: OnceLock<Kept> = OnceLock::new();

enum Kept {
    Immortal(ImmortalInts),
    /// The table owns a reference to each.
    Counted(Box<[Py<PyInt>]>),
}

impl Kept {
    /// The kept objects, if they exist or are worth making for `more` values.
    #[inline]
    fn get(py: Python<'_>, more: usize, yielder: &mut Yielder) -> PyResult<Option<&'static Self>> {
        // Without a GIL, threads would contend for the reference counts of shared objects.
        if cfg!(Py_GIL_DISABLED) {
            return Ok(None);
        }
        match KEPT_INTS.get() {
            None => Self::get_or_make(py, more, yielder),
            kept => Ok(kept),
        }
    }

    #[cold]
    fn get_or_make(py: Python<'_>, more: usize, yielder: &mut Yielder) -> PyResult<Option<&'static Self>> {
        static HANDED_OUT: AtomicUsize = AtomicUsize::new(0);
        let before = HANDED_OUT.fetch_add(more, Ordering::Relaxed);
        if before + more < WORTH_KEEPING {
            return Ok(None);
        }
        // Other threads can hold the lock meanwhile, and make them, too: no thread waits. The later results
        // are dropped.
        let _ = KEPT_INTS.set(Self::make(py, yielder)?);
        Ok(KEPT_INTS.get())
    }

    fn make(py: Python<'_>, yielder: &mut Yielder) -> PyResult<Self> {
        if let Some(ints) = ImmortalInts::make(py, KEPT, yielder)? {
            return Ok(Self::Immortal(ints));
        }
        let mut ints = memory::with_capacity(KEPT).map_err(no_memory)?;
        for value in 0..KEPT {
            yielder.tick(py)?;
            ints.push(object::size(py, value)?.unbind());
        }
        Ok(Self::Counted(ints.into_boxed_slice()))
    }
}
