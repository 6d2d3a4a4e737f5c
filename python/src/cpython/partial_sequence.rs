//! Lists and tuples that are filled while code of the program may run, which can find them through the
//! garbage collector.

use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi as c;
use pyo3::prelude::*;

use super::assumptions::Assumption;
use super::object::owned;
use super::sequence::new_list;
use crate::error::WithMessage;

/// A list or tuple while it is filled from the front.
pub(crate) struct PartialSequence {
    object: Py<PyAny>,
    filled: usize,
    length: usize,
    storage: Storage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Storage {
    List,
    Tuple,
    /// A list with memory for all items, whose length grows with them: no code finds an empty place, and many
    /// places are not initialized at once.
    Reserved,
    /// A list that grows with its items, because more were declared than the input can hold yet.
    Growing {
        /// It becomes a tuple in the end.
        tuple: bool,
    },
}

impl PartialSequence {
    /// An empty list, or tuple, for `length` items; the input can hold `room` of them at most.
    #[inline]
    pub(crate) fn new(py: Python<'_>, length: usize, room: usize, list: bool) -> PyResult<Self> {
        let storage = match list {
            _ if length > room || !Assumption::ItemArrays.holds() => Storage::Growing { tuple: !list },
            true if length > 0 && !cfg!(Py_GIL_DISABLED) => Storage::Reserved,
            true => Storage::List,
            false => Storage::Tuple,
        };
        // SAFETY: CPython's functions return a new reference, or null with an exception set. The length of a
        // list in reserved memory is that of its initialized items.
        let object = unsafe {
            match storage {
                Storage::List => owned(py, c::PyList_New(length.cast_signed()))?,
                Storage::Tuple => owned(py, c::PyTuple_New(length.cast_signed()))?,
                Storage::Reserved => new_list(py, length.cast_signed())?.0,
                Storage::Growing { .. } => owned(py, c::PyList_New(0))?,
            }
        };
        Ok(Self { object: object.unbind(), filled: 0, length, storage })
    }

    /// Stores the next item. Returns whether it was the last one.
    #[inline]
    pub(crate) fn push(&mut self, item: Bound<'_, PyAny>) -> PyResult<bool> {
        let (object, place) = (self.object.as_ptr(), self.filled.cast_signed());
        // SAFETY: `storage` matches the type of the object. The place is checked to exist, and is empty: only
        // this method fills it. A reserved place is initialized before the length covers it. The list or tuple
        // takes over the reference; `PyList_Append` takes its own.
        unsafe {
            match self.storage {
                Storage::List if c::PyList_GET_SIZE(object) > place => {
                    c::PyList_SET_ITEM(object, place, item.into_ptr());
                }
                Storage::Tuple if c::PyTuple_GET_SIZE(object) > place => {
                    c::PyTuple_SET_ITEM(object, place, item.into_ptr());
                }
                Storage::Reserved if has_next_place(object, place) => {
                    let list = object.cast::<c::PyListObject>();
                    (*list).ob_item.offset(place).write(item.into_ptr());
                    (*list).ob_base.ob_size = place + 1;
                }
                Storage::Growing { .. } if c::PyList_Size(object) == place => {
                    if c::PyList_Append(object, item.as_ptr()) < 0 {
                        return Err(PyErr::fetch(item.py()));
                    }
                }
                // Other code found the unfinished list, through the garbage collector, while a hook ran.
                _ => return Err(PyRuntimeError::with_message("the list changed size while it was filled")),
            }
        }
        self.filled += 1;
        Ok(self.filled == self.length)
    }

    /// The number of items that are still missing.
    pub(crate) const fn missing(&self) -> usize {
        self.length - self.filled
    }

    /// The unfinished object.
    pub(crate) const fn object(&self) -> &Py<PyAny> {
        &self.object
    }

    /// The object, once all items are stored.
    #[inline]
    pub(crate) fn finish(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        debug_assert_eq!(self.filled, self.length);
        let object = self.object.into_bound(py);
        match self.storage {
            // SAFETY: a list; returns a new reference, or null with an exception set.
            Storage::Growing { tuple: true } => unsafe { owned(py, c::PyList_AsTuple(object.as_ptr())) },
            _ => Ok(object),
        }
    }
}

/// Whether the list has as many items as there are places before this one, and memory for one more.
///
/// # Safety
///
/// It is a list, and the lock is held.
#[inline]
unsafe fn has_next_place(list: *mut c::PyObject, place: isize) -> bool {
    // SAFETY: the caller guarantees that it is a list.
    unsafe { c::PyList_GET_SIZE(list) == place && (*list.cast::<c::PyListObject>()).allocated > place }
}
