//! Live numbers: how long threads have waited for the lock, how many wait now.
//!
//! Feeds call [`Thread`](super::Thread)'s methods; these update the numbers with a few atomic
//! additions. Reading never blocks and never stops anybody.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::clock::{self, Ticks};
use super::histogram::{Histogram, Waits};
use super::recorder;

/// What can be measured, each switched on and off by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Metric {
    /// The time that all threads together have waited, and the histogram of their waits.
    Global = 2,
    /// The same for each thread.
    Local = 4,
    /// The number of threads that wait at the moment.
    Waiting = 8,
}

/// The mode bits of all metrics.
pub(super) const ALL: u32 = Metric::Global as u32 | Metric::Local as u32 | Metric::Waiting as u32;

impl Metric {
    /// Starts measuring. Waits already under way are not counted.
    pub fn enable(self) {
        if self.is_enabled() {
            return;
        }
        ENABLED_AT.store(clock::now(), Ordering::Relaxed);
        if self == Self::Waiting {
            reset_waiting();
        }
        recorder::switch_on(self as u32);
    }

    /// Stops measuring; the numbers stay as they are.
    pub fn disable(self) {
        recorder::switch_off(self as u32);
        if self == Self::Waiting {
            count_waiting_anew(|waiting| waiting);
        }
    }

    /// Whether it is being measured.
    pub fn is_enabled(self) -> bool {
        recorder::mode() & self as u32 != 0
    }
}

static ENABLED_AT: AtomicU64 = AtomicU64::new(0);
static WAITS: Histogram = Histogram::new();

/// What every hand-over of a lock changes: together, so that one cache line goes from one processor to the next.
#[repr(align(64))]
struct Common {
    waited: AtomicU64,
    acquisitions: AtomicU64,
    /// The number of waiting threads in the lower half; the upper half changes whenever counting starts
    /// anew or ends, so that a thread which was counted before is not subtracted after.
    waiting: AtomicU64,
}

static COMMON: Common =
    Common { waited: AtomicU64::new(0), acquisitions: AtomicU64::new(0), waiting: AtomicU64::new(1 << 32) };

/// Whoever was counted among the waiting threads is not subtracted any more.
fn count_waiting_anew(number: impl Fn(u32) -> u32) {
    let next = |waiting: u64| {
        let turn = ((waiting >> 32) as u32).wrapping_add(1).max(1);
        Some(u64::from(turn) << 32 | u64::from(number(waiting as u32)))
    };
    let _ = COMMON.waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
}

/// Nanoseconds that all threads together have waited for their locks.
pub fn waited() -> u64 {
    clock::nanoseconds(COMMON.waited.load(Ordering::Relaxed))
}

/// How often a lock was acquired by any thread.
pub fn acquisitions() -> u64 {
    COMMON.acquisitions.load(Ordering::Relaxed)
}

/// How long the waits of all threads took.
pub fn waits() -> Waits {
    WAITS.snapshot(clock::nanoseconds)
}

/// How many threads wait for a lock at the moment or, once it is not measured any more, waited at the end.
pub fn waiting() -> u32 {
    COMMON.waiting.load(Ordering::Relaxed) as u32
}

/// Counts waiting threads from zero again.
pub fn reset_waiting() {
    count_waiting_anew(|_| 0);
}

/// Sets the numbers of all threads together back to zero.
pub fn reset() {
    COMMON.waited.store(0, Ordering::Relaxed);
    COMMON.acquisitions.store(0, Ordering::Relaxed);
    WAITS.clear();
}

/// One thread's numbers. Written by whoever acts for the thread, read by anyone.
pub(super) struct Local {
    since: AtomicU64,
    counted: AtomicU32,
    waited: AtomicU64,
    acquisitions: AtomicU64,
    releases: AtomicU64,
    waits: Histogram,
}

/// Adds without an atomic read-modify-write: a thread's numbers have one writer at a time.
fn add(number: &AtomicU64, more: u64) {
    number.store(number.load(Ordering::Relaxed) + more, Ordering::Relaxed);
}

impl Local {
    pub(super) const fn new() -> Self {
        Self {
            since: AtomicU64::new(0),
            counted: AtomicU32::new(0),
            waited: AtomicU64::new(0),
            acquisitions: AtomicU64::new(0),
            releases: AtomicU64::new(0),
            waits: Histogram::new(),
        }
    }

    pub(super) fn wants(&self, at: Ticks, mode: u32) {
        let since = self.since.load(Ordering::Relaxed);
        if since == 0 || since < ENABLED_AT.load(Ordering::Relaxed) {
            self.since.store(at, Ordering::Relaxed);
        }
        if mode & Metric::Waiting as u32 != 0 && self.counted.load(Ordering::Relaxed) == 0 {
            let before = COMMON.waiting.fetch_add(1, Ordering::Relaxed);
            self.counted.store((before >> 32) as u32, Ordering::Relaxed);
        }
    }

    pub(super) fn acquired(&self, at: Ticks, mode: u32) {
        let since = self.since.load(Ordering::Relaxed);
        self.since.store(0, Ordering::Relaxed);
        self.leave();
        let known = since != 0 && since >= ENABLED_AT.load(Ordering::Relaxed);
        let wait = known.then(|| at.saturating_sub(since));
        if mode & Metric::Global as u32 != 0 {
            count_globally(wait);
        }
        if mode & Metric::Local as u32 != 0 {
            self.count(wait);
        }
    }

    pub(super) fn released(&self, mode: u32) {
        if mode & Metric::Local as u32 != 0 {
            add(&self.releases, 1);
        }
    }

    /// The thread waits no more, be it that it has the lock or that it ended.
    pub(super) fn leave(&self) {
        let counted = self.counted.load(Ordering::Relaxed);
        if counted == 0 {
            return;
        }
        self.counted.store(0, Ordering::Relaxed);
        let less = |waiting: u64| (waiting >> 32 == u64::from(counted)).then(|| waiting - 1);
        let _ = COMMON.waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    fn count(&self, wait: Option<u64>) {
        add(&self.acquisitions, 1);
        if let Some(wait) = wait {
            add(&self.waited, wait);
            self.waits.add(wait);
        }
    }

    pub(super) fn reset(&self) {
        self.waited.store(0, Ordering::Relaxed);
        self.acquisitions.store(0, Ordering::Relaxed);
        self.releases.store(0, Ordering::Relaxed);
        self.waits.clear();
    }

    pub(super) fn read(&self) -> ThreadMetrics {
        ThreadMetrics {
            waited: clock::nanoseconds(self.waited.load(Ordering::Relaxed)),
            acquisitions: self.acquisitions.load(Ordering::Relaxed),
            releases: self.releases.load(Ordering::Relaxed),
        }
    }

    pub(super) fn waits(&self) -> Waits {
        self.waits.snapshot(clock::nanoseconds)
    }
}

fn count_globally(wait: Option<u64>) {
    COMMON.acquisitions.fetch_add(1, Ordering::Relaxed);
    if let Some(wait) = wait {
        COMMON.waited.fetch_add(wait, Ordering::Relaxed);
        WAITS.add_shared(wait);
    }
}

/// One thread's numbers since it started or was reset, while [`Metric::Local`] was on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ThreadMetrics {
    /// Nanoseconds it waited for its lock, in waits that are over.
    pub waited: u64,
    /// How often it acquired the lock.
    pub acquisitions: u64,
    /// How often it released the lock.
    pub releases: u64,
}
