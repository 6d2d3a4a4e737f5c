//! Token ids as one block of memory that Python sees without a copy.

use std::ffi::c_int;

use offlock_core::tokens::TokenId;
use pyo3::ffi;
use pyo3::prelude::*;

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
    unsafe fn __getbuffer__(this: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let ids = &this.get().0;
        let bytes = size_of_val(ids.as_slice()) as ffi::Py_ssize_t;
        // SAFETY: `view` is CPython's to fill. The memory belongs to `this`, to which the view takes a reference, and never changes
        // or moves: the class is frozen and lends its vector to nobody.
        let done = unsafe {
            ffi::PyBuffer_FillInfo(view, this.as_ptr(), ids.as_ptr().cast_mut().cast(), bytes, 1, flags)
        };
        if done == 0 { Ok(()) } else { Err(PyErr::fetch(this.py())) }
    }
}
