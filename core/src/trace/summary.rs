//! A timeline in numbers.

use serde::Serialize;

use super::blame::Blame;
use super::findings::{self, Finding};
use super::recording::{Flaw, Recording};
use super::timeline::{Life, LockLife, STATES, Slice, Span, State, Timeline};

/// The time spent in each state, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub struct Times {
    /// Holding the lock.
    pub running: u64,
    /// Wanting the lock.
    pub waiting: u64,
    /// Blocked on something else.
    pub idle: u64,
    /// Sleeping.
    pub sleep: u64,
    /// Computing without the lock.
    pub off_lock: u64,
    /// Collecting garbage with the lock.
    pub gc: u64,
}

impl Times {
    fn of(times: [u64; STATES]) -> Self {
        let [running, waiting, idle, sleep, off_lock, gc] = times;
        Self { running, waiting, idle, sleep, off_lock, gc }
    }

    /// In the order of [`State::ALL`].
    pub fn all(&self) -> [u64; STATES] {
        [self.running, self.waiting, self.idle, self.sleep, self.off_lock, self.gc]
    }

    /// The sum over all states.
    pub fn total(&self) -> u64 {
        self.all().iter().sum()
    }

    /// Holding the lock, garbage collection included.
    pub fn holding(&self) -> u64 {
        self.running + self.gc
    }

    /// Computing, with the lock or without it.
    pub fn computing(&self) -> u64 {
        self.holding() + self.off_lock
    }
}

/// How long waits took, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct WaitTimes {
    /// How many there were.
    pub count: u64,
    /// Half of them took at most this long.
    pub p50: u64,
    /// 99 in 100 took at most this long.
    pub p99: u64,
    /// The longest.
    pub max: u64,
}

impl WaitTimes {
    fn of(mut lengths: Vec<u64>) -> Self {
        lengths.sort_unstable();
        let rank = |share: f64| {
            let rank = (lengths.len() as f64 * share).ceil() as usize;
            lengths.get(rank.max(1) - 1).copied().unwrap_or(0)
        };
        Self { count: lengths.len() as u64, p50: rank(0.5), p99: rank(0.99), max: rank(1.0) }
    }
}

/// A thread in numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ThreadSummary {
    /// Its number in the recording.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// When it began, in nanoseconds since the recording did.
    pub start: u64,
    /// How long it lived during the recording, in nanoseconds.
    pub lifetime: u64,
    /// What it did in that time.
    pub times: Times,
    /// How often it acquired a lock.
    pub acquisitions: u64,
    /// How often it released a lock.
    pub releases: u64,
    /// Its waits for locks.
    pub waits: WaitTimes,
    /// The longest time for which it held a lock without a break, in nanoseconds.
    pub longest_hold: u64,
    /// When that began.
    pub longest_hold_at: u64,
    /// The system's ids of the native threads on which it got the lock, in the order of first use.
    pub natives: Vec<u32>,
}

/// Of the time that a thread waited for a lock: who held it, in nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BlameRow {
    /// The index in [`Summary::threads`] of the thread that waited.
    pub thread: usize,
    /// How long it waited.
    pub waited: u64,
    /// Pairs of a thread's index and how long that one held the lock meanwhile, longest first.
    pub by: Vec<(usize, u64)>,
    /// Threads beyond the [`COLUMNS`](super::COLUMNS) worst.
    pub by_others: u64,
    /// Nobody: the lock was on its way from one thread to the next.
    pub by_nobody: u64,
}

/// A lock in numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LockSummary {
    /// Its number in the recording.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// How long it was held, in nanoseconds.
    pub held: u64,
    /// The share of the time for which it was held.
    pub utilization: f64,
    /// How many threads waited for it, on average.
    pub mean_waiters: f64,
    /// How long all threads together waited for it, in nanoseconds.
    pub waited: u64,
    /// How often it was held.
    pub holds: u64,
    /// Pairs of a thread's index and how long all others together waited behind it, worst first.
    pub holders: Vec<(usize, u64)>,
    /// Who waited behind whom, the longest waiters first.
    pub blame: Vec<BlameRow>,
}

/// All runs of one operation off the lock, or of one mark.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SpanSummary {
    /// Its name.
    pub name: String,
    /// How often it ran.
    pub count: u64,
    /// How long all runs took, in nanoseconds.
    pub total: u64,
    /// The bytes operations worked on.
    pub bytes: u64,
    /// What the threads did meanwhile.
    pub times: Times,
}

/// A recording in numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// What the file says about the program.
    pub about: Vec<(String, String)>,
    /// How long the recording lasted, in nanoseconds.
    pub length: u64,
    /// The number of events.
    pub events: u64,
    /// The number of events that are missing.
    pub lost: u64,
    /// Impossible transitions and doubly held locks. None in a faithful recording.
    pub violations: u64,
    /// What kept the file from being read to a proper end.
    pub damage: Option<String>,
    /// Whether some of what was written is missing.
    #[serde(skip)]
    pub(super) is_incomplete: bool,
    /// How many threads computed at a time, on average, with a lock or without.
    pub useful_parallelism: f64,
    /// What all threads did.
    pub times: Times,
    /// All waits.
    pub waits: WaitTimes,
    /// The threads, in the order in which they became known.
    pub threads: Vec<ThreadSummary>,
    /// The locks that were used.
    pub locks: Vec<LockSummary>,
    /// The operations off the lock, the longest first.
    pub operations: Vec<SpanSummary>,
    /// What the program marked, the longest first.
    pub marks: Vec<SpanSummary>,
    /// What this means.
    pub findings: Vec<Finding>,
}

impl Summary {
    /// The numbers of a recording and its timeline.
    pub fn of(recording: &Recording, timeline: &Timeline) -> Self {
        let threads: Vec<ThreadSummary> = timeline.threads.iter().map(thread).collect();
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
            waits: WaitTimes::of(timeline.threads.iter().flat_map(wait_lengths).collect()),
            locks: used.collect(),
            operations: spans(recording, timeline, |life| &life.regions),
            marks: spans(recording, timeline, |life| &life.marks),
            threads,
            findings: Vec::new(),
        };
        summary.findings = findings::of(&summary);
        summary
    }

    /// What the file says about the program under `key`.
    pub fn about(&self, key: &str) -> Option<&str> {
        self.about.iter().find(|(k, _)| k == key).map(|(_, value)| value.as_str())
    }

    /// Whether the states are estimated from samples instead of recorded.
    pub fn is_estimate(&self) -> bool {
        self.about("exact") == Some("false")
    }
}

/// A part of a whole, 0 if there is no whole.
pub(super) fn per(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

fn sum(all: impl Iterator<Item = [u64; STATES]>) -> Times {
    let mut times = [0; STATES];
    all.for_each(|each| times.iter_mut().zip(each).for_each(|(sum, time)| *sum += time));
    Times::of(times)
}

fn wait_lengths(life: &Life) -> impl Iterator<Item = u64> + '_ {
    life.waits.iter().map(|wait| wait.length())
}

fn thread(life: &Life) -> ThreadSummary {
    let longest = life.holds.iter().rev().max_by_key(|hold| hold.length());
    ThreadSummary {
        id: life.id,
        name: life.name.clone(),
        start: life.start,
        lifetime: life.end - life.start,
        times: times_within(life, life.start, life.end),
        acquisitions: life.acquisitions,
        releases: life.releases,
        waits: WaitTimes::of(wait_lengths(life).collect()),
        longest_hold: longest.map_or(0, |hold| hold.length()),
        longest_hold_at: longest.map_or(0, |hold| hold.start),
        natives: natives(life),
    }
}

fn natives(life: &Life) -> Vec<u32> {
    let mut seen = std::collections::HashSet::new();
    life.natives.iter().map(|(_, native)| *native).filter(|native| seen.insert(*native)).collect()
}

/// What a thread did between two moments.
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
    let row = |row: &super::blame::Row| {
        let pairs = blame.holders.iter().copied().zip(row.by.iter().copied());
        let mut by: Vec<(usize, u64)> = pairs.filter(|(_, time)| *time > 0).collect();
        by.sort_by_key(|(thread, time)| (std::cmp::Reverse(*time), *thread));
        BlameRow {
            thread: row.thread,
            waited: row.waited,
            by,
            by_others: row.by_others,
            by_nobody: row.by_nobody,
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

/// The share of a thread's life that it spent in a state.
pub(super) fn share(thread: &ThreadSummary, state: State) -> f64 {
    per(thread.times.all()[state as usize], thread.lifetime)
}
