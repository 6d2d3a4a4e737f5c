//! Short tuples and lists.

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyList;

use super::assumptions::Assumption;
use super::object::{owned, size};

/// A list of few items, in two thirds of the time that `PyList::new` takes.
#[inline]
pub(crate) fn short_list<'py>(
    py: Python<'py>,
    items: impl ExactSizeIterator<Item = PyResult<Bound<'py, PyAny>>>,
) -> PyResult<Bound<'py, PyList>> {
    let (count, knows_places) = (items.len(), Assumption::ItemArrays.holds());
    // SAFETY: the new list has as many places, all empty, and no other references until it is returned. Each
    // place is filled once, and takes over the reference.
    unsafe {
        let list = owned(py, ffi::PyList_New(count.cast_signed()))?;
        if knows_places {
            let places = (*list.as_ptr().cast::<ffi::PyListObject>()).ob_item;
            for (place, item) in (0..count).zip(items) {
                places.add(place).write(item?.into_ptr());
            }
        } else {
            for (place, item) in (0..count.cast_signed()).zip(items) {
                ffi::PyList_SetItem(list.as_ptr(), place, item?.into_ptr());
            }
        }
        Ok(list.cast_into_unchecked())
    }
}

/// A new tuple of a few objects of any type.
pub(crate) fn short_tuple<'py>(
    py: Python<'py>,
    items: impl ExactSizeIterator<Item = Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let count = items.len();
    // SAFETY: the new tuple has as many places, all empty, and no other references until it is returned. Each
    // place is filled once, and takes over the reference.
    unsafe {
        let tuple = owned(py, ffi::PyTuple_New(count.cast_signed()))?;
        for (place, item) in (0..count).zip(items) {
            ffi::PyTuple_SetItem(tuple.as_ptr(), place.cast_signed(), item.into_ptr());
        }
        Ok(tuple)
    }
}

/// A new tuple of two ints. The garbage collector does not visit it: as it refers to no containers it is in no cycle, for which
/// reason the collector itself drops such tuples at its first visit.
pub(crate) fn pair_of_ints(py: Python<'_>, first: usize, second: usize) -> PyResult<Bound<'_, PyAny>> {
    let ints = [size(py, first)?.into_any(), size(py, second)?.into_any()];
    let pair = short_tuple(py, ints.into_iter())?;
    // SAFETY: it is a tuple, and nothing else refers to it.
    unsafe { ffi::PyObject_GC_UnTrack(pair.as_ptr().cast()) };
    Ok(pair)
}
