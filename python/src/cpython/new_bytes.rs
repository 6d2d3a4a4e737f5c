//! New `bytes` objects, which are filled before any other code sees them.
//!
//! An object whose size is not known in advance is made too large, and shrunk at the end. `_PyBytes_Resize`
//! would copy it; if the copy costs more than the memory is worth ([`spare_capacity`]), only the size in the
//! object's header is changed.

use std::mem::MaybeUninit;
use std::ptr;

use offlock_core::spare_capacity;
use pyo3::exceptions::PyOverflowError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::assumptions::Assumption;
use super::object;
use crate::error::WithMessage;

unsafe extern "C" {
    /// Part of the C interface and its stable ABI despite the underscore; missing in `pyo3::ffi`.
    fn _PyBytes_Resize(bytes: *mut *mut ffi::PyObject, size: ffi::Py_ssize_t) -> std::ffi::c_int;
}

/// A `bytes` with no other reference.
///
/// An unused end costs nothing: the system provides no memory for pages that were never touched.
pub(crate) struct NewBytes<'py> {
    py: Python<'py>,
    object: *mut ffi::PyObject,
    size: usize,
}

/// `OverflowError` for a size beyond the largest possible one.
pub(crate) fn too_large() -> PyErr {
    PyOverflowError::with_message("result too large")
}

impl<'py> NewBytes<'py> {
    /// An object of `size` bytes with undefined contents. `MemoryError` when there is no memory.
    pub(crate) fn new(py: Python<'py>, size: usize) -> PyResult<Self> {
        let length = ffi::Py_ssize_t::try_from(size).map_err(|_| too_large())?;
        // SAFETY: this thread is attached; without a source the content is left as it is.
        let object = unsafe { ffi::PyBytes_FromStringAndSize(ptr::null(), length) };
        if object.is_null() {
            return Err(PyErr::fetch(py));
        }
        Ok(Self { py, object, size })
    }

    pub(crate) const fn size(&self) -> usize {
        self.size
    }

    /// The memory. A `bytes` of size 0 or 1 could be shared, so that none is made.
    pub(crate) fn memory(&mut self) -> &mut [MaybeUninit<u8>] {
        // SAFETY: the object holds `size` bytes, which may be anything, and is reachable from here alone.
        unsafe {
            let start = ffi::PyBytes_AsString(self.object).cast();
            std::slice::from_raw_parts_mut(start, if self.size > 1 { self.size } else { 0 })
        }
    }

    /// The same as bytes, to be written before they are read.
    pub(crate) fn contents(&mut self) -> &mut [u8] {
        // SAFETY: the memory is valid and reachable from here alone, as in `memory`. Any bits are a byte, and
        // allocated memory reads as its current contents.
        unsafe { &mut *(ptr::from_mut(self.memory()) as *mut [u8]) }
    }

    /// Changes the size, which is more than 1 before and after; the written bytes are kept.
    pub(crate) fn resize(&mut self, size: usize) -> PyResult<()> {
        assert!(self.size > 1 && size > 1);
        ffi::Py_ssize_t::try_from(size).map_err(|_| too_large())?;
        // SAFETY: the only reference, as the size is more than 1; on failure the object is freed.
        self.object = unsafe { resize(self.object, size) };
        if self.object.is_null() {
            return Err(PyErr::fetch(self.py));
        }
        self.size = size;
        Ok(())
    }

    /// The object, cut to its first `length` bytes.
    ///
    /// # Safety
    ///
    /// These bytes were written.
    pub(crate) unsafe fn finish(mut self, length: usize) -> PyResult<Bound<'py, PyBytes>> {
        let object = std::mem::replace(&mut self.object, ptr::null_mut());
        // SAFETY: the only reference, to a `bytes` whose first `length` bytes were written.
        unsafe { finish(self.py, object, length, self.size).map(|object| object.cast_into_unchecked()) }
    }
}

impl Drop for NewBytes<'_> {
    fn drop(&mut self) {
        // SAFETY: the reference that `new` made, if `finish` did not pass it on; the lock is held, as `py`
        // shows.
        unsafe { ffi::Py_XDECREF(self.object) };
    }
}

/// Changes the capacity, and keeps as much of the content as fits. Null, with an exception set, when there is
/// no memory.
///
/// # Safety
/// The lock is held, and the object is a `bytes` with a single reference, which this takes over.
pub(super) unsafe fn resize(mut object: *mut ffi::PyObject, room: usize) -> *mut ffi::PyObject {
    // SAFETY: the contract of this function; on failure the object is freed and the pointer null.
    unsafe { _PyBytes_Resize(&raw mut object, room.cast_signed()) };
    object
}

/// The finished object: the first `length` of a capacity of `room` bytes.
///
/// # Safety
/// As for [`resize`]; those bytes were written.
pub(super) unsafe fn finish(
    py: Python<'_>,
    mut object: *mut ffi::PyObject,
    length: usize,
    room: usize,
) -> PyResult<Bound<'_, PyAny>> {
    // SAFETY: the contract of this function.
    unsafe {
        if spare_capacity::is_kept(length, room) && Assumption::BytesSize.holds() {
            cut(object, length);
        } else {
            object = resize(object, length);
        }
        Bound::from_owned_ptr_or_err(py, object)
    }
}

/// Makes a `bytes` shorter in place.
///
/// # Safety
/// It has a single reference, and is longer.
unsafe fn cut(object: *mut ffi::PyObject, length: usize) {
    // SAFETY: the contract of this function. CPython puts a zero after the content, for which the object has
    // capacity.
    unsafe {
        ffi::PyBytes_AS_STRING(object).cast_mut().add(length).write(0);
        (*object.cast::<ffi::PyVarObject>()).ob_size = length.cast_signed();
    }
}

/// Whether CPython reads the size field that is written here.
pub(super) fn probe(py: Python<'_>) -> PyResult<bool> {
    const LONGER: &[u8] = b"a sample to be cut";
    const SHORTER: &[u8] = b"a sample";
    let (longer, shorter) = (object::bytes(py, LONGER)?, object::bytes(py, SHORTER)?);
    // SAFETY: a live `bytes`, which has the size field that `PyVarObject` declares if its value is the right
    // one: the object is longer than the struct. It was made here and has no other reference.
    unsafe {
        if (*longer.as_ptr().cast::<ffi::PyVarObject>()).ob_size != LONGER.len().cast_signed() {
            return Ok(false);
        }
        cut(longer.as_ptr(), SHORTER.len());
    }
    Ok(longer.as_bytes() == SHORTER && longer.as_any().eq(&shorter)? && longer.hash()? == shorter.hash()?)
}
