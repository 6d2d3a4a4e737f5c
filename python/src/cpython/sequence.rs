//! Tuples and lists, filled in one pass, while no code of the program can find them.

use std::ptr;

use offlock_core::memory;
use pyo3::exceptions::{PyMemoryError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use super::assumptions::Assumption;
use crate::error::{WithMessage, no_memory};
use crate::gil_yield::Yielder;
use crate::large::LARGE;

/// The kind of object that holds the strings.
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
pub(crate) struct SequenceBuilder<'py> {
    /// `None` once it is finished.
    object: Option<Bound<'py, PyAny>>,
    /// The places of the items: the object's own, or those of `kept`.
    items: *mut *mut ffi::PyObject,
    filled: usize,
    len: usize,
    /// The items, where the position of the object's places is not known.
    kept: Vec<*mut ffi::PyObject>,
    /// Whether the places are new uninitialized memory, which the object does not refer to yet.
    is_raw: bool,
    tracked: bool,
}

/// From this many items on, CPython's own initialization of all new places takes milliseconds.
const MANY: usize = LARGE / size_of::<*mut ffi::PyObject>() / 4;

/// CPython caches freed tuples of up to 20 items, and relies on their size fields.
const KEPT_TUPLES: usize = 32;

impl<'py> SequenceBuilder<'py> {
    /// A sequence with `len` places, all empty. The garbage collector does not see it before it is full.
    pub(crate) fn new(py: Python<'py>, into: Container, len: usize) -> PyResult<Self> {
        let size = ffi::Py_ssize_t::try_from(len)?;
        let knows_places = Assumption::ItemArrays.holds();
        let is_raw = len >= MANY && knows_places && !cfg!(Py_GIL_DISABLED);
        // SAFETY: the lock is held; the items of a new object without other references may be set. The
        // collector supports tuples and lists, and untracking one that it does not track is allowed.
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
            let mut builder =
                Self { object: Some(object), items, filled: 0, len, kept: Vec::new(), is_raw, tracked };
            if !knows_places {
                builder.kept = memory::with_capacity(len).map_err(no_memory)?;
                builder.items = builder.kept.as_mut_ptr();
            }
            Ok(builder)
        }
    }

    /// The same, for objects that may hold others: the collector will also track a tuple. (It never tracks
    /// the empty tuple, which is a singleton.)
    pub(crate) fn of_any(mut self) -> Self {
        self.tracked |= self.len > 0;
        self
    }

    /// Stores `item` in the next place.
    ///
    /// # Panics
    ///
    /// If there is no place left.
    #[inline]
    pub(crate) fn push<T>(&mut self, item: Bound<'py, T>) {
        assert!(self.filled < self.len, "more items than places");
        // SAFETY: the place is one of the object's, or of those kept for it, and still empty.
        unsafe { self.items.add(self.filled).write(item.into_ptr()) };
        self.filled += 1;
    }

    /// Stores `count` items in the next places, or those before the first that cannot be made.
    ///
    /// # Panics
    ///
    /// If there are fewer places, or fewer items.
    #[inline]
    pub(crate) fn try_extend<T>(
        &mut self,
        count: usize,
        items: impl Iterator<Item = PyResult<Bound<'py, T>>>,
    ) -> PyResult<()> {
        assert!(count <= self.len - self.filled, "more items than places");
        let start = self.filled;
        for (place, item) in (start..start + count).zip(items) {
            // SAFETY: `place` is less than `len`, as the assertion checks.
            unsafe { self.items.add(place).write(item?.into_ptr()) };
            self.filled = place + 1;
        }
        assert_eq!(self.filled, start + count);
        Ok(())
    }

    /// The tuple or list. A tuple must contain only objects that hold no others, unless it was made by
    /// [`of_any`](Self::of_any).
    ///
    /// # Panics
    ///
    /// If a place is still empty.
    pub(crate) fn finish(mut self) -> Bound<'py, PyAny> {
        assert_eq!(self.filled, self.len);
        self.hand_over();
        let object = self.object.take().expect("finished once");
        if self.is_raw {
            // SAFETY: all places are filled.
            unsafe { set_len(&object, self.len) };
        }
        if self.tracked {
            // SAFETY: an object that the collector supports and does not track yet. (The collector itself
            // untracks tuples that hold no tracked objects when it visits them.)
            unsafe { ffi::PyObject_GC_Track(object.as_ptr().cast()) };
        }
        object
    }

    /// Moves the kept items into the object's places.
    fn hand_over(&mut self) {
        if self.kept.capacity() == 0 {
            return;
        }
        let object = self.object.as_ref().expect("not finished").as_ptr();
        for place in 0..std::mem::take(&mut self.filled) {
            // SAFETY: a kept item, whose reference a list, or a tuple with a single reference, takes over.
            unsafe {
                let (item, place) = (self.items.add(place).read(), place.cast_signed());
                if ffi::PyList_Check(object) != 0 {
                    ffi::PyList_SetItem(object, place, item);
                } else {
                    ffi::PyTuple_SetItem(object, place, item);
                }
            }
        }
    }
}

impl Drop for SequenceBuilder<'_> {
    /// An unfinished object is freed with its items.
    fn drop(&mut self) {
        if self.object.is_some() {
            self.hand_over();
        }
        let Some(object) = self.object.take().filter(|_| self.is_raw) else { return };
        let least = if object.is_instance_of::<PyTuple>() { KEPT_TUPLES } else { 0 };
        // SAFETY: there are more places than that; those up to `filled` are filled, and the next ones are
        // emptied here.
        unsafe {
            for empty in self.filled..least {
                self.items.add(empty).write(ptr::null_mut());
            }
            set_len(&object, self.filled.max(least));
        }
        drop_in_bursts(&object, self.items, self.filled);
    }
}

/// A list of the results of `make` for each item; other threads can hold the lock between items.
pub(crate) fn list_of_each<'py, T, U>(
    py: Python<'py>,
    all: &[T],
    yielder: &mut Yielder,
    make: impl Fn(&T) -> PyResult<Bound<'py, U>>,
) -> PyResult<Bound<'py, PyList>> {
    let mut list = SequenceBuilder::new(py, Container::List, all.len())?;
    for item in all {
        yielder.tick(py)?;
        list.push(make(item)?);
    }
    Ok(list.finish().cast_into()?)
}

/// Releases the items of an object with no other references, and empties their places.
fn drop_in_bursts(object: &Bound<'_, PyAny>, items: *mut *mut ffi::PyObject, count: usize) {
    let (py, mut yielder) = (object.py(), Yielder::yielding());
    for place in (0..count).rev() {
        yielder.tick_quietly(py);
        // SAFETY: each of the first `count` places holds a reference, which is released with the place.
        unsafe { ffi::Py_XDECREF(items.add(place).replace(ptr::null_mut())) };
    }
}

/// A tuple whose places are uninitialized.
///
/// # Safety
///
/// `size` is larger than that of the tuples that CPython caches. No other code may see the tuple before its
/// places are filled.
unsafe fn new_tuple(
    py: Python<'_>,
    size: ffi::Py_ssize_t,
) -> PyResult<(Bound<'_, PyAny>, *mut *mut ffi::PyObject)> {
    size_of_places(size)?;
    // SAFETY: this is how CPython makes tuples of this size: variable in size, not tracked, with the cached
    // hash unset where there is one.
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
    // SAFETY: the caller guarantees that it is a tuple, whose items are an array in this field.
    unsafe { (&raw mut (*tuple.as_ptr().cast::<ffi::PyTupleObject>()).ob_item).cast() }
}

/// A list without items, and its places, which are uninitialized.
///
/// # Safety
///
/// Every place within the length is filled when the length is set.
pub(super) unsafe fn new_list(
    py: Python<'_>,
    size: ffi::Py_ssize_t,
) -> PyResult<(Bound<'_, PyAny>, *mut *mut ffi::PyObject)> {
    let bytes = size_of_places(size)?;
    // SAFETY: a list owns its places, which this allocator allocates and frees.
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

/// `MemoryError` for a length beyond the largest possible one.
fn size_of_places(places: ffi::Py_ssize_t) -> PyResult<usize> {
    const HEADERS: usize = 1 << 10;
    let bytes = places.cast_unsigned().checked_mul(size_of::<*mut ffi::PyObject>());
    let bytes = bytes.filter(|&bytes| bytes <= isize::MAX.cast_unsigned() - HEADERS);
    bytes.ok_or_else(|| PyMemoryError::new_err(()))
}

/// # Safety
///
/// It is a tuple or list with this many places, all of which are filled or empty.
unsafe fn set_len(object: &Bound<'_, PyAny>, len: usize) {
    // SAFETY: the caller guarantees that it is a tuple or list with as many filled or empty places.
    unsafe { (*object.as_ptr().cast::<ffi::PyVarObject>()).ob_size = len.cast_signed() };
}

/// Whether the items of lists and tuples are where `PyListObject` and `PyTupleObject` declare them.
pub(super) fn probe(py: Python<'_>) -> PyResult<bool> {
    let items = [
        py.None().into_any(),
        py.get_type::<PyList>().into_any().unbind(),
        py.get_type::<PyTuple>().into_any().unbind(),
    ];
    let (list, tuple) = (PyList::new(py, &items)?, PyTuple::new(py, &items)?);
    let size = |class: Bound<'_, PyAny>| class.getattr("__basicsize__")?.extract::<usize>();
    if size(py.get_type::<PyList>().into_any())? != size_of::<ffi::PyListObject>()
        || size(py.get_type::<PyTuple>().into_any())? + size_of::<*mut ffi::PyObject>()
            != size_of::<ffi::PyTupleObject>()
    {
        return Ok(false);
    }
    let expected = items.each_ref().map(Py::as_ptr);
    // SAFETY: a list and a tuple of three items, which are at least as long as the structs. The first
    // unexpected field ends the comparison before a pointer is followed.
    unsafe {
        let fields = list.as_ptr().cast::<ffi::PyListObject>();
        let has_room = (*fields).allocated >= 3 && (*fields).ob_base.ob_size == 3;
        let in_list = has_room && std::slice::from_raw_parts((*fields).ob_item, 3) == expected;
        let fields = tuple.as_ptr().cast::<ffi::PyTupleObject>();
        let in_tuple = in_list && (*fields).ob_base.ob_size == 3 && {
            let first = (&raw const (*fields).ob_item).cast::<*mut ffi::PyObject>();
            std::slice::from_raw_parts(first, 3) == expected
        };
        Ok(in_tuple)
    }
}
