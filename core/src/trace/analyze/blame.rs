//! Of the time that each thread waited: who held the lock?
//!
//! One sweep over the beginnings and ends of all waits of a lock. On the way it keeps, for each
//! holder, how long that holder has held the lock so far; a wait is answered by the difference of
//! these sums between its two ends. Only the [`COLUMNS`] holders that made others wait longest get a
//! sum of their own, so a sweep takes O(n log n + n · COLUMNS) steps, with ten threads or ten
//! thousand.

use super::timeline::{Hold, LockLife, Timeline};

/// The most holders that are told apart; the others are taken together.
pub const COLUMNS: usize = 64;

/// Of the time that one thread waited for one lock: how much was whose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The thread that waited, by its index.
    pub thread: usize,
    /// How long it waited in all.
    pub waited: u64,
    /// How long each of [`Blame::holders`] held the lock meanwhile.
    pub by: Vec<u64>,
    /// How long all other threads together did.
    pub by_others: u64,
    /// How long nobody did: the lock was on its way from one thread to the next.
    pub by_nobody: u64,
}

/// Who waited behind whom for one lock.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Blame {
    /// The lock's number in the recording.
    pub lock: u32,
    /// The threads that made others wait, by their indices, the worst first.
    pub holders: Vec<usize>,
    /// One row for each thread that waited, the longest first.
    pub rows: Vec<Row>,
}

impl Blame {
    /// Who waited behind whom for one lock of a timeline.
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

    /// How long all threads together waited for the holder in a column.
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

/// The ends of waits in the order of time, ends before beginnings.
fn edges(waits: &[Wait]) -> Vec<(u64, bool, usize)> {
    let both = |(index, wait): (usize, &Wait)| [(wait.start, true, index), (wait.end, false, index)];
    let mut edges: Vec<_> = waits.iter().enumerate().flat_map(both).collect();
    edges.sort_unstable();
    edges
}

/// Up to [`COLUMNS`] threads, those first whose holding made the others wait longest.
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

/// How long each holder has held the lock up to a moment that moves forward.
struct Sums<'a> {
    holds: &'a [Hold],
    column_of: Vec<usize>,
    /// The sums of the told-apart holders, of the others, and of all.
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

    /// Moves forward to `time` and adds the sums up to then, times `sign`, to `total`.
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
        Row { thread, waited, by, by_others, by_nobody: waited.saturating_sub(held) }
    };
    rows.into_iter().zip(totals.chunks(columns)).map(row).collect()
}
