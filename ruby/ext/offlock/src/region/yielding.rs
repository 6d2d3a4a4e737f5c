//! Yields the lock, between small calls and within long ones, once a thread has held it for its time slice.

use magnus::Error;
use offlock_core::time_slice;

use super::release;

/// Yields the lock if this thread has held it for its time slice, and handles the interrupts that arrived in
/// the meantime.
///
/// Operations that keep the lock call this.
#[inline]
pub(crate) fn yield_between_calls() -> Result<(), Error> {
    if time_slice::look_is_due() && yield_if_due_between_calls() {
        release::check_interrupts()
    } else {
        Ok(())
    }
}

/// The same for code that Ruby calls and that owns no value that needs dropping.
///
/// # Safety
/// The lock is held. Interrupts raise, which skips destructors.
#[inline]
pub(crate) unsafe fn yield_between_calls_or_raise() {
    if time_slice::look_is_due() && yield_if_due_between_calls() {
        // SAFETY: the contract of this function.
        unsafe { rb_sys::rb_thread_check_ints() };
    }
}

/// Yields the lock if the time slice is over. Returns whether it did.
#[cold]
fn yield_if_due_between_calls() -> bool {
    if release::is_only_thread() {
        time_slice::restart();
        return false;
    }
    let over = time_slice::is_over_between_calls(SHORTEST_SLICE);
    if over {
        yield_lock();
    }
    over
}

/// Yields the lock in the middle of a call if the time slice is over.
pub(super) fn yield_if_due_in_call() {
    if is_due_in_call() {
        yield_lock();
    }
}

pub(super) fn is_due_in_call() -> bool {
    if release::is_only_thread() {
        time_slice::restart();
        return false;
    }
    time_slice::is_over_in_call(SHORTEST_SLICE_IN_CALL)
}

fn yield_lock() {
    time_slice::yielding(TIME_SLICE, release::release_and_take);
}

/// A thread that makes small calls yields after this many nanoseconds. That costs nothing while no thread
/// waits, and some 20 µs if one does.
const SHORTEST_SLICE: u64 = 250_000;
/// The same in the middle of a call.
const SHORTEST_SLICE_IN_CALL: u64 = 400_000;

/// The time for which CRuby lets a thread run while others wait (`TIME_QUANTUM_MSEC` in its `thread.c`), in
/// nanoseconds.
const TIME_SLICE: u64 = 100_000_000;
