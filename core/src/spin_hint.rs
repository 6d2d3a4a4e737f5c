//! A hint that lets a thread spin for an interpreter lock instead of sleeping for it.
//!
//! After its work a thread acquires the lock again to build its result, often while another thread builds one. The lock
//! puts a waiting thread to sleep, and waking it takes longer (20 to 100 µs) than the build. So each thread notes when it
//! acquires and releases the lock, and a thread that comes in between spins for at most 60 µs.
//!
//! The hint decides nothing: the lock itself does. A thread does not spin for a holder that has had the lock for longer than
//! that, as it does something else.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::os::monotonic_nanoseconds as now;

/// How long a holder is expected to hold the lock, and the longest time that a thread spins, in nanoseconds: about as long
/// as waking a thread takes.
const SHORT: u64 = 60_000;

/// When one of us took a lock last: nanoseconds of the monotonic clock, 0 once it was given up.
#[derive(Debug, Default)]
pub struct SpinHint(AtomicU64);

impl SpinHint {
    /// No thread holds the lock.
    pub const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// To be called when the lock was given up.
    pub fn gave(&self) {
        self.0.store(0, Ordering::Release);
    }

    /// To be called before the lock is taken: waits while another one of us is expected to give it up, and is the next.
    pub fn claim(&self) {
        let came = now();
        let mut present = came;
        loop {
            let taken = self.0.load(Ordering::Acquire);
            if has_to_wait(taken, came, present) && !is_alone() {
                std::hint::spin_loop();
                present = now();
            } else if self.0.compare_exchange(taken, present, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                return;
            }
        }
    }

    /// To be called when the lock was taken.
    pub fn took(&self) {
        self.0.store(now(), Ordering::Release);
    }
}

/// Whether one that came at `came` still waits, when the lock was taken at `taken` if not 0.
const fn has_to_wait(taken: u64, came: u64, present: u64) -> bool {
    taken != 0 && present < taken + SHORT && present < came + SHORT
}

/// Whether there is one CPU only: a thread that spins there keeps the holder from running.
fn is_alone() -> bool {
    // No lock, which a fork could find locked: 0 until it is known, which takes system calls.
    static PROCESSORS: AtomicUsize = AtomicUsize::new(0);
    let mut processors = PROCESSORS.load(Ordering::Relaxed);
    if processors == 0 {
        processors = std::thread::available_parallelism().map_or(2, usize::from);
        PROCESSORS.store(processors, Ordering::Relaxed);
    }
    processors == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_waits_for_a_holder_that_took_the_lock_just_now_but_not_for_long() {
        let taken = 1_000_000;
        assert!(has_to_wait(taken, taken + 10, taken + 10));
        assert!(has_to_wait(taken, taken + 10, taken + SHORT - 1));
        assert!(!has_to_wait(taken, taken + 10, taken + SHORT), "that holder does something else");
        assert!(!has_to_wait(0, taken, taken), "nobody holds it");
        let retaken = taken + SHORT - 5;
        assert!(!has_to_wait(retaken, taken, taken + SHORT), "others were faster, but it is enough");
    }

    #[test]
    fn the_lock_goes_from_one_to_the_next() {
        let spin_hint = SpinHint::new();
        let holders = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..1000 {
                        spin_hint.claim();
                        spin_hint.took();
                        holders.fetch_add(1, Ordering::Relaxed);
                        spin_hint.gave();
                    }
                });
            }
        });
        assert_eq!(holders.into_inner(), 4000);
        assert_eq!(spin_hint.0.into_inner(), 0);
    }

    #[test]
    fn a_holder_that_stays_away_stops_nobody() {
        let spin_hint = SpinHint::new();
        spin_hint.took();
        spin_hint.claim();
        spin_hint.claim();
        assert_ne!(spin_hint.0.into_inner(), 0);
    }
}
