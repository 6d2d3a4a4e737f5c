//! Tuples and lists, filled in one go.

use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

/// What the strings are put into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Container {
    Tuple,
    List,
}

impl<'py> FromPyObject<'_, 'py> for Container {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let py = value.py();
        if value.is(py.get_type::<PyTuple>()) {
            Ok(Self::Tuple)
        } else if value.is(py.get_type::<PyList>()) {
            Ok(Self::List)
        } else {
            Err(PyTypeError::new_err(format!("into must be tuple or list, not {}", value.repr()?)))
        }
    }
}

/// A new tuple or list that is being filled.
pub(super) struct Filling<'py> {
    object: Bound<'py, PyAny>,
    items: *mut *mut ffi::PyObject,
    filled: usize,
    len: usize,
}

impl<'py> Filling<'py> {
    /// One with `len` places, all empty. The garbage collector, and who asks it, does not see it before it is full.
    pub(super) fn new(py: Python<'py>, into: Container, len: usize) -> PyResult<Self> {
        let size = ffi::Py_ssize_t::try_from(len)?;
        // SAFETY: the lock is held; the items of a new object that nobody else has seen are ours to set. Tuples and lists
        // are of the collector's kind, and one may be taken from it that it does not have.
        unsafe {
            let new = if into == Container::Tuple { ffi::PyTuple_New(size) } else { ffi::PyList_New(size) };
            let object = Bound::from_owned_ptr_or_err(py, new)?;
            ffi::PyObject_GC_UnTrack(object.as_ptr().cast());
            let items = match into {
                Container::Tuple => (&raw mut (*new.cast::<ffi::PyTupleObject>()).ob_item).cast(),
                Container::List => (*new.cast::<ffi::PyListObject>()).ob_item,
            };
            Ok(Self { object, items, filled: 0, len })
        }
    }

    /// Puts `item` in the next place.
    ///
    /// # Panics
    ///
    /// If there is none.
    #[inline]
    pub(super) fn push(&mut self, item: Bound<'py, PyAny>) {
        assert!(self.filled < self.len, "more items than places");
        // SAFETY: the place is one of the object's, and still empty.
        unsafe { self.items.add(self.filled).write(item.into_ptr()) };
        self.filled += 1;
    }

    /// The tuple or list. A tuple must contain nothing but objects that hold no others.
    ///
    /// # Panics
    ///
    /// If a place is still empty.
    pub(super) fn finish(self) -> Bound<'py, PyAny> {
        assert_eq!(self.filled, self.len);
        if self.object.is_instance_of::<PyList>() {
            // SAFETY: a list that is not tracked yet. (The collector itself forgets tuples like these when it meets them.)
            unsafe { ffi::PyObject_GC_Track(self.object.as_ptr().cast()) };
        }
        self.object
    }
}
