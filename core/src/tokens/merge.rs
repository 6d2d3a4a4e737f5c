//! Byte pair encoding by the book: of all neighbours that make a token, those of the lowest rank are joined first.
//!
//! This works for any vocabulary, in time n log n.

use super::Error;
use crate::memory::{self, OutOfMemory};
use crate::{Stopped, Task};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The parts that are left of a piece.
pub(super) struct Parts {
    /// For each byte at which a part starts, where that part ends.
    ends: Vec<usize>,
    /// Where the two parts that were joined last met.
    pub(super) last_boundary: Option<usize>,
}

impl Parts {
    /// Where each part starts and ends.
    pub(super) fn spans(&self) -> impl Iterator<Item = (usize, usize)> {
        let next = |start: usize| self.ends.get(start).map(|&end| (start, end));
        std::iter::successors(next(0), move |&(_, end)| next(end))
    }
}

/// How many steps are taken between two looks at the task.
const STRETCH: usize = 1024;

/// Joins the neighbours of a piece of `length` bytes; `rank` gives the rank of the token from one byte to another.
pub(super) fn merge(
    length: usize,
    rank: impl Fn(usize, usize) -> Option<u32>,
    task: &Task<'_>,
) -> Result<Parts, Error> {
    let mut merger = Merger {
        ends: memory::collected::<_, Error>((1..=length).map(Ok))?,
        before: memory::collected::<_, Error>((0..length).map(|at| Ok(at.wrapping_sub(1))))?,
        queue: BinaryHeap::new(),
        rank,
    };
    for start in 0..length {
        look_at(task, start)?;
        merger.offer(start)?;
    }
    let mut last_boundary = None;
    for step in 0.. {
        look_at(task, step)?;
        let Some(Reverse((_, start, end))) = merger.queue.pop() else { break };
        last_boundary = merger.join(start, end)?.or(last_boundary);
    }
    Ok(Parts { ends: merger.ends, last_boundary })
}

fn look_at(task: &Task<'_>, step: usize) -> Result<(), Stopped> {
    if step.is_multiple_of(STRETCH) { task.check() } else { Ok(()) }
}

struct Merger<F> {
    ends: Vec<usize>,
    /// For each byte at which a part starts, where the part before it starts.
    before: Vec<usize>,
    /// The rank of a pair of neighbours, and its span.
    queue: BinaryHeap<Reverse<(u32, usize, usize)>>,
    rank: F,
}

impl<F: Fn(usize, usize) -> Option<u32>> Merger<F> {
    /// Puts the part at `start` and the next one in the queue if they make a token.
    fn offer(&mut self, start: usize) -> Result<(), OutOfMemory> {
        let boundary = self.ends.get(start);
        let Some(&end) = boundary.and_then(|&boundary| self.ends.get(boundary)) else { return Ok(()) };
        if let Some(rank) = (self.rank)(start, end) {
            self.queue.try_reserve(1)?;
            self.queue.push(Reverse((rank, start, end)));
        }
        Ok(())
    }

    /// Joins the parts between `start` and `end` and says where they met, unless one of them has changed since.
    fn join(&mut self, start: usize, end: usize) -> Result<Option<usize>, OutOfMemory> {
        let boundary = self.ends[start];
        if self.ends.get(boundary) != Some(&end) {
            return Ok(None);
        }
        self.ends[start] = end;
        self.ends[boundary] = usize::MAX;
        if let Some(before) = self.before.get_mut(end) {
            *before = start;
        }
        self.offer(start)?;
        self.offer(self.before[start])?;
        Ok(Some(boundary))
    }
}
