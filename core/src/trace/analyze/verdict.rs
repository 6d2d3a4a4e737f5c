//! The verdict: whether waiting for the lock slows the program down.
//!
//! The measure is the share of their active time that the threads of a group lose in contended waits
//! ([`GroupSummary::lost`]). Time in which a thread sleeps or is blocked on something else is left out of
//! it, so a server that is idle most of the day is judged by the time in which it works, and a pool of ten
//! threads like a single one. Uncontended waits are left out, too: there are many, and each takes 60 ns.
//!
//! | a group loses | the verdict |
//! |---|---|
//! | less than 5 % | the lock is not the problem: the work on the lock would pay back less than that |
//! | 5 % to 15 % | a problem, weak |
//! | 15 % to 50 % | a problem, clear |
//! | 50 % and more | a problem, strong: without the lock its threads would do at least twice as much |
//!
//! To tell at all, the recording has to last [`LONG_ENOUGH`]; and a loss counts if it rests on
//! [`ENOUGH_WAITS`] contended waits, or on [`ENOUGH_TIME`] of them together.

use super::finding::Strength;
use super::summary::{GroupSummary, Summary};

/// The share of active time from which on a loss is a problem.
const WEAK: f64 = 0.05;
/// From here on it is clear.
const CLEAR: f64 = 0.15;
/// From here on it is strong.
const STRONG: f64 = 0.5;

/// The shortest recording that is judged, in nanoseconds.
pub(super) const LONG_ENOUGH: u64 = 100_000_000;
/// The number of contended waits that is enough to judge by.
const ENOUGH_WAITS: u64 = 10;
/// The time in contended waits that is enough, in nanoseconds, even if they are few.
const ENOUGH_TIME: u64 = 50_000_000;

/// What the numbers say.
#[derive(Debug, PartialEq)]
pub(super) enum Verdict<'a> {
    /// No thread used a lock.
    Unused,
    /// The recording is too short, or has too few contended waits.
    TooShort,
    /// No group lost much; the one that lost most lost this share.
    NoProblem(f64),
    /// This group lost most time, and too much.
    Problem(&'a GroupSummary, Strength),
}

impl<'a> Verdict<'a> {
    /// The verdict on a recording.
    pub(super) fn of(summary: &'a Summary) -> Self {
        if summary.locks.is_empty() {
            return Self::Unused;
        }
        let most =
            |groups: Vec<&'a GroupSummary>| groups.into_iter().max_by_key(|group| group.contended.total);
        let losing = |group: &&GroupSummary| group.lost >= WEAK;
        let losing: Vec<&GroupSummary> = summary.groups.iter().filter(losing).collect();
        let judged = losing.iter().copied().filter(|group| is_enough(group)).collect();
        match most(judged) {
            _ if summary.length < LONG_ENOUGH => Self::TooShort,
            Some(group) => Self::Problem(group, strength(group.lost)),
            None if losing.is_empty() => {
                Self::NoProblem(summary.groups.iter().map(|group| group.lost).fold(0.0, f64::max))
            }
            None => Self::TooShort,
        }
    }
}

fn is_enough(group: &GroupSummary) -> bool {
    group.contended.count >= ENOUGH_WAITS || group.contended.total >= ENOUGH_TIME
}

fn strength(lost: f64) -> Strength {
    match lost {
        STRONG.. => Strength::Strong,
        CLEAR.. => Strength::Clear,
        _ => Strength::Weak,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::analyze::summary::{LockSummary, Times, WaitTimes, per};

    const MS: u64 = 1_000_000;

    /// A recording of `length` with a group for each pair of active time and contended waits.
    fn summary(length: u64, groups: &[(u64, u64, u64)]) -> Summary {
        let group = |&(active, count, total): &(u64, u64, u64)| GroupSummary {
            name: format!("{total}"),
            threads: vec![0],
            times: Times { running: active, waiting: total, ..Times::default() },
            contended: WaitTimes { count, total, ..WaitTimes::default() },
            lost: per(total, total + active),
            ..GroupSummary::default()
        };
        let lock = LockSummary { name: "GIL".into(), ..LockSummary::default() };
        let groups = groups.iter().map(group).collect();
        Summary { length, groups, locks: vec![lock], ..Summary::default() }
    }

    /// From figures to verdicts.
    #[test]
    fn the_table_of_verdicts() {
        use Strength::{Clear, Strong, Weak};
        for (length, groups, expected) in [
            // One group: active time, number of contended waits, time in them.
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
        ] {
            let summary = summary(length, &groups);
            match (Verdict::of(&summary), expected) {
                (Verdict::Problem(_, strength), Some(expected)) => {
                    assert_eq!(strength, expected, "{groups:?}")
                }
                (Verdict::NoProblem(lost), None) => assert!(lost < WEAK, "{groups:?}"),
                (verdict, _) => panic!("{groups:?}: {verdict:?}, not {expected:?}"),
            }
        }
    }

    #[test]
    fn what_is_too_short_is_not_judged() {
        for (length, groups, expected) in [
            (99 * MS, vec![(40 * MS, 1000, 40 * MS)], true),
            (99 * MS, vec![], true),
            (100 * MS, vec![(40 * MS, 1000, 40 * MS)], false),
            // Few waits, short and long ones.
            (1000 * MS, vec![(MS, 9, 49 * MS)], true),
            (1000 * MS, vec![(MS, 10, MS)], false),
            (1000 * MS, vec![(MS, 1, 50 * MS)], false),
            // The loss that counts is that of the group with enough waits.
            (1000 * MS, vec![(MS, 9, 49 * MS), (MS, 100, 10 * MS)], false),
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
