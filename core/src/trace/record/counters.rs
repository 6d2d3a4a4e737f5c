//! What is counted: per thread, and together per processor. Updated with a few additions, read without stopping anybody.

use std::sync::atomic::{AtomicU64, Ordering};

use super::histogram::{Histogram, Waits};
use crate::clock::{self, Ticks};
use crate::cpu;

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

static ENABLED_AT: AtomicU64 = AtomicU64::new(0);

/// Counts only waits that begin from now on.
pub(super) fn begin() {
    ENABLED_AT.store(clock::now(), Ordering::Relaxed);
}

/// What threads have added together while they ran on one processor: a memory line that several of them write to in turn
/// would have to travel at every hand-over.
#[repr(align(128))]
struct Shard {
    waited: AtomicU64,
    /// How often a lock was acquired after a wait that nobody saw begin.
    unmeasured: AtomicU64,
    waits: Histogram,
}

/// Processors share a shard if there are more of them.
static SHARDS: [Shard; 16] = [const { Shard::new() }; 16];

impl Shard {
    const fn new() -> Self {
        Self { waited: AtomicU64::new(0), unmeasured: AtomicU64::new(0), waits: Histogram::new() }
    }

    #[inline]
    fn present() -> &'static Self {
        &SHARDS[cpu::current() % SHARDS.len()]
    }

    #[inline]
    fn count(&self, wait: Option<u64>) {
        match wait {
            None => self.unmeasured.fetch_add(1, Ordering::Relaxed),
            Some(wait) => {
                self.waits.add_shared(wait);
                self.waited.fetch_add(wait, Ordering::Relaxed)
            }
        };
    }
}

/// Nanoseconds that all threads together have waited for their locks.
pub fn waited() -> u64 {
    clock::nanoseconds(SHARDS.iter().map(|shard| shard.waited.load(Ordering::Relaxed)).sum())
}

/// How often a lock was acquired by any thread.
pub fn acquisitions() -> u64 {
    SHARDS.iter().map(|shard| shard.unmeasured.load(Ordering::Relaxed) + shard.waits.count()).sum()
}

/// How long the waits of all threads took.
pub fn waits() -> Waits {
    Histogram::snapshot(SHARDS.iter().map(|shard| &shard.waits), clock::nanoseconds)
}

/// Sets the numbers of all threads together back to zero.
pub fn reset() {
    for shard in &SHARDS {
        shard.waited.store(0, Ordering::Relaxed);
        shard.unmeasured.store(0, Ordering::Relaxed);
        shard.waits.clear();
    }
}

/// One thread's numbers. Written by whoever acts for the thread, read by anyone.
pub(super) struct Local {
    /// When the thread began to wait; 0 while it does not.
    since: AtomicU64,
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
            waited: AtomicU64::new(0),
            acquisitions: AtomicU64::new(0),
            releases: AtomicU64::new(0),
            waits: Histogram::new(),
        }
    }

    #[inline]
    pub(super) fn wants(&self, at: Ticks) {
        let since = self.since.load(Ordering::Relaxed);
        if since == 0 || since < ENABLED_AT.load(Ordering::Relaxed) {
            self.since.store(at, Ordering::Relaxed);
        }
    }

    #[inline]
    pub(super) fn acquired(&self, at: Ticks, mode: u32) {
        let since = self.since.load(Ordering::Relaxed);
        self.leave();
        let known = since != 0 && since >= ENABLED_AT.load(Ordering::Relaxed);
        let wait = known.then(|| at.saturating_sub(since));
        if mode & Metric::Global as u32 != 0 {
            Shard::present().count(wait);
        }
        if mode & Metric::Local as u32 != 0 {
            self.count(wait);
        }
    }

    #[inline]
    pub(super) fn released(&self, mode: u32) {
        if mode & Metric::Local as u32 != 0 {
            add(&self.releases, 1);
        }
    }

    /// The thread waits no more, be it that it has the lock or that it ended.
    #[inline]
    pub(super) fn leave(&self) {
        self.since.store(0, Ordering::Relaxed);
    }

    /// Whether the thread waits, and has not done so since before `from`.
    pub(super) fn waits_since(&self, from: Ticks) -> bool {
        self.since.load(Ordering::Relaxed) >= from.max(1)
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
        Histogram::snapshot([&self.waits], clock::nanoseconds)
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
