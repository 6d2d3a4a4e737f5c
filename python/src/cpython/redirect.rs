//! Redirects imports of the interpreter to functions of ours, each of which calls the function that the import had.

use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use pyo3::ffi;

use super::plt::{self, Slot};

/// An import, the function that replaces it, and the place for the function that this one calls next.
pub(super) type Redirection = (&'static CStr, usize, &'static NextHook);

/// The function that a hook calls next: the import's previous target, which may be another tool's, or, with
/// 0, the C library.
pub(super) struct NextHook(AtomicUsize);

/// Another tool has redirected an import after this one, and calls this hook permanently. If the hook called
/// the import's target of the next installation, the calls would form a cycle.
static COVERED: AtomicBool = AtomicBool::new(false);

impl NextHook {
    pub(super) const fn new() -> Self {
        Self(AtomicUsize::new(0))
    }

    fn set(&self, before: Option<usize>, hook: usize) {
        let is_safe = |before: &usize| *before != hook && !COVERED.load(Ordering::Relaxed);
        self.0.store(before.filter(is_safe).unwrap_or(0), Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn address(&self, of_library: usize) -> usize {
        match self.0.load(Ordering::Relaxed) {
            0 => of_library,
            before => before,
        }
    }
}

/// Calls the function that a [`NextHook`] holds, which has the type of the library's function.
macro_rules! next {
    ($next:ident, $type:ty, $library:path $(, $argument:expr)*) => {{
        let address = $next.address($library as $type as usize);
        // SAFETY: it comes from an import of this same function, or is the library's own.
        let function = unsafe { std::mem::transmute::<usize, $type>(address) };
        // SAFETY: the interpreter's own call, with its arguments.
        unsafe { function($($argument),*) }
    }};
}
pub(super) use next;

/// Redirects all of these imports.
///
/// # Errors
/// A sentence that names the one that cannot be redirected; nothing stays redirected then.
pub(super) fn redirect(redirections: &[Redirection]) -> Result<Vec<Slot>, String> {
    let interpreter = ffi::PyEval_SaveThread as unsafe extern "C" fn() -> *mut ffi::PyThreadState as usize;
    let names: Vec<&CStr> = redirections.iter().map(|(name, ..)| *name).collect();
    let found = plt::find(interpreter, &names);
    let mut redirected = Vec::new();
    for ((name, hook, next), slots) in redirections.iter().zip(found) {
        if slots.is_empty() {
            restore(&mut redirected);
            return Err(format!("the interpreter does not import {}", name.to_string_lossy()));
        }
        for mut slot in slots {
            let outcome = slot.redirect(*hook);
            redirected.push(slot);
            match outcome {
                Ok(before) => next.set(before, *hook),
                Err(error) => {
                    restore(&mut redirected);
                    return Err(format!("the import of {} is protected: {error}", name.to_string_lossy()));
                }
            }
        }
    }
    Ok(redirected)
}

/// Restores the interpreter's direct calls of the C library.
pub(super) fn restore(slots: &mut Vec<Slot>) {
    for mut slot in slots.drain(..) {
        // A slot that could not be restored still calls a working hook, so there is nothing to report.
        if !slot.restore().unwrap_or(true) {
            COVERED.store(true, Ordering::Relaxed);
        }
    }
}
