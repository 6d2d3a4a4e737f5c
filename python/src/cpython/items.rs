//! The items of lists, tuples and dicts, read without a call for each, by the macros of CPython's interface.

use std::ffi::c_int;
use std::ops::Range;
use std::ptr;

use pyo3::ffi as c;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

#[cfg(not(Py_3_13))]
use super::assumptions::Assumption;

#[cfg(not(Py_3_13))]
unsafe extern "C" {
    /// The function that `PyDict_Next` calls; calling it directly saves a call.
    fn _PyDict_Next(
        dict: *mut c::PyObject,
        at: *mut c::Py_ssize_t,
        key: *mut *mut c::PyObject,
        value: *mut *mut c::PyObject,
        hash: *mut c::Py_hash_t,
    ) -> c_int;
}

/// The length of a list.
#[inline]
pub(crate) fn list_length(list: &Bound<'_, PyAny>) -> usize {
    debug_assert!(list.is_instance_of::<PyList>());
    // SAFETY: the caller checked the type.
    unsafe { c::PyList_GET_SIZE(list.as_ptr()).cast_unsigned() }
}

/// The item of a list at `place`, or `None` past its end. Only on builds with the lock, where no other thread
/// can remove the item before the caller has taken a reference.
#[inline]
pub(crate) fn list_item<'a, 'py>(
    list: &'a Bound<'py, PyAny>,
    place: usize,
) -> Option<Borrowed<'a, 'py, PyAny>> {
    if place >= list_length(list) {
        return None;
    }
    // SAFETY: a list, whose length was just checked; the reference is borrowed.
    unsafe {
        let item = c::PyList_GET_ITEM(list.as_ptr(), place.cast_signed());
        Some(Borrowed::from_ptr(list.py(), item))
    }
}

/// Appends the values of the items at `places`, up to the first that is not exactly an `int` or not a `u32`.
/// Reads without taking references, which would take longer than the reads. Only on builds with the lock.
pub(crate) fn append_leading_ints(list: &Bound<'_, PyList>, places: Range<usize>, values: &mut Vec<u32>) {
    assert!(places.end <= list_length(list));
    // SAFETY: the list has this many items, and keeps them during the reads: with the lock held, reading
    // exact ints runs no code that could release it or change the list.
    unsafe {
        let mut overflow = 0;
        let exact = |item: &*mut c::PyObject| c::PyLong_CheckExact(*item) == 1;
        let items = places.map(|place| c::PyList_GET_ITEM(list.as_ptr(), place.cast_signed()));
        let ints = items.take_while(exact).map(|item| c::PyLong_AsLongAndOverflow(item, &raw mut overflow));
        values.extend(ints.map_while(|value| u32::try_from(value).ok()));
    }
}

/// The item of a tuple at `place`, or `None` past its end.
#[inline]
pub(crate) fn tuple_item<'a, 'py>(
    tuple: &'a Bound<'py, PyAny>,
    place: usize,
) -> Option<Borrowed<'a, 'py, PyAny>> {
    if place >= tuple_length(tuple) {
        return None;
    }
    // SAFETY: a tuple, whose length never changes and was just checked; the reference is borrowed.
    unsafe {
        let item = c::PyTuple_GET_ITEM(tuple.as_ptr(), place.cast_signed());
        Some(Borrowed::from_ptr(tuple.py(), item))
    }
}

/// The length of a tuple, or of an object of a subclass, whatever its own `__len__` says.
#[inline]
pub(crate) fn tuple_length(tuple: &Bound<'_, PyAny>) -> usize {
    debug_assert!(tuple.is_instance_of::<PyTuple>());
    // SAFETY: the caller checked the type.
    unsafe { c::PyTuple_GET_SIZE(tuple.as_ptr()).cast_unsigned() }
}

/// The next entry of an exact dict; `at` is 0 at first. If the dict was changed meanwhile, it may be any
/// entry, or none. On builds without the lock only the caller may use the dict. The caller takes references
/// before any other code can run.
#[inline(always)]
pub(crate) fn dict_entry<'a, 'py>(
    dict: &'a Bound<'py, PyDict>,
    at: &mut c::Py_ssize_t,
) -> Option<(Borrowed<'a, 'py, PyAny>, Borrowed<'a, 'py, PyAny>)> {
    let (mut key, mut value) = (ptr::null_mut(), ptr::null_mut());
    // SAFETY: a dict, and valid places for the borrowed references.
    unsafe {
        if dict_next(dict.as_ptr(), at, &raw mut key, &raw mut value) == 0 {
            return None;
        }
        Some((Borrowed::from_ptr(dict.py(), key), Borrowed::from_ptr(dict.py(), value)))
    }
}

/// As `PyDict_Next`.
///
/// # Safety
///
/// The lock is held; an exact dict, and valid places for the results.
#[inline(always)]
unsafe fn dict_next(
    dict: *mut c::PyObject,
    at: *mut c::Py_ssize_t,
    key: *mut *mut c::PyObject,
    value: *mut *mut c::PyObject,
) -> c_int {
    #[cfg(not(Py_3_13))]
    if Assumption::PrivateFunctions.holds() {
        // SAFETY: exactly the contract of this function; the hash is not requested.
        return unsafe { _PyDict_Next(dict, at, key, value, ptr::null_mut()) };
    }
    // SAFETY: exactly the contract of this function.
    unsafe { c::PyDict_Next(dict, at, key, value) }
}
