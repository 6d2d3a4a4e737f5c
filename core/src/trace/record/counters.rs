//! Live counters: one set per thread, and one set for all threads that is sharded by CPU.
//!
//! An event costs a few additions. Reading adds up the shards and stops no thread.

use std::sync::atomic::{AtomicU64, Ordering};

use super::histogram::{Histogram, Waits};
use crate::clock::{self, Ticks};
use crate::cpu;

/// What can be measured; each metric is enabled separately.
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

/// Ignores waits that have begun before now.
pub(super) fn begin() {
    ENABLED_AT.store(clock::now(), Ordering::Relaxed);
}

/// The counters of all threads that ran on one CPU. Sharded, because a cache line that several CPUs write in
/// turn would travel between them at every hand-over.
#[repr(align(128))]
struct Shard {
    waited: AtomicU64,
    /// The number of acquisitions after a wait whose beginning was not recorded.
    unmeasured: AtomicU64,
    waits: Histogram,
}

/// If there are more CPUs than shards, several share one.
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

/// The total time that all threads have waited for their locks, in nanoseconds.
pub fn waited() -> u64 {
    clock::nanoseconds(SHARDS.iter().map(|shard| shard.waited.load(Ordering::Relaxed)).sum())
}

/// The number of acquisitions by all threads.
pub fn acquisitions() -> u64 {
    SHARDS.iter().map(|shard| shard.unmeasured.load(Ordering::Relaxed) + shard.waits.count()).sum()
}

/// The waits of all threads.
pub fn waits() -> Waits {
    Histogram::snapshot(SHARDS.iter().map(|shard| &shard.waits), clock::nanoseconds)
}

/// Resets the counters of all threads together to zero.
pub fn reset() {
    for shard in &SHARDS {
        shard.waited.store(0, Ordering::Relaxed);
        shard.unmeasured.store(0, Ordering::Relaxed);
        shard.waits.clear();
    }
}

/// One thread's counters. Written by one native thread at a time, read by any.
pub(super) struct Local {
    /// The time at which the thread began to wait; 0 while it does not wait.
    since: AtomicU64,
    waited: AtomicU64,
    acquisitions: AtomicU64,
    releases: AtomicU64,
    waits: Histogram,
}

/// Adds without an atomic read-modify-write, because a thread's counters have one writer at a time.
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

    /// The thread no longer waits: it has the lock or has ended.
    #[inline]
    pub(super) fn leave(&self) {
        self.since.store(0, Ordering::Relaxed);
    }

    /// Whether the thread waits and began to wait after `from`.
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

/// One thread's counters since it started or was reset, while [`Metric::Local`] was enabled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ThreadMetrics {
    /// The time for which it waited for its lock, in completed waits, in nanoseconds.
    pub waited: u64,
    /// The number of acquisitions.
    pub acquisitions: u64,
    /// The number of releases.
    pub releases: u64,
}
