//! Handing over an interpreter lock: a hint that spares threads the sleep to which the lock itself would put them.
//!
//! After its work a thread wants the lock back to build its result, often just while another thread of ours has it for the
//! same short while. An interpreter lock puts whoever has to wait to sleep, and waking up takes longer (20 to 100 µs)
//! than the wait. So threads say when they take the lock and when they give it up, and who comes in between waits
//! actively, for a little while.
//!
//! It is a hint and nothing more: the lock itself decides who runs. A holder that went on with something else is not waited
//! for.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::os::monotonic_nanoseconds as now;

/// How long a holder is expected to have the lock, and the longest that anybody waits actively: about as long as it takes
/// to be woken.
const SHORT: u64 = 60_000;

/// When one of us took a lock last: nanoseconds of the monotonic clock, 0 once it was given up.
#[derive(Debug, Default)]
pub struct Handover(AtomicU64);

impl Handover {
    /// Nobody holds the lock.
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

/// Whether there is one processor only: who waits actively there keeps the holder from going on.
fn is_alone() -> bool {
    static ALONE: OnceLock<bool> = OnceLock::new();
    *ALONE.get_or_init(|| std::thread::available_parallelism().is_ok_and(|count| count.get() == 1))
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
        let handover = Handover::new();
        let holders = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..1000 {
                        handover.claim();
                        handover.took();
                        holders.fetch_add(1, Ordering::Relaxed);
                        handover.gave();
                    }
                });
            }
        });
        assert_eq!(holders.into_inner(), 4000);
        assert_eq!(handover.0.into_inner(), 0);
    }

    #[test]
    fn a_holder_that_stays_away_stops_nobody() {
        let handover = Handover::new();
        handover.took();
        handover.claim();
        handover.claim();
        assert_ne!(handover.0.into_inner(), 0);
    }
}
