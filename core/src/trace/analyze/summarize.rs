//! Computes the numbers of a recording from its timeline.

use std::cmp::Reverse;

use super::blame::{Blame, Row};
use super::contention::contended_waits;
use super::groups::Groups;
use super::loss::Loss;
use super::recording::{Flaw, Recording};
use super::summary::{
    BlameRow, BlamedCode, GroupBlame, GroupSummary, LockSummary, MarkBlame, Summary, ThreadSummary, Times,
    WaitTimes, group_of, per,
};
use super::timeline::{Life, LockLife, Stretch, Timeline, Usage};
use super::{findings, marks, spans};
use crate::trace::format::definition::LockKind;

impl Summary {
    /// Computes the summary of a recording from its timeline.
    pub fn of(recording: &Recording, timeline: &Timeline) -> Self {
        let contended = contended_waits(timeline);
        let with_contended = timeline.threads.iter().zip(&contended);
        let threads: Vec<ThreadSummary> = with_contended.map(|(life, waits)| thread(life, waits)).collect();
        let times = Times::sum(threads.iter().map(|thread| thread.times));
        let groups = groups(timeline, &threads, &contended);
        let (marks, by_mark) = marks::summarize(recording, timeline, &contended, &groups);
        let group_of = group_of(&groups, threads.len());
        let locks = timeline.locks.iter().zip(by_mark);
        let locks = locks.map(|(each, by_mark)| LockSummary {
            waits: waits_for(timeline, each, &contended),
            ..lock(timeline, each, &group_of, by_mark)
        });
        let (processors, cpu) = (processors(recording), process_cpu(recording));
        let parallelism = per(cpu.unwrap_or(times.computing()), timeline.length);
        // States say only which threads could compute.
        let parallelism =
            processors.filter(|_| cpu.is_none()).map_or(parallelism, |most| parallelism.min(most));
        let oddities: u64 = timeline.threads.iter().map(|life| life.oddities).sum();
        let mut summary = Self {
            about: recording.about.clone(),
            length: timeline.length,
            events: recording.events,
            lost: recording.lost,
            violations: oddities + timeline.overlaps.len() as u64,
            damage: recording.damage_in_words(),
            is_incomplete: recording.damage.is_some_and(|damage| damage.flaw != Flaw::NoEnd),
            useful_parallelism: parallelism,
            processors,
            cpu,
            busy: processors.filter(|_| cpu.is_some()).map(|processors| parallelism / processors),
            machine_busy: machine_busy(recording),
            usage: Usage::sum(threads.iter().map(|thread| thread.usage)),
            times,
            waits: WaitTimes::of(timeline.threads.iter().flat_map(|life| &life.waits)),
            contended: WaitTimes::of(contended.iter().flatten()),
            threads,
            groups,
            locks: in_order(locks.filter(|lock| lock.holds > 0 || lock.waited > 0).collect()),
            operations: spans::operations(recording, timeline),
            marks,
            ..Self::default()
        };
        let lost: Vec<f64> = summary.groups.iter().map(|group| Loss::of(&summary, group).to_lock()).collect();
        summary.groups.iter_mut().zip(lost).for_each(|(group, lost)| group.lost = lost);
        summary.code = BlamedCode::of(recording, timeline, &summary.groups);
        summary.findings = findings::of(&summary);
        summary
    }
}

/// The number of processors that the process may use.
fn processors(recording: &Recording) -> Option<f64> {
    let count: f64 = recording.about("processors")?.parse().ok()?;
    (count > 0.0 && count.is_finite()).then_some(count)
}

/// For how long the process has run on processors, in nanoseconds.
fn process_cpu(recording: &Recording) -> Option<u64> {
    let readings = recording.usage.get(&Recording::PROCESS)?;
    let [first, .., last] = readings.as_slice() else { return None };
    Some((last.cpu - first.cpu) * 1_000)
}

/// The share of its processors' time for which the machine was busy.
fn machine_busy(recording: &Recording) -> Option<f64> {
    let [first, .., last] = recording.machine.as_slice() else { return None };
    let [busy, total] = [last.busy.checked_sub(first.busy)?, last.total.checked_sub(first.total)?];
    (total > 0).then(|| per(busy, total))
}

fn groups(timeline: &Timeline, threads: &[ThreadSummary], contended: &[Vec<Stretch>]) -> Vec<GroupSummary> {
    let found = Groups::new(threads.iter().map(|thread| thread.name.as_str()));
    let group = |(name, members): (String, Vec<usize>)| {
        let times = Times::sum(members.iter().map(|member| threads[*member].times));
        let contended = WaitTimes::of(members.iter().flat_map(|member| &contended[*member]));
        let usage = Usage::sum(members.iter().map(|member| threads[*member].usage));
        let typical_hold = typical_hold(members.iter().flat_map(|member| &timeline.threads[*member].holds));
        GroupSummary { name, threads: members, times, contended, lost: 0.0, typical_hold, usage }
    };
    let mut groups: Vec<GroupSummary> = found.names.into_iter().zip(found.members).map(group).collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.times.waiting + group.times.computing()));
    groups
}

fn typical_hold<'a>(holds: impl Iterator<Item = &'a Stretch>) -> u64 {
    let mut lengths: Vec<u64> = holds.map(Stretch::length).collect();
    lengths.sort_unstable_by(|a, b| b.cmp(a));
    let half = lengths.iter().sum::<u64>().div_ceil(2);
    let mut sum = 0;
    let reached = |length: &&u64| {
        sum += **length;
        sum >= half
    };
    lengths.iter().find(reached).copied().unwrap_or(0)
}

fn thread(life: &Life, contended: &[Stretch]) -> ThreadSummary {
    let longest = life.holds.iter().rev().max_by_key(|hold| hold.length());
    ThreadSummary {
        id: life.id,
        name: life.name.clone(),
        start: life.start,
        lifetime: life.end - life.start,
        times: Times::of(life.times_within(life.start, life.end)),
        acquisitions: life.acquisitions,
        releases: life.releases,
        waits: WaitTimes::of(life.waits.iter()),
        contended: WaitTimes::of(contended.iter()),
        longest_hold: longest.map_or(0, |hold| hold.length()),
        longest_hold_at: longest.map_or(0, |hold| hold.start),
        natives: natives(life),
        usage: life.usage,
    }
}

fn natives(life: &Life) -> Vec<u32> {
    let mut seen = std::collections::HashSet::new();
    life.natives.iter().map(|(_, native)| *native).filter(|native| seen.insert(*native)).collect()
}

fn lock(timeline: &Timeline, lock: &LockLife, group_of: &[usize], by_mark: Vec<MarkBlame>) -> LockSummary {
    let (blame, by_group) = Blame::with_groups(timeline, lock, group_of);
    let held: u64 = lock.holds.iter().map(|hold| hold.end - hold.start).sum();
    let holders = blame.holders.iter().enumerate().map(|(column, thread)| (*thread, blame.inflicted(column)));
    LockSummary {
        id: lock.id,
        name: lock.name.clone(),
        kind: lock.kind,
        waits: WaitTimes::default(),
        held,
        utilization: per(held, timeline.length),
        mean_waiters: per(blame.waited(), timeline.length),
        waited: blame.waited(),
        free: blame.free,
        holds: lock.holds.len() as u64,
        holders: holders.collect(),
        blame: rows(&blame),
        by_group: group_rows(&by_group),
        by_mark,
    }
}

/// What stands for a lock where there is none comes in the order of the waiting, and last where it is unclear what for.
fn in_order(mut locks: Vec<LockSummary>) -> Vec<LockSummary> {
    locks.sort_by_key(|lock| match lock.kind {
        LockKind::Interpreter => (0, Reverse(0)),
        LockKind::StopTheWorld | LockKind::Objects => (1, Reverse(lock.waited)),
        LockKind::Spinning => (2, Reverse(lock.waited)),
    });
    locks
}

/// The waits for a lock that the tables have, those of threads that spin included.
fn waits_for(timeline: &Timeline, lock: &LockLife, contended: &[Vec<Stretch>]) -> WaitTimes {
    let is_of_lock = |wait: &&Stretch| wait.lock == lock.id;
    if lock.kind == LockKind::Spinning {
        return WaitTimes::of(timeline.threads.iter().flat_map(|life| &life.waits).filter(is_of_lock));
    }
    WaitTimes::of(contended.iter().flatten().filter(is_of_lock))
}

fn rows(blame: &Blame) -> Vec<BlameRow> {
    let row = |row: &Row| BlameRow {
        thread: row.owner,
        waited: row.waited,
        by: longest(blame, row),
        by_others: row.by_others,
        by_no_thread: row.by_no_thread,
    };
    blame.rows.iter().map(row).collect()
}

fn group_rows(blame: &Blame) -> Vec<GroupBlame> {
    let row = |row: &Row| GroupBlame {
        group: row.owner,
        waited: row.waited,
        by: longest(blame, row),
        by_others: row.by_others,
        by_no_thread: row.by_no_thread,
    };
    blame.rows.iter().map(row).collect()
}

/// The holders behind which it waited, the longest first.
fn longest(blame: &Blame, row: &Row) -> Vec<(usize, u64)> {
    let pairs = blame.holders.iter().copied().zip(row.by.iter().copied());
    let mut by: Vec<(usize, u64)> = pairs.filter(|(_, time)| *time > 0).collect();
    by.sort_by_key(|(holder, time)| (std::cmp::Reverse(*time), *holder));
    by
}
