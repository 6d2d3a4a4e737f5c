//! Waits without the interpreter lock.

use std::ffi::c_void;
use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use magnus::Error;
use magnus::rb_sys::protect;

use super::release::unpoisoned;

/// Calls `look` without the lock again and again until it returns something. In between, interrupts are
/// handled, so `look` should return within some ten milliseconds.
///
/// The calling thread must hold the lock.
pub(crate) fn wait<T: Send>(look: impl Fn() -> Option<T> + Sync) -> Result<T, Error> {
    let wait = Wait { look: &look, is_interrupted: AtomicBool::new(false), found: Mutex::new(None) };
    let this = ptr::from_ref(&wait).cast_mut().cast();
    loop {
        if let Some(found) = unpoisoned(wait.found.lock()).take() {
            return Ok(found);
        }
        wait.is_interrupted.store(false, Ordering::Relaxed);
        protect(|| {
            // SAFETY: the lock is held, and both functions get what they expect, which outlives the call. An
            // exception of an interrupt is caught here.
            unsafe {
                let (run, unblock) = (Some(Wait::<T>::run as _), Some(Wait::<T>::unblock as _));
                rb_sys::rb_thread_call_without_gvl(run, this, unblock, this)
            };
            rb_sys::Qnil as rb_sys::VALUE
        })?;
    }
}

struct Wait<'a, T> {
    look: &'a (dyn Fn() -> Option<T> + Sync),
    is_interrupted: AtomicBool,
    found: Mutex<Option<T>>,
}

impl<T> Wait<'_, T> {
    unsafe extern "C" fn run(this: *mut c_void) -> *mut c_void {
        // SAFETY: `wait` passes such a value, which outlives the call.
        let this = unsafe { &*this.cast::<Self>() };
        let mut found = None;
        while found.is_none() && !this.is_interrupted.load(Ordering::Relaxed) {
            found = (this.look)();
        }
        *unpoisoned(this.found.lock()) = found;
        ptr::null_mut()
    }

    unsafe extern "C" fn unblock(this: *mut c_void) {
        // SAFETY: `wait` passes such a value. Ruby calls this only while `run` has not returned.
        let this = unsafe { &*this.cast::<Self>() };
        this.is_interrupted.store(true, Ordering::Relaxed);
    }
}
