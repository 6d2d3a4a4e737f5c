//! Releasing the interpreter lock, and interrupts: the foreign functions behind the region.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::PoisonError;

use magnus::Error;
use magnus::rb_sys::protect;

/// Return at once when interrupts are pending, before and after the work, instead of raising over live Rust values.
pub(super) const FLAGS: c_int = 0x1; // INTR_FAIL

/// Handles pending interrupts as after an operation that blocks: those deferred with
/// `Thread.handle_interrupt(… => :on_blocking)` are due, too.
pub(super) fn handle_interrupts() -> Result<(), Error> {
    protect(|| {
        // SAFETY: the lock is held, and `nothing` may run without it. What the interrupts raise is caught here.
        unsafe { rb_sys::rb_thread_call_without_gvl(Some(nothing), ptr::null_mut(), None, ptr::null_mut()) };
        rb_sys::Qnil as rb_sys::VALUE
    })?;
    Ok(())
}

/// What is done without the lock where only giving it up matters.
unsafe extern "C" fn nothing(_: *mut c_void) -> *mut c_void {
    ptr::null_mut()
}

/// Handles pending interrupts and lets other threads have their turn.
///
/// Must be called with the lock held.
pub(super) fn check_interrupts() -> Result<(), Error> {
    protect(|| {
        // SAFETY: the lock is held. What the interrupts raise is caught here.
        unsafe { rb_sys::rb_thread_check_ints() };
        rb_sys::Qnil as rb_sys::VALUE
    })?;
    Ok(())
}

/// Releases the lock and takes it again, unless an interrupt is pending, which is left so. Must be called with the lock held.
///
/// Ruby hands the lock to the thread that has waited longest, which makes this thread the last in the queue: no pause is
/// needed.
pub(super) fn release_and_take() {
    // SAFETY: the lock is held, and `nothing` may run without it. With these flags nothing is raised.
    unsafe { rb_sys::rb_nogvl(Some(nothing), ptr::null_mut(), None, ptr::null_mut(), FLAGS) };
}

/// Whether the thread has interrupts to handle. Must be called with the lock held.
pub(super) fn is_interrupted() -> bool {
    // SAFETY: the lock is held.
    unsafe { rb_sys::rb_thread_interrupted(rb_sys::rb_thread_current()) != 0 }
}

/// Whether the Ractor has no other thread. Must be called with the lock held.
pub(super) fn is_only_thread() -> bool {
    // SAFETY: the lock is held.
    unsafe { rb_sys::rb_thread_alone() != 0 }
}

/// What a mutex protects here is whole even if a holder panicked.
pub(super) fn unpoisoned<T>(locked: Result<T, PoisonError<T>>) -> T {
    locked.unwrap_or_else(PoisonError::into_inner)
}
