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

/// Calls `work` without the lock, or with it if an interrupt is pending, which stays so.
///
/// The calling thread must hold the lock.
pub(crate) fn without_the_lock<R: Send, F: FnOnce() -> R + Send>(work: F) -> R {
    let mut call = Call { work: Some(work), result: None };
    // SAFETY: the lock is held, and `Call::run` gets what it expects, which outlives the call. With these flags
    // Ruby raises nothing.
    unsafe {
        let this = (&raw mut call).cast();
        rb_sys::rb_nogvl(Some(Call::<F, R>::run), this, None, ptr::null_mut(), FLAGS);
    }
    call.result.unwrap_or_else(|| (call.work.take().expect("it was not called"))())
}

struct Call<F, R> {
    work: Option<F>,
    result: Option<R>,
}

impl<F: FnOnce() -> R, R> Call<F, R> {
    unsafe extern "C" fn run(this: *mut c_void) -> *mut c_void {
        // SAFETY: `without_the_lock` passes such a value, and uses it only afterwards.
        let this = unsafe { &mut *this.cast::<Self>() };
        this.result = this.work.take().map(|work| work());
        ptr::null_mut()
    }
}

/// Drops a vector without the lock if it is large: to give 100 MB back to the system takes some milliseconds.
///
/// The calling thread must hold the lock.
pub(crate) fn drop_aside<T: Send>(vector: Vec<T>) {
    const LARGE: usize = 2 << 20;
    if vector.capacity() * size_of::<T>() >= LARGE {
        without_the_lock(move || drop(vector));
    }
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
