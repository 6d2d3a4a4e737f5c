//! The numbers of a recording: the types, which are also the JSON that `Format::Json` writes.

use serde::Serialize;

use super::finding::Finding;
use super::timeline::STATES;

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
    /// The number of waits.
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

/// A thread in numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
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
}

/// Threads whose names differ only in a number, or a single thread, in numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GroupSummary {
    /// The name that they share, with `*` in place of the number.
    pub name: String,
    /// The indices of the threads in [`Summary::threads`].
    pub threads: Vec<usize>,
    /// Their time in each state.
    pub times: Times,
    /// Their contended waits for locks.
    pub contended: WaitTimes,
    /// The share of their active time that they lost in contended waits. Active is a thread that waits for
    /// the lock, holds it, or computes without it; how long it sleeps or is blocked changes nothing.
    pub lost: f64,
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

/// A lock in numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LockSummary {
    /// Its number in the recording.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// How long it was held, in nanoseconds.
    pub held: u64,
    /// The share of the recording for which it was held.
    pub utilization: f64,
    /// How many threads waited for it, on average.
    pub mean_waiters: f64,
    /// How long all threads together waited for it, in nanoseconds.
    pub waited: u64,
    /// How often it was held.
    pub holds: u64,
    /// Pairs of a thread's index and how long the other threads waited behind it, the worst first.
    pub holders: Vec<(usize, u64)>,
    /// The waiting threads, the longest first.
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
    /// The threads' time in each state meanwhile.
    pub times: Times,
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
    /// How many threads computed at a time, on average, with a lock or without.
    pub useful_parallelism: f64,
    /// The total time of all threads in each state.
    pub times: Times,
    /// All waits.
    pub waits: WaitTimes,
    /// The threads, in the order in which they were defined.
    pub threads: Vec<ThreadSummary>,
    /// The threads by group, those that were active longest first.
    pub groups: Vec<GroupSummary>,
    /// The locks that were used.
    pub locks: Vec<LockSummary>,
    /// The operations off the lock, the longest first.
    pub operations: Vec<SpanSummary>,
    /// The spans that the program marked, the longest first.
    pub marks: Vec<SpanSummary>,
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
}

/// A part of a whole, 0 if there is no whole.
pub(in crate::trace) fn per(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
