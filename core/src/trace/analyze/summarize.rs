//! Computes the numbers of a recording from its timeline.

use super::blame::{Blame, Row};
use super::contention::contended_waits;
use super::findings;
use super::groups::Groups;
use super::recording::{Flaw, Recording};
use super::summary::{
    BlameRow, GroupSummary, LockSummary, SpanSummary, Summary, ThreadSummary, Times, WaitTimes, per,
};
use super::timeline::{Life, LockLife, STATES, Slice, Span, Stretch, Timeline};

impl Summary {
    /// Computes the summary of a recording from its timeline.
    pub fn of(recording: &Recording, timeline: &Timeline) -> Self {
        let contended = contended_waits(timeline);
        let with_contended = timeline.threads.iter().zip(&contended);
        let threads: Vec<ThreadSummary> = with_contended.map(|(life, waits)| thread(life, waits)).collect();
        let times = sum(threads.iter().map(|thread| thread.times.all()));
        let used = timeline
            .locks
            .iter()
            .map(|each| lock(timeline, each))
            .filter(|each| each.holds > 0 || each.waited > 0);
        let oddities: u64 = timeline.threads.iter().map(|life| life.oddities).sum();
        let mut summary = Self {
            about: recording.about.clone(),
            length: timeline.length,
            events: recording.events,
            lost: recording.lost,
            violations: oddities + timeline.overlaps.len() as u64,
            damage: recording.damage_in_words(),
            is_incomplete: recording.damage.is_some_and(|damage| damage.flaw != Flaw::NoEnd),
            useful_parallelism: per(times.computing(), timeline.length),
            times,
            waits: WaitTimes::of(timeline.threads.iter().flat_map(|life| &life.waits)),
            groups: groups(&threads, &contended),
            locks: used.collect(),
            operations: spans(recording, timeline, |life| &life.regions),
            marks: spans(recording, timeline, |life| &life.marks),
            threads,
            findings: Vec::new(),
        };
        summary.findings = findings::of(&summary);
        summary
    }
}

impl WaitTimes {
    fn of<'a>(waits: impl Iterator<Item = &'a Stretch>) -> Self {
        let mut lengths: Vec<u64> = waits.map(Stretch::length).collect();
        lengths.sort_unstable();
        let rank = |share: f64| {
            let rank = (lengths.len() as f64 * share).ceil() as usize;
            lengths.get(rank.max(1) - 1).copied().unwrap_or(0)
        };
        let (count, total) = (lengths.len() as u64, lengths.iter().sum());
        Self { count, total, p50: rank(0.5), p90: rank(0.9), p99: rank(0.99), max: rank(1.0) }
    }
}

fn sum(all: impl Iterator<Item = [u64; STATES]>) -> Times {
    let mut times = [0; STATES];
    all.for_each(|each| times.iter_mut().zip(each).for_each(|(sum, time)| *sum += time));
    Times::of(times)
}

fn groups(threads: &[ThreadSummary], contended: &[Vec<Stretch>]) -> Vec<GroupSummary> {
    let found = Groups::new(threads.iter().map(|thread| thread.name.as_str()));
    let group = |(name, members): (String, Vec<usize>)| {
        let times = sum(members.iter().map(|member| threads[*member].times.all()));
        let contended = WaitTimes::of(members.iter().flat_map(|member| &contended[*member]));
        let lost = per(contended.total, contended.total + times.computing());
        GroupSummary { name, threads: members, times, contended, lost }
    };
    let mut groups: Vec<GroupSummary> = found.names.into_iter().zip(found.members).map(group).collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.times.waiting + group.times.computing()));
    groups
}

fn thread(life: &Life, contended: &[Stretch]) -> ThreadSummary {
    let longest = life.holds.iter().rev().max_by_key(|hold| hold.length());
    ThreadSummary {
        id: life.id,
        name: life.name.clone(),
        start: life.start,
        lifetime: life.end - life.start,
        times: times_within(life, life.start, life.end),
        acquisitions: life.acquisitions,
        releases: life.releases,
        waits: WaitTimes::of(life.waits.iter()),
        contended: WaitTimes::of(contended.iter()),
        longest_hold: longest.map_or(0, |hold| hold.length()),
        longest_hold_at: longest.map_or(0, |hold| hold.start),
        natives: natives(life),
    }
}

fn natives(life: &Life) -> Vec<u32> {
    let mut seen = std::collections::HashSet::new();
    life.natives.iter().map(|(_, native)| *native).filter(|native| seen.insert(*native)).collect()
}

/// A thread's time in each state between two points in time.
fn times_within(life: &Life, start: u64, end: u64) -> Times {
    let first = life.slices.partition_point(|slice| slice.start <= start).saturating_sub(1);
    let ends = life.slices[first..].iter().skip(1).map(|slice| slice.start).chain([life.end]);
    let mut times = [0; STATES];
    for (Slice { start: from, state, .. }, to) in life.slices[first..].iter().zip(ends) {
        if *from >= end {
            break;
        }
        times[*state as usize] += to.min(end) - (*from).max(start);
    }
    Times::of(times)
}

fn lock(timeline: &Timeline, lock: &LockLife) -> LockSummary {
    let blame = Blame::of(timeline, lock);
    let held: u64 = lock.holds.iter().map(|hold| hold.end - hold.start).sum();
    let holders = blame.holders.iter().enumerate().map(|(column, thread)| (*thread, blame.inflicted(column)));
    LockSummary {
        id: lock.id,
        name: lock.name.clone(),
        held,
        utilization: per(held, timeline.length),
        mean_waiters: per(blame.waited(), timeline.length),
        waited: blame.waited(),
        holds: lock.holds.len() as u64,
        holders: holders.collect(),
        blame: rows(&blame),
    }
}

fn rows(blame: &Blame) -> Vec<BlameRow> {
    let row = |row: &Row| {
        let pairs = blame.holders.iter().copied().zip(row.by.iter().copied());
        let mut by: Vec<(usize, u64)> = pairs.filter(|(_, time)| *time > 0).collect();
        by.sort_by_key(|(thread, time)| (std::cmp::Reverse(*time), *thread));
        BlameRow {
            thread: row.thread,
            waited: row.waited,
            by,
            by_others: row.by_others,
            by_no_thread: row.by_no_thread,
        }
    };
    blame.rows.iter().map(row).collect()
}

fn spans(recording: &Recording, timeline: &Timeline, of: impl Fn(&Life) -> &Vec<Span>) -> Vec<SpanSummary> {
    let mut by_name = std::collections::BTreeMap::<u32, SpanSummary>::new();
    for life in &timeline.threads {
        for span in of(life) {
            let summary = by_name.entry(span.name).or_insert_with(|| SpanSummary {
                name: recording.name(span.name),
                count: 0,
                total: 0,
                bytes: 0,
                times: Times::default(),
            });
            summary.count += 1;
            summary.total += span.end - span.start;
            summary.bytes += span.bytes;
            let within = times_within(life, span.start, span.end);
            summary.times = sum([summary.times.all(), within.all()].into_iter());
        }
    }
    let mut all: Vec<SpanSummary> = by_name.into_values().collect();
    all.sort_by_key(|span| std::cmp::Reverse(span.total));
    all
}
