//! Byte pair encoding with a heap: the general algorithm.
//!
//! Works for any vocabulary. A min-heap holds the pairs of neighbours that form a token, ordered by rank and
//! position. Each step pops the least pair and joins it, unless one of its parts has changed since it was
//! pushed, and pushes the two new pairs at the ends of the joined part. A piece of n bytes needs at most n
//! joins and 3 n pushes, so the time is O(n log n) and the memory O(n). (The plain algorithm, as in
//! tiktoken's `_byte_pair_merge`, searches all pairs before each join: O(n²).)
//!
//! Orderly vocabularies use it only to find out how their tokens are made (`merges.rs`); it is also the
//! oracle in tests of the faster methods.

use super::Error;
use crate::memory::{self, OutOfMemory};
use crate::{Stopped, Task};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A piece, divided into parts.
pub(super) struct Parts {
    /// For each byte at which a part starts, where that part ends.
    ends: Vec<usize>,
    /// The boundary at which the last join happened.
    pub(super) last_boundary: Option<usize>,
}

impl Parts {
    /// The start and end of each part.
    pub(super) fn spans(&self) -> impl Iterator<Item = (usize, usize)> {
        let next = |start: usize| self.ends.get(start).map(|&end| (start, end));
        std::iter::successors(next(0), move |&(_, end)| next(end))
    }
}

/// The number of steps between two checks of the task.
const STRETCH: usize = 1024;

/// Encodes a piece of `length` bytes; `rank` returns the rank of the token from one byte to another.
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
    /// Pushes the pair of the part at `start` and the next one, if they form a token.
    fn offer(&mut self, start: usize) -> Result<(), OutOfMemory> {
        let boundary = self.ends.get(start);
        let Some(&end) = boundary.and_then(|&boundary| self.ends.get(boundary)) else { return Ok(()) };
        if let Some(rank) = (self.rank)(start, end) {
            self.queue.try_reserve(1)?;
            self.queue.push(Reverse((rank, start, end)));
        }
        Ok(())
    }

    /// Joins the two parts between `start` and `end` and returns their boundary, unless one of them has
    /// changed since the pair was pushed.
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
