//! A `bytes` object that is filled before anyone sees it.

use std::mem::MaybeUninit;

use offlock_core::deflate::Bytes as Rest;
use pyo3::exceptions::PyOverflowError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::bulk::Bulk;
use crate::bytes;
use crate::errors::WithMessage;

/// Memory inside a new `bytes`, for a result whose size is not known yet.
///
/// What is lent too much costs nothing: large memory that was never touched is no memory yet.
pub(super) struct Lent<'py> {
    py: Python<'py>,
    object: *mut ffi::PyObject,
    size: usize,
}

impl<'py> Lent<'py> {
    /// `MemoryError` when there is no such piece of memory.
    pub(super) fn new(py: Python<'py>, size: usize) -> PyResult<Self> {
        let length =
            ffi::Py_ssize_t::try_from(size).map_err(|_| PyOverflowError::with_message("result too large"))?;
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
    pub(super) fn finish(mut self, used: usize, rest: Rest) -> PyResult<Bound<'py, PyBytes>> {
        let rest = Bulk::new(rest);
        let mut length = used;
        if !rest.is_empty() {
            length = used.checked_add(rest.len()).ok_or_else(bytes::too_large)?;
            if self.size < 2 {
                return bytes::copied(self.py, &rest);
            }
            // To free large memory would take long, and hold the lock: so it grows instead.
            self.resize(length)?;
            bytes::fill(self.py, &mut self.memory()[used..], &[&rest])?;
        }
        let object = std::mem::replace(&mut self.object, std::ptr::null_mut());
        // SAFETY: the only reference, to a `bytes` whose first `length` bytes were written.
        let finished = unsafe { bytes::finish(self.py, object, length, self.size) }?;
        // SAFETY: as above.
        Ok(unsafe { finished.cast_into_unchecked() })
    }

    /// Changes the size, which is more than 1 before and after; what was written is kept.
    fn resize(&mut self, size: usize) -> PyResult<()> {
        ffi::Py_ssize_t::try_from(size).map_err(|_| bytes::too_large())?;
        // SAFETY: the only reference, as the size is more than 1; on failure there is no object any more.
        self.object = unsafe { bytes::resize(self.object, size) };
        if self.object.is_null() {
            return Err(PyErr::fetch(self.py));
        }
        self.size = size;
        Ok(())
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        // SAFETY: the reference that `new` made, if `finish` did not pass it on; the lock is held, as `py` shows.
        unsafe { ffi::Py_XDECREF(self.object) };
    }
}
