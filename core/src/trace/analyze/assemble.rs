//! Puts the timeline together: the lives of the threads, what they computed off the lock, and the locks.
//!
//! The holds of a lock are merged over all threads and checked for overlaps. For n events this takes O(n log
//! n) steps, because of the sorting of holds.

use std::collections::BTreeMap;

use super::recording::Recording;
use super::timeline::{Hold, Life, LockLife, Overlap, Timeline, live};
use super::usage;
use crate::trace::format::definition::LockKind;

impl Timeline {
    /// The timeline of a recording.
    pub fn of(recording: &Recording) -> Self {
        let lock = recording.locks.keys().next().copied().unwrap_or(0);
        let lives = recording.threads.iter().map(|(id, thread)| live(recording, lock, *id, thread));
        let mut threads: Vec<Life> =
            lives.filter(|life| life.end > life.start || life.acquisitions > 0).collect();
        usage::add(recording, &mut threads);
        let (mut locks, mut overlaps) = (gather_locks(recording, &threads), Vec::new());
        locks.iter_mut().for_each(|lock| separate(lock, &mut overlaps));
        Self { length: recording.end - recording.start, threads, locks, overlaps }
    }
}

fn gather_locks(recording: &Recording, threads: &[Life]) -> Vec<LockLife> {
    let mut locks: BTreeMap<u32, LockLife> = BTreeMap::new();
    locks.extend(recording.locks.keys().map(|id| (*id, LockLife::default())));
    for (thread, life) in threads.iter().enumerate() {
        for stretch in life.holds.iter().filter(|stretch| stretch.length() > 0) {
            let lock = locks.entry(stretch.lock).or_default();
            lock.holds.push(Hold { thread, start: stretch.start, end: stretch.end });
        }
        for wait in &life.waits {
            locks.entry(wait.lock).or_default();
        }
    }
    for (id, lock) in &mut locks {
        (lock.id, lock.name) = (*id, recording.lock_name(*id));
        if recording.has_no_lock() {
            lock.kind = LockKind::without_lock(&lock.name);
        }
        lock.holds.sort_unstable_by_key(|hold| (hold.start, hold.end));
    }
    locks.into_values().collect()
}

/// Notes overlapping holds, and ends the earlier one where the later one begins.
fn separate(lock: &mut LockLife, overlaps: &mut Vec<Overlap>) {
    for next in 1..lock.holds.len() {
        let (a, b) = (lock.holds[next - 1], lock.holds[next]);
        if a.end > b.start {
            let end = a.end.min(b.end);
            overlaps.push(Overlap { lock: lock.id, first: a.thread, second: b.thread, start: b.start, end });
            lock.holds[next - 1].end = b.start;
        }
    }
}
