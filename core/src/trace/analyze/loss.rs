//! What threads lost in contended waits, and whether to the lock.
//!
//! A thread that waits for a lock waits for its holder; or the lock is free, and passes to the thread or to
//! another one. That takes microseconds if there is a processor for the thread. If there is none, it takes as
//! long as other threads and programs use the processors, and the lock is not the cause. Nor is it if the
//! holder has no processor.

use super::summary::{GroupSummary, LockSummary, Summary, per};
use crate::trace::format::definition::LockKind;

/// The longest time, in nanoseconds, for which a lock is free while it passes to a thread that has a processor.
/// This and what follows is used where the system does not say how long threads had none.
const LONG_WAY: u64 = 1_000_000;
/// The same on a busy machine: to wake a thread takes 20 to 100 µs.
const LONG_WAY_IF_BUSY: u64 = 100_000;
/// The share of its processors' time from which on a machine is busy.
const BUSY: f64 = 0.9;
/// The share of the recording below which the processor time of a process on a busy machine is little.
const LITTLE: f64 = 0.05;
/// The share of the recording from which on the time in contended waits is enough to judge by, even if they are few, and
/// the time, in nanoseconds, that may be enough, and that is.
const ENOUGH_TIME: (f64, u64, u64) = (0.05, 50_000_000, 500_000_000);
/// If a process had all its processors and this much work with the lock for each of them, threads would wait for
/// it for much of the time; at 1, always.
const ENOUGH_TO_BIND: f64 = 0.5;
/// The number of hand-overs, in total or per second, below which fewer of them would gain little.
const FEW_HAND_OVERS: u64 = 100;

/// The time in which a lock was free while threads waited for it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Free {
    /// How long these threads together waited meanwhile, in nanoseconds.
    pub(super) waited: u64,
    /// The hand-overs per second.
    pub(super) per_second: f64,
    /// Whether the reason was that the threads had no processor.
    pub(super) is_late: bool,
}

impl Free {
    pub(super) fn of(summary: &Summary, lock: &LockSummary) -> Self {
        let waited: u64 = lock.blame.iter().map(|row| row.by_no_thread).sum();
        let per_second = lock.holds as f64 / (summary.length as f64 / 1e9);
        let is_late = match delay_waiting(summary) {
            Some(delay) => delay * 2 >= lock.free,
            None => {
                let contended: u64 = summary.groups.iter().map(|group| group.contended.count).sum();
                // Several threads may wait while it passes to one.
                let free = waited.min(summary.length.saturating_sub(lock.held));
                let few = lock.holds < FEW_HAND_OVERS || per_second < FEW_HAND_OVERS as f64;
                few || free / contended.max(1) > if is_busy(summary) { LONG_WAY_IF_BUSY } else { LONG_WAY }
            }
        };
        Self { waited, per_second, is_late }
    }
}

/// The time in contended waits, in nanoseconds, that is enough to judge by in a recording of this length.
pub(super) fn enough(length: u64) -> u64 {
    let (share, least, most) = ENOUGH_TIME;
    part(length, share).clamp(least, most)
}

fn is_busy(summary: &Summary) -> bool {
    summary.machine_busy.is_some_and(|busy| busy >= BUSY)
}

/// How long threads waited for a lock while they were ready to run, if the system says that.
fn delay_waiting(summary: &Summary) -> Option<u64> {
    summary.usage?.run_delay_waiting
}

/// What threads lost, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Loss {
    /// In contended waits.
    waited: u64,
    /// Of that, to the lock.
    to_lock: u64,
    /// What would be left of that if the holders of the lock always had a processor.
    left: u64,
    /// For want of a processor, in such waits and otherwise.
    to_processors: u64,
    /// What they were active for besides.
    computing: u64,
}

impl Loss {
    pub(super) fn of(summary: &Summary, group: &GroupSummary) -> Self {
        let (waited, computing) = (group.contended.total, group.times.computing());
        let free = free(summary, group).min(waited);
        let late = part(free, late(summary));
        let stalled = stalled(summary);
        let without_processors = part(computing, stalled);
        if is_kept_from_processors(summary) {
            let to_processors = waited + without_processors;
            return Self { waited, computing, to_processors, ..Self::default() };
        }
        let behind = part(waited - free, stalled);
        Self {
            waited,
            to_lock: waited - late,
            left: waited - late - behind,
            to_processors: late + behind + without_processors,
            computing,
        }
    }

    /// The loss of all threads together.
    pub(super) fn of_all(summary: &Summary) -> Self {
        let add = |sum: Self, loss: Self| Self {
            waited: sum.waited + loss.waited,
            to_lock: sum.to_lock + loss.to_lock,
            left: sum.left + loss.left,
            to_processors: sum.to_processors + loss.to_processors,
            computing: sum.computing + loss.computing,
        };
        summary.groups.iter().map(|group| Self::of(summary, group)).fold(Self::default(), add)
    }

    /// The share of their active time that they lost to the lock. It would be the same with enough processors,
    /// which shorten the waits behind holders and the computing alike.
    pub(super) fn to_lock(self) -> f64 {
        per(self.to_lock, self.to_lock + self.computing)
    }

    /// The share of their active time for which they had no processor.
    pub(super) fn to_processors(self) -> f64 {
        per(self.to_processors, self.waited + self.computing)
    }

    /// For how long they had no processor, in nanoseconds.
    pub(super) fn without_processors(self) -> u64 {
        self.to_processors
    }

    /// The part of a time in contended waits that would be left with enough processors.
    pub(super) fn left_of(self, waited: u64) -> u64 {
        part(waited, per(self.left, self.waited))
    }

    /// The lock's share of the contended waits.
    pub(super) fn of_waiting(self) -> f64 {
        per(self.to_lock, self.waited)
    }
}

/// How long the threads of a group waited for a lock that no thread held. Samples do not show that, and the locks of
/// objects seem to be free.
fn free(summary: &Summary, group: &GroupSummary) -> u64 {
    let is_known = |lock: &&LockSummary| match lock.kind {
        LockKind::Interpreter => !summary.is_estimate(),
        LockKind::StopTheWorld => true,
        LockKind::Objects | LockKind::Spinning => false,
    };
    let rows = summary.locks.iter().filter(is_known).flat_map(|lock| &lock.blame);
    let own = rows.filter(|row| group.threads.binary_search(&row.thread).is_ok());
    own.map(|row| row.by_no_thread).sum()
}

fn part(time: u64, share: f64) -> u64 {
    (time as f64 * share) as u64
}

/// The part of the waiting for a free lock that was for want of a processor. While the thread that is to get the
/// lock has none, all others that want it wait, too. If that is most of it, the machine is busy, and threads wake up
/// late otherwise as well.
fn late(summary: &Summary) -> f64 {
    if summary.has_no_lock() {
        // After a pause, all threads may run.
        return 1.0;
    }
    let is_late = summary.locks.iter().any(|lock| Free::of(summary, lock).is_late);
    match delay_waiting(summary) {
        _ if is_late => 1.0,
        Some(delay) => per(delay, summary.locks.iter().map(|lock| lock.free).sum()),
        None => 0.0,
    }
}

/// The share of the time in which threads held a lock, or computed without one, for which they had no
/// processor.
fn stalled(summary: &Summary) -> f64 {
    let Some(usage) = summary.usage else { return 0.0 };
    let computing = summary.times.computing();
    match usage.run_delay_working {
        Some(delay) => per(delay, computing).min(1.0),
        None if is_busy(summary) && computing > 0 => (1.0 - per(usage.cpu, computing)).max(0.0),
        None => 0.0,
    }
}

/// Whether threads wait for the lock only because the machine is busy: the process uses little of it and waits little,
/// or computes so little with the lock that the lock could not keep its processors idle.
fn is_kept_from_processors(summary: &Summary) -> bool {
    if summary.has_no_lock() {
        return false;
    }
    let Some((usage, processors)) = summary.usage.zip(summary.processors) else { return false };
    let off_lock: u64 = summary.operations.iter().map(|operation| operation.times.off_lock).sum();
    let with_lock = usage.cpu.saturating_sub(usage.others + off_lock);
    let is_bound = per(with_lock, usage.cpu) * processors >= ENOUGH_TO_BIND;
    let is_little =
        per(usage.cpu, summary.length) < LITTLE && summary.contended.total < enough(summary.length);
    is_busy(summary) && (is_little || !is_bound)
}
