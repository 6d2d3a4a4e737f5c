//! Token ids, and numbers in rows, as blocks of memory that Python sees without a copy.

use std::cell::UnsafeCell;
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
pub(crate) struct PackedIntegers(UnsafeCell<Vec<i64>>);

// SAFETY: nothing here reads or writes the numbers once they are made.
unsafe impl Sync for PackedIntegers {}

impl PackedIntegers {
    pub(crate) const fn new(numbers: Vec<i64>) -> Self {
        Self(UnsafeCell::new(numbers))
    }
}

#[pymethods]
impl PackedIntegers {
    /// # Safety
    ///
    /// CPython calls this with a `view` to fill.
    unsafe fn __getbuffer__(this: &Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let numbers = this.get().0.get();
        // SAFETY: the vector belongs to `this` and never changes, so that its memory stays where it is; `view` is for CPython
        // to fill. No reference to the numbers themselves is made.
        unsafe {
            let size = (*numbers).len() * size_of::<i64>();
            let bytes = std::ptr::slice_from_raw_parts_mut((*numbers).as_mut_ptr().cast::<u8>(), size);
            buffer::export_writable(this.as_any(), bytes, view, flags)
        }
    }
}
