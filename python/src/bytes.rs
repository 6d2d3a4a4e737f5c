//! `bytes` and `str` objects that nobody has seen yet.

use offlock_core::room;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

unsafe extern "C" {
    /// Part of the C interface and its stable ABI, underscore and all; missing in `pyo3::ffi`.
    fn _PyBytes_Resize(bytes: *mut *mut ffi::PyObject, size: ffi::Py_ssize_t) -> std::ffi::c_int;
}

/// A copy of `content`. `MemoryError` when there is no memory for it.
pub(crate) fn copied<'py>(py: Python<'py>, content: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    // SAFETY: the lock is held; the pointer and the length are those of a slice. Returns a new `bytes`, or null with an
    // exception set.
    unsafe {
        let object = ffi::PyBytes_FromStringAndSize(content.as_ptr().cast(), content.len().cast_signed());
        Ok(Bound::from_owned_ptr_or_err(py, object)?.cast_into_unchecked())
    }
}

/// A `str` of these characters. `MemoryError` when there is no memory for it.
pub(crate) fn text<'py>(py: Python<'py>, content: &str) -> PyResult<Bound<'py, PyString>> {
    // SAFETY: the lock is held; the pointer and the length are those of a slice, which is UTF-8. Returns a new `str`, or null
    // with an exception set.
    unsafe {
        let bytes = content.as_bytes();
        let object =
            ffi::PyUnicode_DecodeUTF8(bytes.as_ptr().cast(), bytes.len().cast_signed(), std::ptr::null());
        Ok(Bound::from_owned_ptr_or_err(py, object)?.cast_into_unchecked())
    }
}

/// Changes the room for the content, of which as much is kept as fits. Null, with an exception set, when there is no memory.
///
/// # Safety
/// The lock is held, and the object is a `bytes` with a single reference, which is given up.
pub(crate) unsafe fn resize(mut object: *mut ffi::PyObject, room: usize) -> *mut ffi::PyObject {
    // SAFETY: the contract of this function; on failure the object is gone and the pointer null.
    unsafe { _PyBytes_Resize(&raw mut object, room.cast_signed()) };
    object
}

/// The finished object: the first `length` of the `room` bytes that there is room for.
///
/// # Safety
/// As for [`resize`]; those bytes were written.
pub(crate) unsafe fn finish(
    py: Python<'_>,
    mut object: *mut ffi::PyObject,
    length: usize,
    room: usize,
) -> PyResult<Bound<'_, PyAny>> {
    // SAFETY: the contract of this function. CPython puts a zero behind the content, for which it has made room.
    unsafe {
        if room::is_kept(length, room) {
            ffi::PyBytes_AS_STRING(object).cast_mut().add(length).write(0);
            (*object.cast::<ffi::PyVarObject>()).ob_size = length.cast_signed();
        } else {
            object = resize(object, length);
        }
        Bound::from_owned_ptr_or_err(py, object)
    }
}
