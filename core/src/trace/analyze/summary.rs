//! The numbers of a recording: the types, which are also the JSON that `Format::Json` writes.

use serde::Serialize;

use super::finding::Finding;
use super::timeline::{STATES, Stretch, Usage};
use crate::trace::format::definition::LockKind;

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
    pub(in crate::trace) fn of(times: [u64; STATES]) -> Self {
        let [running, waiting, idle, sleep, off_lock, gc] = times;
        Self { running, waiting, idle, sleep, off_lock, gc }
    }

    /// The sums of several.
    pub(super) fn sum(all: impl Iterator<Item = Self>) -> Self {
        let mut times = [0; STATES];
        all.for_each(|each| times.iter_mut().zip(each.all()).for_each(|(sum, time)| *sum += time));
        Self::of(times)
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

/// How long waits, or other things that happen often, took, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct WaitTimes {
    /// Their number.
    pub count: u64,
    /// How long all of them took together.
    pub total: u64,
    /// Half of them took at most this long.
    pub p50: u64,
    /// 9 in 10 took at most this long.
    pub p90: u64,
    /// 99 in 100 took at most this long.
    pub p99: u64,
    /// The longest.
    pub max: u64,
}

impl WaitTimes {
    /// Those of these lengths.
    pub(super) fn of_lengths(mut lengths: Vec<u64>) -> Self {
        lengths.sort_unstable();
        let rank = |share: f64| {
            let rank = (lengths.len() as f64 * share).ceil() as usize;
            lengths.get(rank.max(1) - 1).copied().unwrap_or(0)
        };
        let (count, total) = (lengths.len() as u64, lengths.iter().sum());
        Self { count, total, p50: rank(0.5), p90: rank(0.9), p99: rank(0.99), max: rank(1.0) }
    }

    /// Those of these waits.
    pub(super) fn of<'a>(waits: impl Iterator<Item = &'a Stretch>) -> Self {
        Self::of_lengths(waits.map(Stretch::length).collect())
    }
}

/// A thread in numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ThreadSummary {
    /// Its number in the recording.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// When it began, in nanoseconds since the start of the recording.
    pub start: u64,
    /// How long it lived during the recording, in nanoseconds.
    pub lifetime: u64,
    /// Its time in each state.
    pub times: Times,
    /// How often it acquired a lock.
    pub acquisitions: u64,
    /// How often it released a lock.
    pub releases: u64,
    /// Its waits for locks.
    pub waits: WaitTimes,
    /// Those of its waits that were contended; see [`contention`](super::contention).
    pub contended: WaitTimes,
    /// The longest time for which it held a lock without interruption, in nanoseconds.
    pub longest_hold: u64,
    /// When that hold began.
    pub longest_hold_at: u64,
    /// The system's ids of the native threads on which it got the lock, in the order of first use.
    pub natives: Vec<u32>,
    /// How it used the processors; `None` if that was not recorded.
    pub usage: Option<Usage>,
}

/// Threads whose names differ only in a number, or a single thread, in numbers.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct GroupSummary {
    /// The name that they share, with `*` in place of the number.
    pub name: String,
    /// The indices of the threads in [`Summary::threads`].
    pub threads: Vec<usize>,
    /// Their time in each state.
    pub times: Times,
    /// Their contended waits for locks.
    pub contended: WaitTimes,
    /// The share of their active time that they lost to the lock, in contended waits; the verdict rests on it. Active
    /// is a thread that waits for the lock, holds it, or computes without it; how long it sleeps, is blocked, or
    /// waits for a processor while the lock is free changes nothing.
    pub lost: f64,
    /// Half of the time for which they held a lock was in holds of at least this length, in nanoseconds.
    pub typical_hold: u64,
    /// How those of them used the processors of which that was recorded.
    pub usage: Option<Usage>,
}

impl GroupSummary {
    /// Its name for a sentence, with the number of threads if there are several.
    pub(super) fn named(&self) -> String {
        match self.threads.len() {
            1 => format!("`{}`", self.name),
            count => format!("`{}` ({count} threads)", self.name),
        }
    }
}

/// The group of each thread, by index.
pub(super) fn group_of(groups: &[GroupSummary], threads: usize) -> Vec<usize> {
    let mut group_of = vec![0; threads];
    for (index, group) in groups.iter().enumerate() {
        group.threads.iter().for_each(|thread| group_of[*thread] = index);
    }
    group_of
}

/// How a thread's waiting time for a lock is divided among the holders, in nanoseconds; see
/// [`Blame`](super::blame::Blame).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BlameRow {
    /// The index in [`Summary::threads`] of the thread that waited.
    pub thread: usize,
    /// How long it waited.
    pub waited: u64,
    /// Pairs of a thread's index and how long that thread held the lock meanwhile, longest first.
    pub by: Vec<(usize, u64)>,
    /// How long the threads beyond the [`COLUMNS`](super::blame::COLUMNS) worst held it.
    pub by_others: u64,
    /// How long no thread held it: the lock was being handed over.
    pub by_no_thread: u64,
}

/// The same of the threads of a group together; those of a pool are one holder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupBlame {
    /// The index in [`Summary::groups`] of the threads that waited.
    pub group: usize,
    /// How long they waited.
    pub waited: u64,
    /// Pairs of a group's index and how long its threads held the lock meanwhile, longest first.
    pub by: Vec<(usize, u64)>,
    /// How long the groups beyond the [`COLUMNS`](super::blame::COLUMNS) worst held it.
    pub by_others: u64,
    /// How long no thread held it.
    pub by_no_thread: u64,
}

/// The threads of a group during a mark, or outside of marks, as holders of a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct MarkBlame {
    /// The index in [`Summary::groups`] of the threads that held the lock.
    pub group: usize,
    /// The index in [`Summary::marks`]; `None` if they were in no mark. Nested marks have an entry each.
    pub mark: Option<usize>,
    /// How long they held the lock while other threads waited for it.
    pub held: u64,
    /// How long they did so at the most in one hold, up to where marks begin or end.
    pub longest_hold: u64,
    /// How long all other threads together waited for it meanwhile.
    pub inflicted: u64,
}

/// A lock in numbers.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct LockSummary {
    /// Its number in the recording.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// What it stands for.
    pub kind: LockKind,
    /// The contended waits for it; all where threads spin.
    pub waits: WaitTimes,
    /// How long it was held, in nanoseconds.
    pub held: u64,
    /// The share of the recording for which it was held.
    pub utilization: f64,
    /// How many threads waited for it, on average.
    pub mean_waiters: f64,
    /// How long all threads together waited for it, in nanoseconds.
    pub waited: u64,
    /// How long it was free while threads waited for it, in nanoseconds.
    #[serde(skip)]
    pub free: u64,
    /// How often it was held.
    pub holds: u64,
    /// Pairs of a thread's index and how long the other threads waited behind it, the worst first.
    pub holders: Vec<(usize, u64)>,
    /// The waiting threads, the longest first.
    pub blame: Vec<BlameRow>,
    /// The groups of waiting threads, the longest first.
    #[serde(skip)]
    pub by_group: Vec<GroupBlame>,
    /// The holders by group and mark, those first behind which others waited longest.
    pub by_mark: Vec<MarkBlame>,
}

/// All runs of one operation off the lock, or of one mark.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SpanSummary {
    /// Its name.
    pub name: String,
    /// How often it ran.
    pub count: u64,
    /// How long all runs took, in nanoseconds.
    pub total: u64,
    /// The bytes operations worked on.
    pub bytes: u64,
    /// The threads' time in each state meanwhile.
    pub times: Times,
}

/// Part of the waiting in a mark, and the holders meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Behind {
    /// The index in [`Summary::groups`] of the threads that held the lock.
    pub group: usize,
    /// The index in [`Summary::marks`] of the mark that they were in; `None` if they were in none. Nested
    /// marks have an entry each.
    pub mark: Option<usize>,
    /// How long threads in the mark waited meanwhile.
    pub waited: u64,
}

/// All instances of a mark. An instance within another mark counts for both.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct MarkSummary {
    /// Its name, number and times.
    #[serde(flatten)]
    pub span: SpanSummary,
    /// How long its instances took.
    pub lengths: WaitTimes,
    /// How long each instance lost in contended waits.
    pub losses: WaitTimes,
    /// The contended waits in it.
    pub contended: WaitTimes,
    /// The share of their active time that its instances lost in contended waits.
    pub lost: f64,
    /// How long a thread in it held a lock while others waited for that lock.
    pub held_wanted: u64,
    /// How long all other threads together waited meanwhile.
    pub inflicted: u64,
    /// Of that, how long threads outside of this mark waited.
    pub inflicted_on_others: u64,
    /// How long threads outside of this mark waited for a lock in all. Of this time, the part of
    /// [`inflicted_on_others`](Self::inflicted_on_others) was behind this mark.
    pub others_waited: u64,
    /// Behind which holders threads in it waited, the longest first. Empty except for the marks in which
    /// threads waited longest.
    pub behind: Vec<Behind>,
}

/// A line of the program that others waited for. Times are in nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BlamedLine {
    /// The qualified name of the function.
    pub function: String,
    /// The path of its file, empty if it has none.
    pub file: String,
    /// The line, 0 if that is unknown.
    pub line: u32,
    /// How long all threads together waited while it held the lock.
    pub lost: u64,
    /// The longest time for which one hold stayed on this line.
    pub longest_hold: u64,
    /// The number of samples.
    pub samples: u64,
    /// Pairs of a group's index in [`Summary::groups`] and how long its threads
    /// waited meanwhile, the longest first; only of the groups that waited longest altogether.
    pub groups: Vec<(usize, u64)>,
    /// Pairs of an asyncio task that executed it, as in `Task-* (fetch)`, and how long all threads together waited meanwhile:
    /// the few for which they waited longest.
    pub tasks: Vec<(String, u64)>,
}

/// The code that others waited for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct BlamedCode {
    /// The lines, those first to which most time was lost.
    pub lines: Vec<BlamedLine>,
    /// How long threads waited during holds of which there is a stack.
    pub known: u64,
    /// How long they waited during all other holds: those that were too short for a sample.
    pub unknown: u64,
}

/// A recording in numbers.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Summary {
    /// The description of the program.
    pub about: Vec<(String, String)>,
    /// How long the recording lasted, in nanoseconds.
    pub length: u64,
    /// The number of events.
    pub events: u64,
    /// The number of events that are missing.
    pub lost: u64,
    /// Impossible transitions and doubly held locks. None in a faithful recording.
    pub violations: u64,
    /// What is wrong with the end of the file.
    pub damage: Option<String>,
    /// Whether a part of the file was not read.
    #[serde(skip)]
    pub(in crate::trace) is_incomplete: bool,
    /// How many threads computed at a time, on average, with a lock or without: the processor time of the
    /// process by the length of the recording. Where that was not recorded, by the threads' states.
    pub useful_parallelism: f64,
    /// How many processors the process may use: by its affinity and the quota of its control group.
    pub processors: Option<f64>,
    /// The processor time of the whole process, including threads that never take the lock, in nanoseconds.
    pub cpu: Option<u64>,
    /// The share of its processors' time that the process used.
    pub busy: Option<f64>,
    /// The share of the machine's processors' time that all processes used.
    pub machine_busy: Option<f64>,
    /// How the threads used the processors, in sum, as far as that was recorded.
    pub usage: Option<Usage>,
    /// The total time of all threads in each state.
    pub times: Times,
    /// All waits.
    pub waits: WaitTimes,
    /// Those of them that were contended; see [`contention`](super::contention).
    pub contended: WaitTimes,
    /// The threads, in the order in which they were defined.
    pub threads: Vec<ThreadSummary>,
    /// The threads by group, those that were active longest first.
    pub groups: Vec<GroupSummary>,
    /// The locks that were used.
    pub locks: Vec<LockSummary>,
    /// The operations off the lock, the longest first.
    pub operations: Vec<SpanSummary>,
    /// The spans that the program marked, the longest first.
    pub marks: Vec<MarkSummary>,
    /// The code that others waited for.
    pub code: BlamedCode,
    /// The findings.
    pub findings: Vec<Finding>,
}

impl Summary {
    /// The description of the program under `key`.
    pub fn about(&self, key: &str) -> Option<&str> {
        self.about.iter().find(|(k, _)| k == key).map(|(_, value)| value.as_str())
    }

    /// Whether the states are estimated from samples, not recorded.
    pub fn is_estimate(&self) -> bool {
        self.about("exact") == Some("false")
    }

    /// Whether the interpreter had no lock, and got none meanwhile.
    pub fn has_no_lock(&self) -> bool {
        let is_used = |lock: &LockSummary| lock.kind == LockKind::Interpreter;
        self.about("lock") == Some("none") && !self.locks.iter().any(is_used)
    }
}

/// A part of a whole, 0 if there is no whole.
pub(in crate::trace) fn per(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
