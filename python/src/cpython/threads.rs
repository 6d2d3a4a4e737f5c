//! The interpreter's thread states.

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Whether no other thread could use the lock meanwhile.
pub(crate) fn is_only_thread(_: Python<'_>) -> bool {
    // SAFETY: this thread is attached, so that it has a state. The newest state comes first in the
    // interpreter's list; it is read only if it is this thread's own, which is alive.
    unsafe {
        let this = ffi::PyThreadState_Get();
        let newest = ffi::PyInterpreterState_ThreadHead(ffi::PyInterpreterState_Get());
        newest == this && ffi::PyThreadState_Next(this).is_null()
    }
}

/// The address of this thread's state.
#[inline]
pub(crate) fn current(_: Python<'_>) -> usize {
    // SAFETY: this thread is attached, so that it has a state.
    unsafe { ffi::PyThreadState_Get() }.addr()
}

/// The dict that CPython keeps for this thread, and clears when the thread ends; `None` when there is no
/// memory for it.
pub(crate) fn dict(py: Python<'_>) -> Option<Bound<'_, PyDict>> {
    // SAFETY: this thread is attached. Returns a borrowed reference to an exact dict, or null when there is
    // no memory.
    unsafe {
        let dict = ffi::PyThreadState_GetDict();
        (!dict.is_null()).then(|| Borrowed::from_ptr(py, dict).cast_unchecked::<PyDict>().to_owned())
    }
}
