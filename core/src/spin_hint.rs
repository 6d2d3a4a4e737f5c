//! A hint that lets a thread spin for an interpreter lock instead of sleeping.
//!
//! After its work a thread acquires the lock again to build its result, often while another thread builds
//! one. The lock puts a waiting thread to sleep, and waking it takes longer (20 to 100 µs) than the build. So
//! each thread notes when it acquires and releases the lock, and a thread that wants the lock while another
//! one has just acquired it spins for at most 60 µs before it asks for the lock.
//!
//! This is only a hint: correctness rests on the lock itself. A thread does not spin if the holder has had
//! the lock for longer than 60 µs, because such a holder does other things than building a small result.
//! Spinning before sleeping is the usual design of adaptive mutexes (for example, glibc's
//! `PTHREAD_MUTEX_ADAPTIVE_NP`).

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::os::monotonic_nanoseconds as now;

/// How long a holder is expected to hold the lock, and the longest time for which a thread spins, in
/// nanoseconds: about as long as waking a thread takes.
const SHORT: u64 = 60_000;

/// When a thread last acquired the lock through offlock: nanoseconds of the monotonic clock, or 0 after the
/// release.
#[derive(Debug, Default)]
pub struct SpinHint(AtomicU64);

impl SpinHint {
    /// No thread holds the lock.
    pub const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Notes that the calling thread has released the lock.
    pub fn released(&self) {
        self.0.store(0, Ordering::Release);
    }

    /// Notes that the calling thread is about to acquire the lock. Spins first while another thread is
    /// expected to release it soon.
    pub fn spin(&self) {
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

    /// Notes that the calling thread has acquired the lock.
    pub fn acquired(&self) {
        self.0.store(now(), Ordering::Release);
    }
}

/// Whether a thread that arrived at `came` keeps spinning, given that the lock was taken at `taken` (0: it is
/// free).
const fn has_to_wait(taken: u64, came: u64, present: u64) -> bool {
    taken != 0 && present < taken + SHORT && present < came + SHORT
}

/// Whether there is only one CPU: a spinning thread would keep the holder from running.
fn is_alone() -> bool {
    // An atomic instead of a `OnceLock`, which a fork could leave locked. 0 means unknown: finding out takes
    // system calls.
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
                        spin_hint.spin();
                        spin_hint.acquired();
                        holders.fetch_add(1, Ordering::Relaxed);
                        spin_hint.released();
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
        spin_hint.acquired();
        spin_hint.spin();
        spin_hint.spin();
        assert_ne!(spin_hint.0.into_inner(), 0);
    }
}
