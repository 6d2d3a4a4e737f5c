//! Contended waits: those for a lock that another thread held, or that came late for another reason.
//!
//! A thread that takes a free lock waits for it, too, for some 60 ns. Such waits cost nothing, and where they
//! are many, they would hide the others in every average.

use super::timeline::{Life, LockLife, Stretch, Timeline};

use crate::trace::format::definition::LockKind;

/// A wait of this length, in nanoseconds, is contended even if no other thread held the lock meanwhile: the
/// thread had no processor.
pub(super) const LATE: u64 = 1_000_000;

/// The contended waits of each thread, in order. O(w · log h) for w waits and h holds.
pub(super) fn contended_waits(timeline: &Timeline) -> Vec<Vec<Stretch>> {
    let of = |(thread, life): (usize, &Life)| {
        let waits = life.waits.iter().filter(|wait| is_contended(timeline, thread, wait));
        waits.copied().collect()
    };
    timeline.threads.iter().enumerate().map(of).collect()
}

fn is_contended(timeline: &Timeline, thread: usize, wait: &Stretch) -> bool {
    let lock = timeline.locks.iter().find(|lock| lock.id == wait.lock);
    // These may be for a lock of the program's own, for which a thread is otherwise idle.
    let is_unclear = lock.is_some_and(|lock| lock.kind == LockKind::Spinning);
    let is_late = || wait.length() >= LATE;
    !is_unclear
        && (is_late()
            || lock.is_some_and(|lock| is_never_free(lock) || is_held_by_another(lock, thread, wait)))
}

/// Where there is no interpreter lock, waits are recorded only while something has to be waited for.
fn is_never_free(lock: &LockLife) -> bool {
    matches!(lock.kind, LockKind::StopTheWorld | LockKind::Objects)
}

fn is_held_by_another(lock: &LockLife, thread: usize, wait: &Stretch) -> bool {
    let first = lock.holds.partition_point(|hold| hold.end <= wait.start);
    let meanwhile = lock.holds[first..].iter().take_while(|hold| hold.start < wait.end);
    meanwhile.into_iter().any(|hold| hold.thread != thread)
}
