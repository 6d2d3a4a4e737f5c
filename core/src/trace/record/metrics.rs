//! Live numbers: how long threads have waited for the lock, and how many wait now.
//!
//! The methods of [`Thread`](super::thread::Thread) update the counters with a few additions. A reader adds
//! up the counters of all threads or CPUs; it never blocks and stops no thread.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

pub use super::counters::{Metric, ThreadMetrics, acquisitions, reset, waited, waits};
use super::{counters, mode, registry, thread};
use crate::clock;

/// A thread that began to wait before this time is not counted as waiting.
static WAITING_FROM: AtomicU64 = AtomicU64::new(0);
static WAITED_AT_END: AtomicU32 = AtomicU32::new(0);

impl Metric {
    /// Starts measuring. Waits already under way are not counted.
    pub fn enable(self) {
        if self.is_enabled() {
            return;
        }
        counters::begin();
        if self == Self::Waiting {
            reset_waiting();
        }
        mode::set(self as u32);
    }

    /// Stops measuring; the numbers stay as they are.
    pub fn disable(self) {
        if self == Self::Waiting {
            WAITED_AT_END.store(waiting(), Ordering::Relaxed);
        }
        registry::switch_off(self as u32);
    }

    /// Whether it is being measured.
    pub fn is_enabled(self) -> bool {
        mode::mode() & self as u32 != 0
    }
}

/// The number of threads that wait for a lock now or, after the metric was disabled, waited at that time.
pub fn waiting() -> u32 {
    if !Metric::Waiting.is_enabled() {
        return WAITED_AT_END.load(Ordering::Relaxed);
    }
    let from = WAITING_FROM.load(Ordering::Relaxed);
    thread::every_thread().filter(|thread| thread.waits_since(from)).count() as u32
}

/// Counts waiting threads from zero again.
pub fn reset_waiting() {
    WAITING_FROM.store(clock::now(), Ordering::Relaxed);
    WAITED_AT_END.store(0, Ordering::Relaxed);
}
