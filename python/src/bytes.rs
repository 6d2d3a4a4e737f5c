//! `bytes` objects that nobody has seen yet.

use offlock_core::room;
use pyo3::ffi;
use pyo3::prelude::*;

unsafe extern "C" {
    /// Part of the C interface and its stable ABI, underscore and all; missing in `pyo3::ffi`.
    fn _PyBytes_Resize(bytes: *mut *mut ffi::PyObject, size: ffi::Py_ssize_t) -> std::ffi::c_int;
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
