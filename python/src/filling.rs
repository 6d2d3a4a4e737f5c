//! Tuples and lists, filled in one go.

use pyo3::exceptions::{PyMemoryError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::bulk::LARGE;
use crate::errors::WithMessage;
use crate::pace::Pace;

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
            Err(PyTypeError::with_message(format!("into must be tuple or list, not {}", value.repr()?)))
        }
    }
}

/// A new tuple or list that is being filled.
pub(crate) struct Filling<'py> {
    /// `None` once it is finished.
    object: Option<Bound<'py, PyAny>>,
    items: *mut *mut ffi::PyObject,
    filled: usize,
    len: usize,
    /// Whether the places are new memory with anything in it, which the object does not know of yet.
    is_raw: bool,
    tracked: bool,
}

/// From so many items on, CPython would write to all new places before we do, which takes milliseconds.
const MANY: usize = LARGE / size_of::<*mut ffi::PyObject>() / 4;

/// CPython keeps tuples of up to 20 items for later, and takes them for as large as they say.
const KEPT_TUPLES: usize = 32;

impl<'py> Filling<'py> {
    /// One with `len` places, all empty. The garbage collector, and who asks it, does not see it before it is full.
    pub(crate) fn new(py: Python<'py>, into: Container, len: usize) -> PyResult<Self> {
        let size = ffi::Py_ssize_t::try_from(len)?;
        let is_raw = len >= MANY && !cfg!(Py_GIL_DISABLED);
        // SAFETY: the lock is held; the items of a new object that nobody else has seen are ours to set. Tuples and lists
        // are of the collector's kind, and one may be taken from it that it does not have.
        unsafe {
            let (object, items) = match into {
                Container::Tuple if is_raw => new_tuple(py, size)?,
                Container::List if is_raw => new_list(py, size)?,
                Container::Tuple => {
                    let object = Bound::from_owned_ptr_or_err(py, ffi::PyTuple_New(size))?;
                    let items = places_of_tuple(&object);
                    (object, items)
                }
                Container::List => {
                    let object = Bound::from_owned_ptr_or_err(py, ffi::PyList_New(size))?;
                    let items = (*object.as_ptr().cast::<ffi::PyListObject>()).ob_item;
                    (object, items)
                }
            };
            ffi::PyObject_GC_UnTrack(object.as_ptr().cast());
            let tracked = into == Container::List;
            Ok(Self { object: Some(object), items, filled: 0, len, is_raw, tracked })
        }
    }

    /// The same, of objects that may hold others: the collector will know a tuple, too. (It never knows the empty one, of
    /// which there is one for all.)
    pub(crate) fn of_any(mut self) -> Self {
        self.tracked |= self.len > 0;
        self
    }

    /// Puts `item` in the next place.
    ///
    /// # Panics
    ///
    /// If there is none.
    #[inline]
    pub(crate) fn push<T>(&mut self, item: Bound<'py, T>) {
        assert!(self.filled < self.len, "more items than places");
        // SAFETY: the place is one of the object's, and still empty.
        unsafe { self.items.add(self.filled).write(item.into_ptr()) };
        self.filled += 1;
    }

    /// Puts `count` items in the next places, or those before the first that cannot be made.
    ///
    /// # Panics
    ///
    /// If there are not so many, of one or the other.
    #[inline]
    pub(crate) fn try_extend<T>(
        &mut self,
        count: usize,
        items: impl Iterator<Item = PyResult<Bound<'py, T>>>,
    ) -> PyResult<()> {
        assert!(count <= self.len - self.filled, "more items than places");
        let start = self.filled;
        for (place, item) in (start..start + count).zip(items) {
            // SAFETY: as above.
            unsafe { self.items.add(place).write(item?.into_ptr()) };
            self.filled = place + 1;
        }
        assert_eq!(self.filled, start + count);
        Ok(())
    }

    /// The tuple or list. A tuple must contain nothing but objects that hold no others, unless it is one
    /// [of any](Self::of_any).
    ///
    /// # Panics
    ///
    /// If a place is still empty.
    pub(crate) fn finish(mut self) -> Bound<'py, PyAny> {
        assert_eq!(self.filled, self.len);
        let object = self.object.take().expect("finished once");
        if self.is_raw {
            // SAFETY: all places are filled.
            unsafe { set_len(&object, self.len) };
        }
        if self.tracked {
            // SAFETY: an object of the collector's kind that is not tracked yet. (The collector itself forgets tuples that
            // hold nothing that it knows when it meets them.)
            unsafe { ffi::PyObject_GC_Track(object.as_ptr().cast()) };
        }
        object
    }
}

impl Drop for Filling<'_> {
    /// What was not finished goes with the items that it has.
    fn drop(&mut self) {
        let Some(object) = self.object.take().filter(|_| self.is_raw) else { return };
        let least = if object.is_instance_of::<PyTuple>() { KEPT_TUPLES } else { 0 };
        // SAFETY: there are more places than that; those up to `filled` are filled, and the next ones are emptied here.
        unsafe {
            for empty in self.filled..least {
                self.items.add(empty).write(std::ptr::null_mut());
            }
            set_len(&object, self.filled.max(least));
        }
        drop_in_bursts(&object, self.items, self.filled);
    }
}

/// Lets go of the items of an object that is known here alone, and empties their places.
fn drop_in_bursts(object: &Bound<'_, PyAny>, items: *mut *mut ffi::PyObject, count: usize) {
    let (py, mut pace) = (object.py(), Pace::giving_way());
    for place in (0..count).rev() {
        pace.keep_quietly(py);
        // SAFETY: each of the first `count` places holds a reference, which is given up with the place.
        unsafe { ffi::Py_XDECREF(items.add(place).replace(std::ptr::null_mut())) };
    }
}

/// A tuple whose places hold anything.
///
/// # Safety
///
/// `size` is larger than what CPython keeps tuples of. Nobody may see it before its places are filled.
unsafe fn new_tuple(
    py: Python<'_>,
    size: ffi::Py_ssize_t,
) -> PyResult<(Bound<'_, PyAny>, *mut *mut ffi::PyObject)> {
    size_of_places(size)?;
    // SAFETY: this is how CPython makes tuples of this size: variable in size, not tracked, with the cached hash unset
    // where there is one.
    unsafe {
        let class = &raw mut ffi::PyTuple_Type;
        let tuple = ffi::PyObject_GC_NewVar::<ffi::PyObject>(class, size);
        let tuple = Bound::from_owned_ptr_or_err(py, tuple)?;
        #[cfg(Py_3_14)]
        {
            (*tuple.as_ptr().cast::<ffi::PyTupleObject>()).ob_hash = -1;
        }
        let items = places_of_tuple(&tuple);
        Ok((tuple, items))
    }
}

/// # Safety
///
/// It is a tuple.
unsafe fn places_of_tuple(tuple: &Bound<'_, PyAny>) -> *mut *mut ffi::PyObject {
    // SAFETY: as above.
    unsafe { (&raw mut (*tuple.as_ptr().cast::<ffi::PyTupleObject>()).ob_item).cast() }
}

/// A list without items, and its places, which hold anything.
///
/// # Safety
///
/// None of the places may be left when the length is set.
unsafe fn new_list(
    py: Python<'_>,
    size: ffi::Py_ssize_t,
) -> PyResult<(Bound<'_, PyAny>, *mut *mut ffi::PyObject)> {
    let bytes = size_of_places(size)?;
    // SAFETY: a list owns its places, which come from this allocator and go back to it.
    unsafe {
        let list = Bound::from_owned_ptr_or_err(py, ffi::PyList_New(0))?;
        let items = ffi::PyMem_Malloc(bytes).cast::<*mut ffi::PyObject>();
        if items.is_null() {
            return Err(PyMemoryError::new_err(()));
        }
        let fields = list.as_ptr().cast::<ffi::PyListObject>();
        (*fields).ob_item = items;
        (*fields).allocated = size;
        Ok((list, items))
    }
}

/// `MemoryError` for more than there can be.
fn size_of_places(places: ffi::Py_ssize_t) -> PyResult<usize> {
    const HEADERS: usize = 1 << 10;
    let bytes = places.cast_unsigned().checked_mul(size_of::<*mut ffi::PyObject>());
    let bytes = bytes.filter(|&bytes| bytes <= isize::MAX.cast_unsigned() - HEADERS);
    bytes.ok_or_else(|| PyMemoryError::new_err(()))
}

/// # Safety
///
/// It is a tuple or list, which has so many places, all of which are filled or empty.
unsafe fn set_len(object: &Bound<'_, PyAny>, len: usize) {
    // SAFETY: as above.
    unsafe { (*object.as_ptr().cast::<ffi::PyVarObject>()).ob_size = len.cast_signed() };
}
