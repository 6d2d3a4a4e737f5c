//! Numbers as one block of memory that Python sees without a copy.

use std::ffi::c_int;

use pyo3::ffi;
use pyo3::prelude::*;

use crate::cpython::buffer;
use crate::large::Large;

/// Numbers of 8 bytes each in native byte order, behind the buffer protocol; read-only.
#[pyclass(frozen, module = "offlock._offlock.pipeline")]
pub(super) struct PackedNumbers(pub(super) Large<Vec<u64>>);

#[pymethods]
impl PackedNumbers {
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
