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
//! One sweep over the starts and ends of all waits of a lock, in the order of time. It keeps, for each
//! holder, the total time for which that holder has held the lock so far. The blame of a wait is the
//! difference of these totals between its end and its start, so at a start the totals are subtracted from the
//! waiter's row, and at an end they are added: prefix sums over time. The holds of a lock do not overlap (see
//! [`Timeline`]), so each one is visited once.
//!
//! Only the [`COLUMNS`] holders that made others wait longest have a total of their own; a first sweep finds
//! them by adding up the hold times, each multiplied by the number of waiters. So with n waits and h holds,
//! this takes O(n log n + h + n · COLUMNS) steps, whether there are ten threads or ten thousand; the obvious
//! method, which intersects each wait with each hold, takes O(n · h).

use super::timeline::{Hold, LockLife, Timeline};

/// The most holders that have a column of their own; all others share one.
pub const COLUMNS: usize = 64;

/// How one thread's waiting time for one lock is divided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The thread that waited, by its index.
    pub thread: usize,
    /// How long it waited in total.
    pub waited: u64,
    /// How long each of [`Blame::holders`] held the lock meanwhile.
    pub by: Vec<u64>,
    /// How long all other threads together held it.
    pub by_others: u64,
    /// How long no thread held it: the lock was being handed over.
    pub by_no_thread: u64,
}

/// Which threads waited for one lock, and behind which holders.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Blame {
    /// The lock's number in the recording.
    pub lock: u32,
    /// The threads behind which others waited, by index, the worst first.
    pub holders: Vec<usize>,
    /// One row for each thread that waited, the longest first.
    pub rows: Vec<Row>,
}

impl Blame {
    /// The blame for one lock of a timeline.
    pub fn of(timeline: &Timeline, lock: &LockLife) -> Self {
        let waits = Wait::all(timeline, lock.id);
        let holders = worst_holders(timeline.threads.len(), &lock.holds, &waits);
        let mut rows = sweep(&holders, &lock.holds, &waits);
        rows.retain(|row| row.waited > 0);
        rows.sort_by_key(|row| (std::cmp::Reverse(row.waited), row.thread));
        Self { lock: lock.id, holders, rows }
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

#[derive(Clone, Copy)]
struct Wait {
    thread: usize,
    start: u64,
    end: u64,
}

impl Wait {
    fn all(timeline: &Timeline, lock: u32) -> Vec<Self> {
        let of_thread = |(thread, life): (usize, &super::timeline::Life)| {
            let waits = life.waits.iter().filter(move |wait| wait.lock == lock && wait.length() > 0);
            waits.map(move |wait| Self { thread, start: wait.start, end: wait.end }).collect::<Vec<_>>()
        };
        timeline.threads.iter().enumerate().flat_map(of_thread).collect()
    }
}

/// The starts and ends of waits in the order of time, ends before starts.
fn edges(waits: &[Wait]) -> Vec<(u64, bool, usize)> {
    let both = |(index, wait): (usize, &Wait)| [(wait.start, true, index), (wait.end, false, index)];
    let mut edges: Vec<_> = waits.iter().enumerate().flat_map(both).collect();
    edges.sort_unstable();
    edges
}

/// Up to [`COLUMNS`] threads, those first during whose holds the waiters waited longest.
fn worst_holders(threads: usize, holds: &[Hold], waits: &[Wait]) -> Vec<usize> {
    let mut inflicted = vec![0_u128; threads];
    let edges = edges(waits);
    let (mut waiting, mut next) = (0_u64, 0);
    for hold in holds {
        let mut from = hold.start;
        while let Some(&(time, begins, _)) = edges.get(next).filter(|(time, ..)| *time <= hold.end) {
            inflicted[hold.thread] += u128::from(time.saturating_sub(from)) * u128::from(waiting);
            from = from.max(time);
            waiting = if begins { waiting + 1 } else { waiting - 1 };
            next += 1;
        }
        inflicted[hold.thread] += u128::from(hold.end - from) * u128::from(waiting);
    }
    let mut holders: Vec<usize> = (0..threads).filter(|thread| inflicted[*thread] > 0).collect();
    holders.sort_by_key(|thread| (std::cmp::Reverse(inflicted[*thread]), *thread));
    holders.truncate(COLUMNS);
    holders
}

/// How long each holder has held the lock up to a point in time that moves forward.
struct Sums<'a> {
    holds: &'a [Hold],
    column_of: Vec<usize>,
    /// The totals of the holders with a column, and of the others.
    finished: Vec<u64>,
    next: usize,
}

impl<'a> Sums<'a> {
    fn new(holders: &[usize], holds: &'a [Hold]) -> Self {
        let threads = holds.iter().map(|hold| hold.thread + 1).max().unwrap_or(0);
        let mut column_of = vec![holders.len(); threads];
        for (column, holder) in holders.iter().enumerate() {
            column_of[*holder] = column;
        }
        Self { holds, column_of, finished: vec![0; holders.len() + 1], next: 0 }
    }

    /// Moves forward to `time` and adds the totals up to then, times `sign`, to `total`.
    fn add_to(&mut self, time: u64, sign: i64, total: &mut [i64]) {
        while let Some(hold) = self.holds.get(self.next).filter(|hold| hold.end <= time) {
            self.finished[self.column_of[hold.thread]] += hold.end - hold.start;
            self.next += 1;
        }
        total.iter_mut().zip(&self.finished).for_each(|(total, sum)| *total += sign * *sum as i64);
        if let Some(hold) = self.holds.get(self.next).filter(|hold| hold.start < time) {
            total[self.column_of[hold.thread]] += sign * (time - hold.start) as i64;
        }
    }
}

fn sweep(holders: &[usize], holds: &[Hold], waits: &[Wait]) -> Vec<Row> {
    let columns = holders.len() + 1;
    let mut row_of = vec![usize::MAX; waits.iter().map(|wait| wait.thread + 1).max().unwrap_or(0)];
    let mut rows: Vec<(usize, u64)> = Vec::new();
    for wait in waits {
        if row_of[wait.thread] == usize::MAX {
            row_of[wait.thread] = rows.len();
            rows.push((wait.thread, 0));
        }
        rows[row_of[wait.thread]].1 += wait.end - wait.start;
    }
    let mut totals = vec![0_i64; rows.len() * columns];
    let mut sums = Sums::new(holders, holds);
    for (time, begins, index) in edges(waits) {
        let row = row_of[waits[index].thread] * columns;
        sums.add_to(time, if begins { -1 } else { 1 }, &mut totals[row..row + columns]);
    }
    let row = |((thread, waited), totals): ((usize, u64), &[i64])| {
        let mut by: Vec<u64> = totals.iter().map(|total| *total as u64).collect();
        let held: u64 = by.iter().sum();
        let by_others = by.pop().unwrap_or(0);
        Row { thread, waited, by, by_others, by_no_thread: waited.saturating_sub(held) }
    };
    rows.into_iter().zip(totals.chunks(columns)).map(row).collect()
}
