//! Which threads wait for a lock, since when, and when the holder's stack was last taken.
//!
//! A feed that records stacks asks here whether one is due. It makes all changes while it holds the
//! interpreter's own mutex for the lock, so plain loads and stores of atomics are enough; any thread may read.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use super::mode::stacks_after;
use crate::clock::{self, Ticks};

/// The most waiting threads whose times are kept; where more wait, these stand for the others.
const PLACES: usize = 64;

/// The least time between two stacks of the holder that are taken while it holds the lock. Each costs it up
/// to 50 µs.
const BETWEEN_SAMPLES: Duration = Duration::from_millis(2);

/// The least time between two stacks that are taken at releases: threads that hand the lock over more often
/// are not slowed down by that.
const BETWEEN_RELEASES: Duration = Duration::from_micros(100);

/// The threads that wait for a lock.
pub struct Waiters {
    /// Since when the thread in each place waits; 0 in free places.
    since: [AtomicU64; PLACES],
    /// All places from this one on are free.
    top: AtomicUsize,
    /// Since when the thread waits that has waited longest; 0 if none waits.
    oldest: AtomicU64,
    /// When the holder's stack was last taken while it held the lock.
    sampled: AtomicU64,
    /// When a stack was last taken at a release. Threads that hold the lock briefly release it often: if that
    /// counted as a sample, none would be taken in their holds.
    released: AtomicU64,
}

impl Waiters {
    /// No thread waits.
    pub const fn new() -> Self {
        Self {
            since: [const { AtomicU64::new(0) }; PLACES],
            top: AtomicUsize::new(0),
            oldest: AtomicU64::new(0),
            sampled: AtomicU64::new(0),
            released: AtomicU64::new(0),
        }
    }

    fn used(&self) -> &[AtomicU64] {
        &self.since[..self.top.load(Relaxed)]
    }

    /// A thread waits since a time that is not 0. Returns its place, for [`leave`](Self::leave); `None` if
    /// all are taken.
    pub fn enter(&self, since: Ticks) -> Option<usize> {
        let free = self.since.iter().position(|place| place.load(Relaxed) == 0)?;
        self.since[free].store(since, Relaxed);
        self.top.fetch_max(free + 1, Relaxed);
        let oldest = self.oldest.load(Relaxed);
        if oldest == 0 || since < oldest {
            self.oldest.store(since, Relaxed);
        }
        Some(free)
    }

    /// The thread in a place no longer waits. Returns since when it did.
    pub fn leave(&self, place: usize) -> Ticks {
        let since = self.since[place].swap(0, Relaxed);
        let used = self.used().iter().rposition(|place| place.load(Relaxed) != 0);
        self.top.store(used.map_or(0, |last| last + 1), Relaxed);
        if since == self.oldest.load(Relaxed) {
            let waiting = self.used().iter().map(|place| place.load(Relaxed)).filter(|since| *since != 0);
            self.oldest.store(waiting.min().unwrap_or(0), Relaxed);
        }
        since
    }

    /// No thread waits any more: in the child of a fork, those of the parent do not exist.
    pub fn clear(&self) {
        self.since.iter().for_each(|place| place.store(0, Relaxed));
        self.top.store(0, Relaxed);
        self.oldest.store(0, Relaxed);
    }

    /// Since when the thread waits that has waited longest.
    #[inline]
    pub fn oldest(&self) -> Option<Ticks> {
        Some(self.oldest.load(Relaxed)).filter(|since| *since != 0)
    }

    /// When the holder's stack is due for a thread that waits since `since`; `None` if no stacks are recorded.
    pub fn due(&self, since: Ticks) -> Option<Ticks> {
        let sampled = self.sampled.load(Relaxed);
        let after_sampled = if sampled == 0 { 0 } else { sampled + clock::ticks(BETWEEN_SAMPLES) };
        Some(after_sampled.max(since.saturating_add(stacks_after()?)))
    }

    /// Whether the holder's stack is to be taken as it releases the lock.
    #[inline]
    pub fn wants_release(&self, now: Ticks) -> bool {
        let Some((after, since)) = stacks_after().zip(self.oldest()) else { return false };
        let since_released = now.saturating_sub(self.released.load(Relaxed));
        now.saturating_sub(since) >= after && since_released >= clock::ticks(BETWEEN_RELEASES)
    }

    /// The holder's stack is being taken while it holds the lock.
    pub fn sample(&self, now: Ticks) {
        self.sampled.store(now, Relaxed);
    }

    /// The holder's stack is being taken as it releases the lock.
    pub fn release(&self, now: Ticks) {
        self.released.store(now, Relaxed);
    }
}

impl Default for Waiters {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_wait_counts_in_any_order_of_leaving() {
        let waiters = Waiters::new();
        assert_eq!(waiters.oldest(), None);
        let places: Vec<usize> = [30, 10, 20].map(|since| waiters.enter(since).expect("free")).to_vec();
        assert_eq!(waiters.oldest(), Some(10));
        assert_eq!(waiters.leave(places[1]), 10);
        assert_eq!(waiters.oldest(), Some(20));
        assert_eq!(waiters.enter(5), Some(places[1]));
        assert_eq!(waiters.oldest(), Some(5));
        for (place, left) in [(places[1], Some(20)), (places[2], Some(30)), (places[0], None)] {
            waiters.leave(place);
            assert_eq!(waiters.oldest(), left);
        }
    }

    #[test]
    fn stacks_at_releases_do_not_put_off_samples() {
        let waiters = Waiters::new();
        waiters.sample(1_000);
        waiters.release(2_000);
        assert_eq!(waiters.sampled.load(Relaxed), 1_000);
        assert_eq!(waiters.released.load(Relaxed), 2_000);
    }

    #[test]
    fn beyond_all_places_the_others_stand_for_a_thread() {
        let waiters = Waiters::new();
        for since in 1..=PLACES as u64 {
            assert!(waiters.enter(since).is_some());
        }
        assert_eq!(waiters.enter(1_000), None);
        waiters.clear();
        assert_eq!((waiters.oldest(), waiters.enter(7)), (None, Some(0)));
    }
}
