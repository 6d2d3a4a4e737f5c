//! What a trace records of an interpreter that runs without a lock.

use std::ffi::c_char;

use pyo3::ffi;
use pyo3::prelude::*;

#[cfg(all(target_os = "linux", Py_GIL_DISABLED))]
use crate::cpython::parking;

/// Why the lock is not traced.
pub(super) const OBSTACLE: &str = "this interpreter runs without a lock";

/// Whether this interpreter runs without a lock at present.
pub(super) fn is_used(py: Python<'_>) -> bool {
    const QUESTION: *const c_char = c"_is_gil_enabled".as_ptr();
    if !cfg!(Py_GIL_DISABLED) {
        return false;
    }
    // SAFETY: this thread is attached, and the name is a string. Returns a borrowed reference, or null.
    let question = unsafe { Borrowed::from_ptr_or_opt(py, ffi::PySys_GetObject(QUESTION)) };
    let answer = question.and_then(|question| question.call0().ok()?.extract::<bool>().ok());
    answer == Some(false)
}

/// Begins to watch what threads wait for. The error says why that is not seen.
pub(super) fn watch(py: Python<'_>) -> Result<(), String> {
    super::permission::given()?;
    #[cfg(all(target_os = "linux", Py_GIL_DISABLED))]
    return parking::install(py);
    #[cfg(not(all(target_os = "linux", Py_GIL_DISABLED)))]
    {
        let _ = py;
        Err("watching threads needs Linux".into())
    }
}

/// Does not record what the calling thread waits for: it belongs to the recorder.
pub(super) fn ignore_own_waits() {
    #[cfg(all(target_os = "linux", Py_GIL_DISABLED))]
    super::parked::ignore_own();
}

/// Restores the interpreter's calls when nothing is recorded any more.
pub(super) fn unwatch() {
    #[cfg(all(target_os = "linux", Py_GIL_DISABLED))]
    parking::uninstall();
}

pub(super) fn after_fork_in_child() {
    #[cfg(all(target_os = "linux", Py_GIL_DISABLED))]
    {
        parking::after_fork_in_child();
        super::parked::after_fork_in_child();
    }
}
