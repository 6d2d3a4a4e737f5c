//! Sweeps over the holds of a lock and the waits for it, in the order of time: which threads waited how long behind
//! which others.
//!
//! Holders and waiters are numbers; what they stand for (a thread, the threads in a mark) is the caller's
//! affair. The holds of a lock do not overlap (see [`Timeline`](super::timeline::Timeline)), the waits do.
//!
//! [`wanted`] walks through holds and waits once and keeps the number of waiters: for each holder it says how
//! long others waited, in O(n log n + h) steps for n waits and h holds. [`divide`] says for each waiter
//! behind which holders it waited. It keeps, for each column (a holder, or several), the total time for which
//! the lock has been held so far. The waiting time behind a column is the difference of these totals between
//! the end of a wait and its start, so at a start the totals are subtracted from the waiter's row, and at an
//! end they are added: prefix sums over time. This takes O(n log n + h + n · columns) steps.

/// A time during which `owner` held a lock or waited for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    /// The holder's or the waiter's number.
    pub(super) owner: usize,
    /// When it begins.
    pub(super) start: u64,
    /// When it ends.
    pub(super) end: u64,
}

/// What waiting a holder caused.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Wanted {
    /// How long it held the lock while somebody waited.
    pub(super) held: u64,
    /// How long it did so at the most in one hold.
    pub(super) longest_hold: u64,
    /// How long all waiters together waited meanwhile.
    pub(super) waited: u64,
}

/// The starts and ends of waits in the order of time, ends before starts: when, whether it is a start, and whose.
pub(super) struct Edges(Vec<(u64, bool, usize)>);

impl Edges {
    pub(super) fn of(waits: &[Piece]) -> Self {
        let both = |wait: &Piece| [(wait.start, true, wait.owner), (wait.end, false, wait.owner)];
        let mut edges: Vec<_> = waits.iter().flat_map(both).collect();
        edges.sort_unstable();
        Self(edges)
    }

    /// The same with other numbers for the waiters.
    pub(super) fn of_others(&self, other: &[usize]) -> Self {
        Self(self.0.iter().map(|&(time, begins, owner)| (time, begins, other[owner])).collect())
    }

    /// For how long at least one of them waited.
    pub(super) fn covered(&self) -> u64 {
        let (mut count, mut since, mut covered) = (0_u64, 0, 0);
        for &(time, begins, _) in &self.0 {
            if count > 0 {
                covered += time - since;
            }
            since = time;
            count = if begins { count + 1 } else { count - 1 };
        }
        covered
    }

    /// How long each of `waiters` waited.
    pub(super) fn waited(&self, waiters: usize) -> Vec<u64> {
        let mut waited = vec![0_u64; waiters];
        for &(time, begins, owner) in &self.0 {
            waited[owner] =
                if begins { waited[owner].wrapping_sub(time) } else { waited[owner].wrapping_add(time) };
        }
        waited
    }
}

/// What waiting each of `holders` holders caused.
pub(super) fn wanted(holders: usize, holds: &[Piece], Edges(edges): &Edges) -> Vec<Wanted> {
    let mut all = vec![Wanted::default(); holders];
    let (mut waiting, mut next) = (0_u64, 0);
    for hold in holds {
        let (mut from, mut held) = (hold.start, 0);
        let mut until = |time: u64, waiting: u64| {
            let length = time.saturating_sub(from);
            all[hold.owner].waited += length * waiting;
            held += if waiting > 0 { length } else { 0 };
            from = from.max(time);
        };
        while let Some(&(time, begins, _)) = edges.get(next).filter(|(time, ..)| *time <= hold.end) {
            until(time, waiting);
            waiting = if begins { waiting + 1 } else { waiting - 1 };
            next += 1;
        }
        until(hold.end, waiting);
        let wanted = &mut all[hold.owner];
        wanted.held += held;
        wanted.longest_hold = wanted.longest_hold.max(held);
    }
    all
}

/// How long each column has held the lock up to a point in time that moves forward.
struct Sums<'a> {
    holds: &'a [Piece],
    columns_of: &'a [Vec<usize>],
    finished: Vec<u64>,
    next: usize,
}

impl Sums<'_> {
    /// Moves forward to `time`.
    fn advance(&mut self, time: u64) {
        while let Some(hold) = self.holds.get(self.next).filter(|hold| hold.end <= time) {
            for column in &self.columns_of[hold.owner] {
                self.finished[*column] += hold.end - hold.start;
            }
            self.next += 1;
        }
    }

    /// Adds the totals up to `time`, to which it was moved, times `sign`, to `total`.
    fn add_to(&self, time: u64, sign: i64, total: &mut [i64]) {
        total.iter_mut().zip(&self.finished).for_each(|(total, sum)| *total += sign * *sum as i64);
        if let Some(hold) = self.holds.get(self.next).filter(|hold| hold.start < time) {
            for column in &self.columns_of[hold.owner] {
                total[*column] += sign * (time - hold.start) as i64;
            }
        }
    }
}

/// How long each row waited behind each column: `rows.len()` rows of `columns` numbers. A holder's time goes
/// to each of its columns, and a waiter's to each of its rows.
pub(super) fn divide(
    (columns, columns_of): (usize, &[Vec<usize>]),
    (rows, rows_of): (usize, &[Vec<usize>]),
    holds: &[Piece],
    Edges(edges): &Edges,
) -> Vec<u64> {
    let mut totals = vec![0_i64; rows * columns];
    let mut sums = Sums { holds, columns_of, finished: vec![0; columns], next: 0 };
    for &(time, begins, owner) in edges {
        sums.advance(time);
        for row in &rows_of[owner] {
            let total = &mut totals[row * columns..(row + 1) * columns];
            sums.add_to(time, if begins { -1 } else { 1 }, total);
        }
    }
    totals.into_iter().map(|total| total as u64).collect()
}
