//! Counts the time that a thread has worked without its lock.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::clock::Ticks;

/// A thread's time in operations off the lock. Written by that thread.
pub(super) struct Regions {
    depth: AtomicU32,
    since: AtomicU64,
    before: AtomicU64,
}

impl Regions {
    pub(super) const fn new() -> Self {
        Self { depth: AtomicU32::new(0), since: AtomicU64::new(0), before: AtomicU64::new(0) }
    }

    pub(super) fn enter(&self, at: Ticks) {
        if self.depth.fetch_add(1, Ordering::Relaxed) == 0 {
            self.since.store(at, Ordering::Relaxed);
        }
    }

    pub(super) fn leave(&self, at: Ticks) {
        if self.depth.fetch_sub(1, Ordering::Relaxed) == 1 {
            let since = self.since.swap(0, Ordering::Relaxed);
            self.before.fetch_add(at.saturating_sub(since), Ordering::Relaxed);
        }
    }

    pub(super) fn time(&self, now: Ticks) -> Ticks {
        let since = self.since.load(Ordering::Relaxed);
        let present = if since == 0 { 0 } else { now.saturating_sub(since) };
        self.before.load(Ordering::Relaxed) + present
    }

    pub(super) fn forget(&self) {
        [&self.since, &self.before].iter().for_each(|number| number.store(0, Ordering::Relaxed));
        self.depth.store(0, Ordering::Relaxed);
    }
}
