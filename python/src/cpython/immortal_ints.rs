//! `int` objects that are never freed, in one block.
//!
//! From CPython 3.12 on some objects are immortal: their reference counts do not change. The interpreter's
//! own small ints are, and those made here are copies of genuine ints of one digit under the header of one of
//! them. All assumptions are verified on the objects themselves, before the first one is returned.

use std::mem::MaybeUninit;
use std::ptr;

use offlock_core::memory;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyInt;

use super::assumptions::Assumption;
use super::object;
use crate::error::no_memory;
use crate::gil_yield::Yielder;

/// The interpreter's own small ints, 0 to 256, are immortal singletons.
const SINGLETONS: usize = 257;

/// Memory for an `int` of one digit, with the size and alignment of the interpreter's allocator.
#[repr(C, align(16))]
#[derive(Clone, Copy)]
struct Slot([MaybeUninit<u8>; 32]);

/// Objects that are never freed, whatever their reference counts.
pub(crate) struct ImmortalInts {
    singletons: *const Slot,
    /// From 0 on, like the values; those of the singletons are never returned.
    others: Box<[Slot]>,
}

// SAFETY: the objects are never written to, not even their reference counts.
unsafe impl Send for ImmortalInts {}
// SAFETY: reading objects that never change needs no synchronization.
unsafe impl Sync for ImmortalInts {}

impl ImmortalInts {
    /// Copies of genuine objects, under the header of one that the interpreter made immortal. `None` where
    /// the interpreter has no such objects, or where an `int` differs from that of CPython 3.12 to 3.14.
    pub(crate) fn make(py: Python<'_>, count: usize, yielder: &mut Yielder) -> PyResult<Option<Self>> {
        if !Assumption::ImmortalInts.holds() {
            return Ok(None);
        }
        let Some(singletons) = singletons(py)? else { return Ok(None) };
        let sizes = size_of::<ffi::PyObject>()..=size_of::<Slot>();
        let Some(size) = one_digit_size().filter(|size| sizes.contains(size)) else { return Ok(None) };
        let mut others = memory::with_capacity(count).map_err(no_memory)?;
        for value in 0..count {
            yielder.tick(py)?;
            let genuine = object::size(py, value)?;
            let mut slot = Slot([MaybeUninit::zeroed(); 32]);
            let to = ptr::from_mut(&mut slot).cast::<u8>();
            // SAFETY: `genuine` has one digit, so it has `size` bytes, of which the first are the header, and
            // so has the singleton; both fit into a `Slot`.
            unsafe {
                genuine.as_ptr().cast::<u8>().copy_to_nonoverlapping(to, size);
                singletons.cast::<u8>().copy_to_nonoverlapping(to, size_of::<ffi::PyObject>());
            }
            others.push(slot);
        }
        let ints = Self { singletons, others: others.into_boxed_slice() };
        Ok(ints.are_ints(py).then_some(ints))
    }

    /// The object; `None` for a value without a kept object.
    #[inline(always)]
    pub(crate) fn get<'py>(&self, py: Python<'py>, value: u32) -> Option<Bound<'py, PyAny>> {
        let value = value as usize;
        let first = if value < SINGLETONS { self.singletons } else { self.others.as_ptr() };
        // SAFETY: a live object, which is immortal, so that a reference need not be counted.
        (value < self.others.len())
            .then(|| unsafe { Bound::from_owned_ptr(py, first.wrapping_add(value).cast_mut().cast()) })
    }

    fn are_ints(&self, py: Python<'_>) -> bool {
        let samples = [0, 1, 256, 257, 65_535, 65_536, self.others.len() as u32 - 1];
        samples.iter().all(|&value| {
            self.get(py, value).is_some_and(|kept| {
                kept.is_exact_instance_of::<PyInt>() && kept.eq(value).unwrap_or(false) && is_immortal(&kept)
            })
        })
    }
}

/// The array of the interpreter's own small ints, if they are immortal and in order, a [`Slot`] each.
fn singletons(py: Python<'_>) -> PyResult<Option<*const Slot>> {
    let first = object::size(py, 0)?.as_ptr().cast::<Slot>().cast_const();
    for value in 0..SINGLETONS {
        let int = object::size(py, value)?;
        if !is_immortal(&int) || int.as_ptr().cast::<Slot>().cast_const() != first.wrapping_add(value) {
            return Ok(None);
        }
    }
    Ok(Some(first))
}

/// Whether a new reference changes nothing.
fn is_immortal(object: &Bound<'_, PyAny>) -> bool {
    // SAFETY: only reads the reference count of a live object.
    let count = || unsafe { ffi::Py_REFCNT(object.as_ptr()) };
    let before = count();
    let _another = object.clone();
    count() == before
}

/// The size of an `int` of one digit in bytes, according to its type.
fn one_digit_size() -> Option<usize> {
    // SAFETY: the type is static and never changes.
    let (basic, item) = unsafe { (ffi::PyLong_Type.tp_basicsize, ffi::PyLong_Type.tp_itemsize) };
    usize::try_from(basic + item).ok()
}
