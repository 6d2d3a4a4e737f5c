//! What is being recorded: one atomic word of flags that every callback reads first.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use crate::clock::{self, Ticks};

/// The mode bit that says a trace is being recorded.
pub(super) const TRACING: u32 = 1;

/// Live traces are offered: the bit after those of the [`Metric`](super::counters::Metric)s. The threads' relations to
/// the lock are kept up to date, for a trace that starts when a client connects.
pub(in crate::trace) const LIVE: u32 = 16;

static MODE: AtomicU32 = AtomicU32::new(0);

/// How long a thread waits before stacks are recorded, in ticks; `u64::MAX` if they are not recorded.
static STACKS_AFTER: AtomicU64 = AtomicU64::new(Ticks::MAX);

/// The flags of everything that is being recorded.
#[inline]
pub(super) fn mode() -> u32 {
    MODE.load(Ordering::Relaxed)
}

pub(in crate::trace) fn set(bits: u32) {
    clock::start();
    MODE.fetch_or(bits, Ordering::Relaxed);
}

/// Clears `bits`; returns whether these were the last ones set.
pub(super) fn clear(bits: u32) -> bool {
    let before = MODE.fetch_and(!bits, Ordering::Relaxed);
    before != 0 && before & !bits == 0
}

/// Whether anything is recorded or measured. If not, a feed need not even read the clock.
#[inline]
pub fn is_active() -> bool {
    mode() != 0
}

/// Whether a trace is being recorded.
#[inline]
pub fn is_tracing() -> bool {
    mode() & TRACING != 0
}

/// How long a thread has to wait for the lock before the feed records stacks; `None` if it records none.
#[inline]
pub fn stacks_after() -> Option<Ticks> {
    match STACKS_AFTER.load(Ordering::Relaxed) {
        Ticks::MAX => None,
        ticks => Some(ticks),
    }
}

pub(super) fn set_stacks_after(wait: Option<Duration>) {
    let ticks = wait.map(|wait| clock::ticks(wait).min(Ticks::MAX - 1));
    STACKS_AFTER.store(ticks.unwrap_or(Ticks::MAX), Ordering::Relaxed);
}

/// The current time, for a thread that has just acquired a lock: never before the acquisition.
///
/// A processor may read its counter before earlier instructions have completed. With
/// [`now`](crate::clock::now), two holders of a lock could seem to overlap by some nanoseconds, which only a
/// trace shows.
#[inline]
pub fn now_holding() -> Ticks {
    if is_tracing() { clock::now_in_order() } else { clock::now() }
}

/// The current time, for a thread that is about to release a lock and does not want it back. 0 unless a trace
/// is recorded, because only a trace uses it.
#[inline]
pub fn now_releasing() -> Ticks {
    if is_tracing() { clock::now() } else { 0 }
}
