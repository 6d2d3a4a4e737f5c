//! Token ids, and numbers in rows, as blocks of memory that Python sees without a copy.

use std::ffi::c_int;

use offlock_core::tokens::TokenId;
use pyo3::ffi;
use pyo3::prelude::*;

use crate::cpython::buffer;

/// Token ids in native byte order, 4 bytes each, behind the buffer protocol; read-only.
#[pyclass(frozen, module = "offlock._offlock")]
pub(crate) struct PackedTokens(pub(crate) Vec<TokenId>);

#[pymethods]
impl PackedTokens {
    fn __len__(&self) -> usize {
        self.0.len()
    }

    /// # Safety
    ///
    /// CPython calls this with a `view` to fill.
    unsafe fn __getbuffer__(this: &Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        // SAFETY: `view` is for CPython to fill. The memory belongs to `this` and never changes or moves: the
        // class is frozen and does not expose its vector.
        unsafe { buffer::export(this.as_any(), bytemuck::cast_slice(&this.get().0), view, flags) }
    }
}

/// Integers of 64 bits in native byte order behind the buffer protocol, which the program may change.
#[pyclass(frozen, module = "offlock._offlock")]
pub(crate) struct PackedIntegers {
    bytes: *mut [u8],
    _owner: Vec<i64>,
}

// SAFETY: nothing here reads or writes the numbers once they are made; the pointer is used for exports only.
unsafe impl Send for PackedIntegers {}
// SAFETY: as above.
unsafe impl Sync for PackedIntegers {}

impl PackedIntegers {
    pub(crate) fn new(mut numbers: Vec<i64>) -> Self {
        let size = size_of_val(&*numbers);
        let bytes = std::ptr::slice_from_raw_parts_mut(numbers.as_mut_ptr().cast(), size);
        Self { bytes, _owner: numbers }
    }
}

#[pymethods]
impl PackedIntegers {
    /// # Safety
    ///
    /// CPython calls this with a `view` to fill.
    unsafe fn __getbuffer__(this: &Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        // SAFETY: `view` is for CPython to fill. The memory belongs to `this` and never moves: the class is frozen and does not
        // expose its vector, which nothing else uses.
        unsafe { buffer::export_writable(this.as_any(), this.get().bytes, view, flags) }
    }
}
