//! What threads lost in contended waits, and whether to the lock.
//!
//! A thread that waits for a lock waits for its holder; or the lock is free, and passes to the thread or to
//! another one. That takes microseconds if there is a processor for the thread. If there is none, it takes as
//! long as other threads and programs use the processors, and the lock is not the cause. Nor is it if the
//! holder has no processor.

use super::summary::{GroupSummary, LockSummary, Summary, per};
use super::timeline::Usage;

/// The longest time, in nanoseconds, for which a lock is free while it passes to a thread that has a processor.
/// This and what follows is used where the system does not say how long threads had none.
const LONG_WAY: u64 = 1_000_000;
/// The same on a busy machine: to wake a thread takes 20 to 100 µs.
const LONG_WAY_IF_BUSY: u64 = 100_000;
/// The share of its processors' time from which on a machine is busy.
const BUSY: f64 = 0.9;
/// The share of the recording below which the processor time of a process on a busy machine is little.
const LITTLE: f64 = 0.05;
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
        let is_late = match delay_waiting(summary.usage) {
            Some(delay) => delay * 2 >= waited,
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

fn is_busy(summary: &Summary) -> bool {
    summary.machine_busy.is_some_and(|busy| busy >= BUSY)
}

/// How long threads waited for a lock while they were ready to run, if the system says that.
fn delay_waiting(usage: Option<Usage>) -> Option<u64> {
    usage?.run_delay_waiting
}

/// What threads lost, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Loss {
    /// In contended waits.
    waited: u64,
    /// Of that, to the lock.
    to_lock: u64,
    /// For want of a processor, in such waits and otherwise.
    to_processors: u64,
    /// What they were active for besides.
    computing: u64,
}

impl Loss {
    pub(super) fn of(summary: &Summary, group: &GroupSummary) -> Self {
        let (waited, computing) = (group.contended.total, group.times.computing());
        let free = free(summary, group).min(waited);
        let late = match delay_waiting(group.usage) {
            Some(delay) => delay.min(free),
            None if summary.locks.iter().any(|lock| Free::of(summary, lock).is_late) => free,
            None => 0,
        };
        let stalled = stalled(summary);
        let to_lock = if is_kept_from_processors(summary) { 0 } else { waited - late };
        let to_processors = late + ((waited - free + computing) as f64 * stalled) as u64;
        Self { waited, to_lock, to_processors, computing }
    }

    /// The loss of all threads together.
    pub(super) fn of_all(summary: &Summary) -> Self {
        let add = |sum: Self, loss: Self| Self {
            waited: sum.waited + loss.waited,
            to_lock: sum.to_lock + loss.to_lock,
            to_processors: sum.to_processors + loss.to_processors,
            computing: sum.computing + loss.computing,
        };
        summary.groups.iter().map(|group| Self::of(summary, group)).fold(Self::default(), add)
    }

    /// The share of their active time that they lost to the lock. With enough processors, this is what would
    /// be left.
    pub(super) fn to_lock(self) -> f64 {
        per(self.to_lock, self.to_lock + self.computing)
    }

    /// The share of their active time for which they had no processor.
    pub(super) fn to_processors(self) -> f64 {
        per(self.to_processors, self.waited + self.computing)
    }

    /// The lock's share of the contended waits.
    pub(super) fn of_waiting(self) -> f64 {
        per(self.to_lock, self.waited)
    }
}

/// How long the threads of a group waited for a lock that no thread held. Samples do not show that.
fn free(summary: &Summary, group: &GroupSummary) -> u64 {
    if summary.is_estimate() {
        return 0;
    }
    let rows = summary.locks.iter().flat_map(|lock| &lock.blame);
    let own = rows.filter(|row| group.threads.binary_search(&row.thread).is_ok());
    own.map(|row| row.by_no_thread).sum()
}

/// The share of the time in which threads held a lock, or computed without one, for which they had no
/// processor.
fn stalled(summary: &Summary) -> f64 {
    let Some(usage) = summary.usage else { return 0.0 };
    let computing = summary.times.computing();
    match usage.run_delay.zip(usage.run_delay_waiting) {
        Some((all, waiting)) => per(all.saturating_sub(waiting), computing).min(1.0),
        None if is_busy(summary) && computing > 0 => (1.0 - per(usage.cpu, computing)).max(0.0),
        None => 0.0,
    }
}

/// Whether threads wait for the lock only because the machine is busy: the process uses little of it, or computes
/// so little with the lock that the lock could not keep its processors idle.
fn is_kept_from_processors(summary: &Summary) -> bool {
    let Some((usage, processors)) = summary.usage.zip(summary.processors) else { return false };
    let off_lock: u64 = summary.operations.iter().map(|operation| operation.times.off_lock).sum();
    let with_lock = usage.cpu.saturating_sub(usage.others + off_lock);
    let is_bound = per(with_lock, usage.cpu) * processors >= ENOUGH_TO_BIND;
    is_busy(summary) && (per(usage.cpu, summary.length) < LITTLE || !is_bound)
}
