//! A `bytes` object that is filled before anyone sees it.

use std::mem::MaybeUninit;

use pyo3::exceptions::PyOverflowError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

unsafe extern "C" {
    /// Part of the C interface and its stable ABI, underscore and all; missing in `pyo3::ffi`.
    fn _PyBytes_Resize(bytes: *mut *mut ffi::PyObject, size: ffi::Py_ssize_t) -> std::ffi::c_int;
}

/// Memory inside a new `bytes`, for a result whose size is not known yet.
///
/// What is lent too much costs nothing: large memory that was never touched is given back as it came.
pub(super) struct Lent<'py> {
    py: Python<'py>,
    object: *mut ffi::PyObject,
    size: usize,
}

impl<'py> Lent<'py> {
    /// `MemoryError` when there is no such piece of memory.
    pub(super) fn new(py: Python<'py>, size: usize) -> PyResult<Self> {
        let length =
            ffi::Py_ssize_t::try_from(size).map_err(|_| PyOverflowError::new_err("result too large"))?;
        // SAFETY: the lock is held; without a source the content is left as it is.
        let object = unsafe { ffi::PyBytes_FromStringAndSize(std::ptr::null(), length) };
        if object.is_null() {
            return Err(PyErr::fetch(py));
        }
        Ok(Self { py, object, size })
    }

    /// The memory; nobody else knows of it.
    pub(super) fn memory(&mut self) -> &mut [MaybeUninit<u8>] {
        // SAFETY: the object holds `size` bytes, which may be anything, and is reachable from here alone. A size of 0
        // or 1 could give a shared object: nothing is lent then.
        unsafe {
            let start = ffi::PyBytes_AsString(self.object).cast();
            std::slice::from_raw_parts_mut(start, if self.size > 1 { self.size } else { 0 })
        }
    }

    /// The object, cut to its first `used` bytes, all of which must be written; with `rest` behind them.
    pub(super) fn finish(mut self, used: usize, rest: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
        if !rest.is_empty() {
            // SAFETY: the first `used` bytes were written, as the caller says.
            let start: &[u8] = unsafe { std::slice::from_raw_parts(self.memory().as_ptr().cast(), used) };
            return PyBytes::new_with(self.py, used + rest.len(), |both| {
                both[..used].copy_from_slice(start);
                both[used..].copy_from_slice(rest);
                Ok(())
            });
        }
        // SAFETY: this holds the only reference; on failure the object is gone and the pointer null.
        let failed = unsafe { _PyBytes_Resize(&mut self.object, used as ffi::Py_ssize_t) } != 0;
        let object = std::mem::replace(&mut self.object, std::ptr::null_mut());
        if failed {
            return Err(PyErr::fetch(self.py));
        }
        // SAFETY: a new reference to a `bytes`.
        Ok(unsafe { Bound::from_owned_ptr(self.py, object).cast_into_unchecked() })
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        // SAFETY: the reference that `new` made, if `finish` did not pass it on; the lock is held, as `py` shows.
        unsafe { ffi::Py_XDECREF(self.object) };
    }
}
