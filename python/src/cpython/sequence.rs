//! Tuples and lists, filled in one go, while no code of the program can find them.

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
pub(crate) struct SequenceBuilder<'py> {
    /// `None` once it is finished.
    object: Option<Bound<'py, PyAny>>,
    /// The places: the object's own, or those of `kept`.
    items: *mut *mut ffi::PyObject,
    filled: usize,
    len: usize,
    /// The items, where it is not known where the object has its places.
    kept: Vec<*mut ffi::PyObject>,
    /// Whether the places are new memory with anything in it, which the object does not know of yet.
    is_raw: bool,
    tracked: bool,
}

/// From so many items on, CPython would write to all new places before we do, which takes milliseconds.
const MANY: usize = LARGE / size_of::<*mut ffi::PyObject>() / 4;

/// CPython keeps tuples of up to 20 items for later, and takes them for as large as they say.
const KEPT_TUPLES: usize = 32;

impl<'py> SequenceBuilder<'py> {
    /// One with `len` places, all empty. The garbage collector does not see it before it is full.
    pub(crate) fn new(py: Python<'py>, into: Container, len: usize) -> PyResult<Self> {
        let size = ffi::Py_ssize_t::try_from(len)?;
        let knows_places = Assumption::ItemArrays.holds();
        let is_raw = len >= MANY && knows_places && !cfg!(Py_GIL_DISABLED);
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
            let mut builder =
                Self { object: Some(object), items, filled: 0, len, kept: Vec::new(), is_raw, tracked };
            if !knows_places {
                builder.kept = memory::with_room(len).map_err(no_memory)?;
                builder.items = builder.kept.as_mut_ptr();
            }
            Ok(builder)
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
        // SAFETY: the place is one of the object's, or of those kept for it, and still empty.
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
        self.hand_over();
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

    /// Puts the items that were kept in the object's places.
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
    /// What was not finished goes with the items that it has.
    fn drop(&mut self) {
        if self.object.is_some() {
            self.hand_over();
        }
        let Some(object) = self.object.take().filter(|_| self.is_raw) else { return };
        let least = if object.is_instance_of::<PyTuple>() { KEPT_TUPLES } else { 0 };
        // SAFETY: there are more places than that; those up to `filled` are filled, and the next ones are emptied here.
        unsafe {
            for empty in self.filled..least {
                self.items.add(empty).write(ptr::null_mut());
            }
            set_len(&object, self.filled.max(least));
        }
        drop_in_bursts(&object, self.items, self.filled);
    }
}

/// A list of what `make` makes of each; other threads have the lock now and then.
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

/// Lets go of the items of an object that is known here alone, and empties their places.
fn drop_in_bursts(object: &Bound<'_, PyAny>, items: *mut *mut ffi::PyObject, count: usize) {
    let (py, mut yielder) = (object.py(), Yielder::yielding());
    for place in (0..count).rev() {
        yielder.tick_quietly(py);
        // SAFETY: each of the first `count` places holds a reference, which is given up with the place.
        unsafe { ffi::Py_XDECREF(items.add(place).replace(ptr::null_mut())) };
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

/// Whether the items of lists and tuples are where `PyListObject` and `PyTupleObject` have them.
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
    // SAFETY: a list and a tuple of three items, of which the structs are as long as theirs. The first field that is not as
    // expected ends the comparison before anything is read through it.
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
