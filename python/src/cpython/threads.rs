//! The interpreter's thread states.

#[cfg(not(Py_GIL_DISABLED))]
use std::ptr;

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

/// A number of this thread for [`frame_of`].
#[cfg(not(Py_GIL_DISABLED))]
pub(crate) fn number(_: Python<'_>) -> PyResult<i64> {
    // SAFETY: this thread is attached, so that it has a state. No other state of the interpreter gets its number.
    Ok(unsafe { ffi::PyThreadState_GetID(ffi::PyThreadState_Get()) })
}

/// The frame that the thread with this number executes; `None` if it has ended or executes no Python code.
///
/// `sys._current_frames` also makes frames of the threads of other interpreters. These have locks of their own and run
/// meanwhile, so CPython 3.12 to 3.14 corrupt their heap.
#[cfg(not(Py_GIL_DISABLED))]
pub(crate) fn frame_of(py: Python<'_>, number: i64) -> PyResult<Option<Bound<'_, PyAny>>> {
    // SAFETY: the lock is held, without which no thread state of this interpreter is removed from its list, nor does a thread
    // of it execute Python code. New states come first in the list. GetFrame returns a new reference or null.
    unsafe {
        let mut state = ffi::PyInterpreterState_ThreadHead(ffi::PyInterpreterState_Get());
        while !state.is_null() && ffi::PyThreadState_GetID(state) != number {
            state = ffi::PyThreadState_Next(state);
        }
        let frame = if state.is_null() { ptr::null_mut() } else { ffi::PyThreadState_GetFrame(state) };
        Ok(Bound::from_owned_ptr_or_opt(py, frame.cast()))
    }
}

/// A number of this thread for [`frame_of`].
#[cfg(Py_GIL_DISABLED)]
pub(crate) fn number(py: Python<'_>) -> PyResult<i64> {
    py.import("_thread")?.call_method0("get_ident")?.extract()
}

/// The frame that the thread with this number executes; `None` if it has ended or executes no Python code.
#[cfg(Py_GIL_DISABLED)]
pub(crate) fn frame_of(py: Python<'_>, number: i64) -> PyResult<Option<Bound<'_, PyAny>>> {
    // It stops all threads, because they run although this one is attached.
    let frames = py.import("sys")?.call_method0("_current_frames")?;
    Ok(frames.cast_into::<PyDict>()?.get_item(number)?)
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
