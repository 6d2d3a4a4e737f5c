//! Blame: which threads held the lock while a thread waited for it.
//!
//! For each thread that waited, its waiting time is divided among the threads that held the lock meanwhile;
//! the remainder is the time during which the lock was free, that is, was passing from one thread to the
//! next. If several threads wait at once, each one's time is counted: three threads that wait 10 ms behind
//! one holder make 30 ms of blame.
//!
//! ```text
//! holder A  ████████████
//! holder B               ██████
//! waiter W      ├──────────┤       waited 12: behind A 8, behind B 3, lock free 1
//! ```
//!
//! # Method
//!
//! Two sweeps over the starts and ends of all waits of a lock (see [`sweep`](super::sweep)). The first one
//! finds the [`COLUMNS`] holders that made others wait longest; only these have a total of their own in the
//! second. So with n waits and h holds, this takes O(n log n + h + n · COLUMNS) steps, whether there are ten
//! threads or ten thousand; the obvious method, which intersects each wait with each hold, takes O(n · h).

use super::sweep::{Edges, Piece, Wanted, divide, wanted};
use super::timeline::{Life, LockLife, Timeline};

/// The most holders that have a column of their own; all others share one.
pub const COLUMNS: usize = 64;

/// How the waiting time of one thread, or of one group, for one lock is divided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The thread, or the group, that waited, by its index.
    pub owner: usize,
    /// How long it waited in total.
    pub waited: u64,
    /// How long each of [`Blame::holders`] held the lock meanwhile.
    pub by: Vec<u64>,
    /// How long all other threads together held it.
    pub by_others: u64,
    /// How long no thread held it: the lock was being handed over.
    pub by_no_thread: u64,
}

/// Which threads, or groups of threads, waited for one lock, and behind which holders.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Blame {
    /// The lock's number in the recording.
    pub lock: u32,
    /// The threads, or the groups, behind which others waited, by index, the worst first.
    pub holders: Vec<usize>,
    /// One row for each that waited, the longest first.
    pub rows: Vec<Row>,
    /// How long no thread held the lock while threads waited for it, however many.
    pub free: u64,
}

impl Blame {
    /// The blame for one lock of a timeline, by threads.
    pub fn of(timeline: &Timeline, lock: &LockLife) -> Self {
        Self::new(lock.id, timeline.threads.len(), &holds(lock), &edges(timeline, lock.id))
    }

    /// The blame by threads, and by groups; `group_of` has the group of each thread.
    pub(super) fn with_groups(timeline: &Timeline, lock: &LockLife, group_of: &[usize]) -> (Self, Self) {
        let (mut holds, edges) = (holds(lock), edges(timeline, lock.id));
        let by_thread = Self::new(lock.id, timeline.threads.len(), &holds, &edges);
        holds.iter_mut().for_each(|hold| hold.owner = group_of[hold.owner]);
        let groups = group_of.iter().max().map_or(0, |last| last + 1);
        (by_thread, Self::new(lock.id, groups, &holds, &edges.of_others(group_of)))
    }

    fn new(lock: u32, count: usize, holds: &[Piece], edges: &Edges) -> Self {
        let inflicted = wanted(count, holds, edges);
        let held: u64 = inflicted.iter().map(|wanted| wanted.held).sum();
        let holders = worst_holders(&inflicted);
        let mut rows = rows(count, &holders, holds, edges);
        rows.retain(|row| row.waited > 0);
        rows.sort_by_key(|row| (std::cmp::Reverse(row.waited), row.owner));
        Self { lock, holders, rows, free: edges.covered().saturating_sub(held) }
    }

    /// How long all threads together waited.
    pub fn waited(&self) -> u64 {
        self.rows.iter().map(|row| row.waited).sum()
    }

    /// How long all threads together waited while the holder in a column held the lock.
    pub fn inflicted(&self, column: usize) -> u64 {
        self.rows.iter().map(|row| row.by[column]).sum()
    }
}

fn holds(lock: &LockLife) -> Vec<Piece> {
    lock.holds.iter().map(|hold| Piece { owner: hold.thread, start: hold.start, end: hold.end }).collect()
}

/// The starts and ends of the waits for a lock.
fn edges(timeline: &Timeline, lock: u32) -> Edges {
    let of_thread = |(owner, life): (usize, &Life)| {
        let waits = life.waits.iter().filter(move |wait| wait.lock == lock && wait.length() > 0);
        waits.map(move |wait| Piece { owner, start: wait.start, end: wait.end }).collect::<Vec<_>>()
    };
    Edges::of(&timeline.threads.iter().enumerate().flat_map(of_thread).collect::<Vec<_>>())
}

/// Up to [`COLUMNS`] holders, those first during whose holds the waiters waited longest.
fn worst_holders(inflicted: &[Wanted]) -> Vec<usize> {
    let mut holders: Vec<usize> = (0..inflicted.len()).filter(|owner| inflicted[*owner].waited > 0).collect();
    holders.sort_by_key(|owner| (std::cmp::Reverse(inflicted[*owner].waited), *owner));
    holders.truncate(COLUMNS);
    holders
}

/// A row for each of `count` threads or groups that waited, one column for each of `holders`, and one for the others
/// together.
fn rows(count: usize, holders: &[usize], holds: &[Piece], edges: &Edges) -> Vec<Row> {
    let columns = holders.len() + 1;
    let mut columns_of = vec![vec![holders.len()]; count];
    for (column, holder) in holders.iter().enumerate() {
        columns_of[*holder] = vec![column];
    }
    let waited = edges.waited(count);
    let waiting: Vec<usize> = (0..count).filter(|owner| waited[*owner] > 0).collect();
    let mut rows_of = vec![Vec::new(); count];
    waiting.iter().enumerate().for_each(|(row, owner)| rows_of[*owner] = vec![row]);
    let totals = divide((columns, &columns_of), (waiting.len(), &rows_of), holds, edges);
    let row = |(owner, totals): (usize, &[u64])| {
        let (mut by, held): (Vec<u64>, u64) = (totals.to_vec(), totals.iter().sum());
        let by_others = by.pop().unwrap_or(0);
        Row { owner, waited: waited[owner], by, by_others, by_no_thread: waited[owner].saturating_sub(held) }
    };
    waiting.into_iter().zip(totals.chunks(columns)).map(row).collect()
}
