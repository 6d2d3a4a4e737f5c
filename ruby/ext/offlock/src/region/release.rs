//! Releases the interpreter lock and handles interrupts: the foreign functions behind the region.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::PoisonError;

use magnus::Error;
use magnus::rb_sys::protect;

/// Returns immediately when interrupts are pending, before and after the work, instead of raising over live
/// Rust values.
pub(super) const FLAGS: c_int = 0x1; // INTR_FAIL

/// Handles pending interrupts as a blocking operation does, including those deferred with
/// `Thread.handle_interrupt(… => :on_blocking)`.
pub(super) fn handle_interrupts() -> Result<(), Error> {
    protect(|| {
        // SAFETY: the lock is held, and `nothing` may run without it. An exception of an interrupt is caught
        // here.
        unsafe { rb_sys::rb_thread_call_without_gvl(Some(nothing), ptr::null_mut(), None, ptr::null_mut()) };
        rb_sys::Qnil as rb_sys::VALUE
    })?;
    Ok(())
}

/// The callback for calls that only need to release the lock.
unsafe extern "C" fn nothing(_: *mut c_void) -> *mut c_void {
    ptr::null_mut()
}

/// Handles pending interrupts and lets other threads run.
///
/// The calling thread must hold the lock.
pub(super) fn check_interrupts() -> Result<(), Error> {
    protect(|| {
        // SAFETY: the lock is held. An exception of an interrupt is caught here.
        unsafe { rb_sys::rb_thread_check_ints() };
        rb_sys::Qnil as rb_sys::VALUE
    })?;
    Ok(())
}

/// Releases the lock and re-acquires it. If an interrupt is pending, does nothing and leaves it pending.
///
/// The calling thread must hold the lock. Ruby passes the lock to the thread that has waited longest, and
/// this thread queues behind all others, so no pause is needed.
pub(super) fn release_and_take() {
    // SAFETY: the lock is held, and `nothing` may run without it. With these flags Ruby raises nothing.
    unsafe { rb_sys::rb_nogvl(Some(nothing), ptr::null_mut(), None, ptr::null_mut(), FLAGS) };
}

/// Drops a vector without the lock if it is large: to give 100 MB back to the system takes some milliseconds.
///
/// The calling thread must hold the lock.
pub(crate) fn drop_aside<T: Send>(vector: Vec<T>) {
    const LARGE: usize = 2 << 20;
    let mut vector = Some(vector).filter(|vector| vector.capacity() * size_of::<T>() >= LARGE);
    if vector.is_some() {
        // SAFETY: the lock is held, and `take` gets what it expects, which outlives the call. If an interrupt is
        // pending, Ruby does not call it, and the vector is dropped here.
        unsafe {
            rb_sys::rb_nogvl(Some(take::<T>), (&raw mut vector).cast(), None, ptr::null_mut(), FLAGS);
        }
    }
}

/// Drops an `Option<Vec<T>>`.
unsafe extern "C" fn take<T>(vector: *mut c_void) -> *mut c_void {
    // SAFETY: `drop_aside` passes such a value, and uses it only afterwards.
    drop(unsafe { (*vector.cast::<Option<Vec<T>>>()).take() });
    ptr::null_mut()
}

/// Returns whether the thread has interrupts to handle. The calling thread must hold the lock.
pub(super) fn is_interrupted() -> bool {
    // SAFETY: the lock is held.
    unsafe { rb_sys::rb_thread_interrupted(rb_sys::rb_thread_current()) != 0 }
}

/// Returns whether the Ractor has no other thread. The calling thread must hold the lock.
pub(super) fn is_only_thread() -> bool {
    // SAFETY: the lock is held.
    unsafe { rb_sys::rb_thread_alone() != 0 }
}

/// Ignores poisoning: the data that a mutex protects here is consistent even if a holder panicked.
pub(super) fn unpoisoned<T>(locked: Result<T, PoisonError<T>>) -> T {
    locked.unwrap_or_else(PoisonError::into_inner)
}
