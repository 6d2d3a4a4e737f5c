//! What is being recorded at the moment.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::clock::{self, Ticks};

/// The mode bit that says a trace is being recorded.
pub(super) const TRACING: u32 = 1;

static MODE: AtomicU32 = AtomicU32::new(0);

/// The bits of all that is being recorded.
#[inline]
pub(super) fn mode() -> u32 {
    MODE.load(Ordering::Relaxed)
}

pub(super) fn set(bits: u32) {
    clock::start();
    MODE.fetch_or(bits, Ordering::Relaxed);
}

/// Whether those were the last bits that were set.
pub(super) fn clear(bits: u32) -> bool {
    let before = MODE.fetch_and(!bits, Ordering::Relaxed);
    before != 0 && before & !bits == 0
}

/// Whether anything is recorded or measured. A feed that sees false need not even read the clock.
#[inline]
pub fn is_active() -> bool {
    mode() != 0
}

/// Whether a trace is being recorded.
#[inline]
pub fn is_tracing() -> bool {
    mode() & TRACING != 0
}

/// The present moment, for a thread that has just taken a lock: never before it was taken.
///
/// A processor may read its counter before it is done with what comes earlier in the program; with
/// [`now`](super::now) two holders of a lock could seem to overlap by some nanoseconds, which only a trace shows.
#[inline]
pub fn now_holding() -> Ticks {
    if is_tracing() { clock::now_in_order() } else { clock::now() }
}

/// The present moment, for a thread that is about to give up a lock that it does not want any more. Only a
/// trace wants to know it; else it is 0.
#[inline]
pub fn now_releasing() -> Ticks {
    if is_tracing() { clock::now() } else { 0 }
}
