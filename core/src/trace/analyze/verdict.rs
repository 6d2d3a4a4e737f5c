//! The verdict: whether waiting for the lock slows the program down.
//!
//! The measure is the share of their active time that the threads of a group lose in contended waits for the
//! lock ([`Loss::to_lock`]). Time in which a thread sleeps or is blocked on something else is left out of it,
//! so a server that is idle most of the day is judged by the time in which it works, and a pool of ten threads
//! like a single one. Uncontended waits are left out, too: there are many, and each takes 60 ns. So are waits
//! for a processor, while the lock is free.
//!
//! Where the program marks what it does, such as requests, the measure is also the share of a mark's duration
//! that it loses in this way, because a pool that computes most of the time loses little by the few quick
//! requests that lose nearly all of theirs.
//!
//! | a group or a mark loses | the verdict |
//! |---|---|
//! | less than 5 % | the lock is not the problem: the work on the lock would pay back less than that |
//! | 5 % to 15 % | a problem, weak |
//! | 15 % to 50 % | a problem, clear |
//! | 50 % and more | a problem, strong: without the lock its threads would do at least twice as much |
//!
//! A loss counts if it rests on [`ENOUGH_WAITS`] contended waits, or if fewer together took 5 % of the
//! recording (not less than 50 ms, but half a second is enough), and if anybody can notice it:
//!
//! - Nobody can if the waits are short ([`LATE`]) and the threads idle for nine tenths of their lives, or if they
//!   are not long ([`LONG`]) and take a hundredth of these lives, as when many idle threads start: what the
//!   threads are blocked on then takes a hundred times as long as the lock.
//! - The loss is weak, whatever its share, if the waits are shorter than an interpreter's time slice ([`SLICE`])
//!   and the threads idle for half of their lives, or each of them lost less than [`LATE`] in all: a server with
//!   little to do, whose requests take some tenths of a millisecond longer. So is that of a mark whose instances
//!   lose less than that.
//!
//! To tell at all, the recording has to last [`LONG_ENOUGH`]. It is also too short to tell if waits that took
//! 5 % of it are too few and too short to count.
//!
//! If the lock is not the problem, too few processors may be: the threads that were ready to run waited for
//! them for [`FULL`] of their active time and a hundredth of the recording, and the processors were in use
//! ([`IN_USE`]). On an idle machine, a thread that is late is one that takes long to wake up. On a full one, waits are
//! as long as the holder of the lock has no processor: by how much, and how long, threads lose is judged by what would
//! be left with enough processors ([`Loss::left_of`]).

use super::contention::LATE;
use super::finding::Strength;
use super::loss::{Loss, enough};
use super::summary::{GroupSummary, MarkSummary, Summary, WaitTimes, per};

/// The share of active time from which on a loss is a problem.
pub(super) const WEAK: f64 = 0.05;
/// From here on it is clear.
const CLEAR: f64 = 0.15;
/// From here on it is strong.
const STRONG: f64 = 0.5;

/// The shortest recording that is judged, in nanoseconds.
pub(super) const LONG_ENOUGH: u64 = 100_000_000;
/// The number of contended waits that is enough to judge by.
const ENOUGH_WAITS: u64 = 10;
/// Threads that are active for less than this share of their lives notice long waits only.
const BUSY: f64 = 0.1;
/// Threads that are active for at least this share of their lives would do more without their waits.
const BOUND: f64 = 0.5;
/// The share of their lives below which threads notice only waits of at least [`LONG`].
const LITTLE: f64 = 0.01;
/// A wait, in nanoseconds, that a user of the program notices however rare it is.
const LONG: u64 = 10_000_000;
/// The shortest wait, in nanoseconds, behind a thread that computes until the interpreter takes the lock from it:
/// CPython's switch interval. Ruby's is longer.
const SLICE: u64 = 5_000_000;
/// The share of active time without a processor from which on the machine is full.
const FULL: f64 = 0.15;
/// The share of the processors' time below which the machine is not full.
const IN_USE: f64 = 0.7;

/// The threads that lost most, the mark that lost the greatest part of its time, and how much.
#[derive(Debug, PartialEq)]
pub(super) struct Problem<'a> {
    /// The group that lost most time, with the share of its active time.
    pub(super) group: Option<(&'a GroupSummary, f64)>,
    /// The mark that lost the greatest share of its duration, and this share.
    pub(super) mark: Option<(&'a MarkSummary, f64)>,
    /// The greater one of the two.
    pub(super) strength: Strength,
}

/// What the numbers say.
#[derive(Debug, PartialEq)]
pub(super) enum Verdict<'a> {
    /// No thread used a lock.
    Unused,
    /// The recording is too short, or has too few contended waits.
    TooShort,
    /// No group lost much; all threads together lost this share of their active time.
    NotTheLock(f64),
    /// The threads waited for processors, not for the lock, for this share of their active time.
    MachineFull(f64),
    /// The lock slows the program down.
    Lock(Problem<'a>),
}

impl<'a> Verdict<'a> {
    /// The verdict on a recording.
    pub(super) fn of(summary: &'a Summary) -> Self {
        if summary.locks.is_empty() {
            return Self::Unused;
        }
        if summary.length < LONG_ENOUGH {
            return Self::TooShort;
        }
        match (Problem::of(summary), machine_is_full(summary)) {
            (Some(problem), _) => Self::Lock(problem),
            (None, Some(lost)) => Self::MachineFull(lost),
            (None, _) if summary.groups.iter().any(|group| may_be_lost(summary, group)) => Self::TooShort,
            _ => Self::NotTheLock(Loss::of_all(summary).to_lock()),
        }
    }
}

/// The share of their active time that all threads lost for want of a processor, if that is much.
pub(super) fn machine_is_full(summary: &Summary) -> Option<f64> {
    let loss = Loss::of_all(summary);
    let lost = loss.to_processors();
    let is_in_use = summary.machine_busy.is_none_or(|busy| busy >= IN_USE);
    let is_noticed = per(loss.without_processors(), summary.length) >= LITTLE;
    (lost >= FULL && is_in_use && is_noticed).then_some(lost)
}

impl<'a> Problem<'a> {
    fn of(summary: &'a Summary) -> Option<Self> {
        let groups = summary.groups.iter().map(|group| (group, Loss::of(summary, group)));
        let groups = groups.filter(|(group, loss)| {
            loss.to_lock() >= WEAK && is_enough(summary, &group.contended, *loss) && is_noticed(group, *loss)
        });
        let groups = groups.map(|(group, loss)| (group, loss.to_lock()));
        let group = groups.max_by_key(|(group, _)| group.contended.total);
        let all = Loss::of_all(summary);
        let marks = summary.marks.iter().map(|mark| (mark, lost(mark) * all.of_waiting()));
        let marks = marks.filter(|(mark, lost)| *lost >= WEAK && is_enough(summary, &mark.contended, all));
        let mark = marks.max_by(|(_, a), (_, b)| a.total_cmp(b));
        let of_group = group.map(|(group, lost)| strength(lost, slows_a_little(group)));
        let of_mark = mark.map(|(mark, lost)| strength(lost, is_short(mark)));
        of_group.max(of_mark).map(|strength| Self { group, mark, strength })
    }
}

/// The share of a mark's duration that it lost in contended waits.
fn lost(mark: &MarkSummary) -> f64 {
    per(mark.losses.total, mark.lengths.total)
}

fn is_enough(summary: &Summary, waits: &WaitTimes, loss: Loss) -> bool {
    waits.count >= ENOUGH_WAITS || loss.left_of(waits.total) >= enough(summary.length)
}

fn is_noticed(group: &GroupSummary, loss: Loss) -> bool {
    let is_long = |least: u64| loss.left_of(group.contended.p99) >= least;
    let is_much = per(loss.left_of(group.contended.total), group.times.total()) >= LITTLE;
    (is_long(LATE) || active(group) >= BUSY) && (is_long(LONG) || is_much)
}

/// The share of their lives for which its threads were active.
fn active(group: &GroupSummary) -> f64 {
    per(group.contended.total + group.times.computing(), group.times.total())
}

/// Whether its waits are too short, for threads that have little to do, to slow these down more than a little.
fn slows_a_little(group: &GroupSummary) -> bool {
    let of_a_thread = group.contended.total / (group.threads.len() as u64).max(1);
    group.contended.p99 < SLICE && (active(group) < BOUND || of_a_thread < LATE)
}

/// Whether its instances lost too little to be slowed down more than a little.
fn is_short(mark: &MarkSummary) -> bool {
    mark.contended.p99 < SLICE && mark.losses.total / mark.lengths.count.max(1) < LATE
}

/// Whether the group might lose much in a longer recording.
fn may_be_lost(summary: &Summary, group: &GroupSummary) -> bool {
    let is_big = per(group.contended.total, summary.length) >= WEAK;
    let loss = Loss::of(summary, group);
    is_big && !is_enough(summary, &group.contended, loss) && loss.to_lock() >= WEAK
}

fn strength(lost: f64, is_little: bool) -> Strength {
    match lost {
        _ if is_little => Strength::Weak,
        STRONG.. => Strength::Strong,
        CLEAR.. => Strength::Clear,
        _ => Strength::Weak,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::analyze::summary::{BlameRow, LockSummary, SpanSummary, Times};

    const MS: u64 = 1_000_000;

    /// A group's active time without waits, its number of contended waits, and the time in them, of 2 ms.
    type Figures = (u64, u64, u64);

    fn waits(count: u64, total: u64) -> WaitTimes {
        let length = if count == 0 { 0 } else { 2 * MS };
        WaitTimes { count, total, p50: length, p90: length, p99: length, max: length }
    }

    /// A recording of `length` with these groups of a thread each.
    fn summary(length: u64, groups: &[Figures]) -> Summary {
        let group = |(index, &(active, count, total)): (usize, &Figures)| GroupSummary {
            name: format!("{total}"),
            threads: vec![index],
            times: Times { running: active, waiting: total, ..Times::default() },
            contended: waits(count, total),
            ..GroupSummary::default()
        };
        let groups = groups.iter().enumerate().map(group).collect();
        Summary { length, groups, locks: vec![LockSummary::default()], ..Summary::default() }
    }

    /// Requests that took `length` together, of which they lost `lost`, in a pool that loses 4 %.
    fn requests(count: u64, length: u64, lost: u64) -> Summary {
        let mark = MarkSummary {
            span: SpanSummary { name: "GET /hello".into(), ..SpanSummary::default() },
            lengths: WaitTimes { count, total: length, ..WaitTimes::default() },
            losses: waits(count, lost),
            contended: waits(count, lost),
            ..MarkSummary::default()
        };
        let pool = summary(1000 * MS, &[(960 * MS, 20, 40 * MS)]);
        Summary { marks: vec![mark], ..pool }
    }

    fn strength_of(summary: &Summary) -> Option<Strength> {
        match Verdict::of(summary) {
            Verdict::Lock(problem) => Some(problem.strength),
            Verdict::NotTheLock(lost) => {
                assert!(lost < WEAK);
                None
            }
            verdict => panic!("{verdict:?}"),
        }
    }

    /// From figures to verdicts.
    #[test]
    fn the_table_of_verdicts() {
        use Strength::{Clear, Strong, Weak};
        for (length, groups, expected) in [
            (1000 * MS, vec![(96 * MS, 100, 4 * MS)], None),
            (1000 * MS, vec![(95 * MS, 100, 5 * MS)], Some(Weak)),
            (1000 * MS, vec![(86 * MS, 100, 14 * MS)], Some(Weak)),
            (1000 * MS, vec![(85 * MS, 100, 15 * MS)], Some(Clear)),
            (1000 * MS, vec![(51 * MS, 100, 49 * MS)], Some(Clear)),
            (1000 * MS, vec![(50 * MS, 100, 50 * MS)], Some(Strong)),
            // An hour with a second of work in it: the hour does not dilute the second.
            (3_600_000 * MS, vec![(700 * MS, 1000, 300 * MS)], Some(Clear)),
            // The group that lost most is judged, not an average with those that lost nothing.
            (1000 * MS, vec![(900 * MS, 100, MS), (10 * MS, 100, 30 * MS)], Some(Strong)),
            (1000 * MS, vec![(100 * MS, 100, 20 * MS), (1000 * MS, 100, 60 * MS)], Some(Weak)),
            // Few waits count if they took 5 % of the recording, or half a second.
            (1001 * MS, vec![(MS, 9, 50 * MS), (990 * MS, 0, 0)], None),
            (1000 * MS, vec![(MS, 9, 50 * MS), (900 * MS, 0, 0)], Some(Strong)),
            (60_000 * MS, vec![(MS, 9, 499 * MS), (60_000 * MS, 0, 0)], None),
            (60_000 * MS, vec![(MS, 9, 500 * MS), (60_000 * MS, 0, 0)], Some(Strong)),
        ] {
            assert_eq!(strength_of(&summary(length, &groups)), expected, "{groups:?}");
        }
    }

    /// The share of its duration that a mark loses, in a pool that loses 4 %.
    #[test]
    fn a_request_that_loses_much_is_a_problem_of_a_pool_that_loses_little() {
        use Strength::{Clear, Strong, Weak};
        for (count, length, lost, expected) in [
            (20, 1000 * MS, 40 * MS, None),
            (20, 1000 * MS, 50 * MS, Some(Weak)),
            (20, 100 * MS, 20 * MS, Some(Clear)),
            (20, 60 * MS, 40 * MS, Some(Strong)),
            (9, 60 * MS, 40 * MS, None),
        ] {
            let summary = requests(count, length, lost);
            assert_eq!(strength_of(&summary), expected, "{count} {length} {lost}");
        }
    }

    #[test]
    fn nobody_notices_short_waits_of_threads_that_idle() {
        use Strength::{Clear, Strong, Weak};
        // The 99th percentile of the waits, the time in them, and how long the threads idle, in a recording of 10 s.
        for (p99, waited, idle, expected) in [
            (LATE - 1, 50 * MS, 4_860 * MS, None),
            (LATE, 50 * MS, 4_860 * MS, Some(Weak)),
            (LATE - 1, 50 * MS, 800 * MS, Some(Weak)),
            // A hundredth of their lives.
            (LATE, 50 * MS, 4_861 * MS, None),
            (LONG - 1, 50 * MS, 9_860 * MS, None),
            (LONG, 50 * MS, 9_860 * MS, Some(Clear)),
            // Half of their lives.
            (SLICE - 1, 810 * MS, 900 * MS, Some(Strong)),
            (SLICE - 1, 810 * MS, 901 * MS, Some(Weak)),
            (SLICE, 810 * MS, 901 * MS, Some(Strong)),
        ] {
            let mut summary = summary(10_000 * MS, &[(90 * MS, 100, waited)]);
            summary.groups[0].contended.p99 = p99;
            summary.groups[0].times.idle = idle;
            let found = match Verdict::of(&summary) {
                Verdict::Lock(problem) => Some(problem.strength),
                _ => None,
            };
            assert_eq!(found, expected, "{p99} {waited} {idle}");
        }
    }

    /// As of a server that starts a thread for each request.
    #[test]
    fn threads_that_lose_little_each_are_slowed_down_a_little() {
        for (threads, p99, expected) in [
            (100, SLICE - 1, Strength::Strong),
            (101, SLICE - 1, Strength::Weak),
            (101, SLICE, Strength::Strong),
        ] {
            let mut summary = summary(10_000 * MS, &[(100 * MS, 100, 100 * MS)]);
            summary.groups[0].threads = (0..threads).collect();
            summary.groups[0].contended.p99 = p99;
            assert_eq!(strength_of(&summary), Some(expected), "{threads} {p99}");
        }
    }

    #[test]
    fn requests_that_lose_little_each_are_slowed_down_a_little() {
        for (count, p99, expected) in [
            (40, SLICE - 1, Strength::Strong),
            (41, SLICE - 1, Strength::Weak),
            (41, SLICE, Strength::Strong),
        ] {
            let mut summary = requests(count, 60 * MS, 40 * MS);
            summary.marks[0].contended.p99 = p99;
            assert_eq!(strength_of(&summary), Some(expected), "{count} {p99}");
        }
    }

    /// Waits of two threads, part of it while no thread held the lock, which was handed over a number of times.
    #[test]
    fn waiting_for_a_processor_is_not_waiting_for_the_lock() {
        for (free, holds, expected) in [
            (0, 100, "lock"),
            (100 * MS, 100, "lock"),
            (190 * MS, 100, "machine"),
            // Handed over all the time, in 19 µs.
            (190 * MS, 10_000, "lock"),
        ] {
            let row = |thread| BlameRow {
                thread,
                waited: 100 * MS,
                by: Vec::new(),
                by_others: 0,
                by_no_thread: free / 2,
            };
            let lock = LockSummary { holds, blame: vec![row(0), row(1)], ..LockSummary::default() };
            let threads =
                summary(1000 * MS, &[(100 * MS, holds / 2, 100 * MS), (100 * MS, holds / 2, 100 * MS)]);
            let summary = Summary { locks: vec![lock], ..threads };
            let verdict = match Verdict::of(&summary) {
                Verdict::Lock(_) => "lock",
                Verdict::MachineFull(_) => "machine",
                verdict => panic!("{verdict:?}"),
            };
            assert_eq!(verdict, expected, "{free} {holds}");
        }
    }

    #[test]
    fn a_machine_that_idles_is_not_full() {
        for (length, busy, is_full) in [
            (1000 * MS, None, true),
            (1000 * MS, Some(0.7), true),
            (1000 * MS, Some(0.69), false),
            (1000 * MS, Some(0.0), false),
            // A hundredth of the recording.
            (10_000 * MS, Some(1.0), true),
            (10_001 * MS, Some(1.0), false),
        ] {
            let row = BlameRow {
                thread: 0,
                waited: 100 * MS,
                by: Vec::new(),
                by_others: 0,
                by_no_thread: 100 * MS,
            };
            let lock = LockSummary { holds: 50, blame: vec![row], ..LockSummary::default() };
            let threads = summary(length, &[(100 * MS, 50, 100 * MS)]);
            let summary = Summary { locks: vec![lock], machine_busy: busy, ..threads };
            assert_eq!(
                matches!(Verdict::of(&summary), Verdict::MachineFull(_)),
                is_full,
                "{length} {busy:?}"
            );
        }
    }

    #[test]
    fn what_is_too_short_is_not_judged() {
        for (length, groups, expected) in [
            (99 * MS, vec![(40 * MS, 1000, 40 * MS)], true),
            (99 * MS, vec![], true),
            (100 * MS, vec![(40 * MS, 1000, 40 * MS)], false),
            // Few waits, short and long ones.
            (900 * MS, vec![(MS, 9, 49 * MS)], true),
            (900 * MS, vec![(MS, 10, MS)], false),
            (900 * MS, vec![(MS, 1, 50 * MS)], false),
            // The loss that counts is that of the group with enough waits.
            (900 * MS, vec![(MS, 9, 49 * MS), (MS, 100, 10 * MS)], false),
        ] {
            let summary = summary(length, &groups);
            assert_eq!(Verdict::of(&summary) == Verdict::TooShort, expected, "{length} {groups:?}");
        }
    }

    #[test]
    fn without_a_lock_there_is_nothing_to_judge() {
        assert_eq!(Verdict::of(&Summary { length: MS, ..Summary::default() }), Verdict::Unused);
    }
}
