//! Who held the lock during a wait.

use std::collections::{BTreeMap, HashMap};

use crate::trace::analyze::blamed_code::Piece;
use crate::trace::analyze::recording::Recording;
use crate::trace::analyze::timeline::{Hold, Life, LockLife, Slice, State, Timeline};

/// The thread that held the lock for most of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Holder {
    /// The thread, by its index.
    pub(super) thread: usize,
    /// The name of the innermost mark in which it held the lock longest.
    pub(super) mark: Option<u32>,
    /// The stack whose innermost line held the lock longest, if stacks are known.
    pub(super) stack: Option<u32>,
}

/// A holder in words.
pub(super) struct Named<'a> {
    /// The name of the thread.
    pub(super) thread: &'a str,
    /// The name of the mark.
    pub(super) mark: Option<String>,
    /// The function, with file and line.
    pub(super) code: Option<String>,
}

/// So many holds during one wait are looked at. More threads than that take turns only with very short holds.
const MOST: usize = 4_096;

/// Finds the holders of waits.
pub(super) struct Holders<'a> {
    recording: &'a Recording,
    timeline: &'a Timeline,
    /// The innermost mark of each thread, from each time at which it changes.
    marks: Vec<Vec<(u64, Option<u32>)>>,
    /// How long each thread held the lock in the present wait.
    held: Vec<u64>,
    /// The pieces of each lock's holds that have stacks, in the order of time.
    pieces: HashMap<u32, &'a [Piece]>,
}

impl<'a> Holders<'a> {
    /// `pieces` are those of [`blamed_pieces`](crate::trace::analyze::blamed_code::blamed_pieces).
    pub(super) fn new(recording: &'a Recording, timeline: &'a Timeline, pieces: &'a [Piece]) -> Self {
        let marks = timeline.threads.iter().map(innermost_marks).collect();
        let pieces = pieces.chunk_by(|a, b| a.lock == b.lock).map(|of_lock| (of_lock[0].lock, of_lock));
        Self { recording, timeline, marks, held: vec![0; timeline.threads.len()], pieces: pieces.collect() }
    }

    /// The holder during a slice that ends at `end`; `None` if it is no wait, or if nobody held the lock.
    pub(super) fn of(&mut self, slice: Slice, end: u64) -> Option<Holder> {
        if slice.state != State::Waiting {
            return None;
        }
        let lock = self.timeline.locks.iter().find(|lock| lock.id == slice.what)?;
        let holds = || during(lock, slice.start, end);
        holds().for_each(|hold| self.held[hold.thread] += hold.end - hold.start);
        let thread = holds().map(|hold| hold.thread).max_by_key(|thread| self.held[*thread]);
        holds().for_each(|hold| self.held[hold.thread] = 0);
        let thread = thread?;
        let longest =
            holds().filter(|hold| hold.thread == thread).max_by_key(|hold| hold.end - hold.start)?;
        let stack = self.stack_during(lock.id, thread, slice.start, end);
        Some(Holder { thread, mark: self.mark_at(thread, longest.start), stack })
    }

    /// The stack of a thread on whose innermost line it held a lock longest between two points in time.
    fn stack_during(&self, lock: u32, thread: usize, start: u64, end: u64) -> Option<u32> {
        let pieces = self.pieces.get(&lock)?;
        let first = pieces.partition_point(|piece| piece.end <= start);
        let pieces = pieces[first..].iter().take(MOST).take_while(|piece| piece.start < end);
        let mut held: BTreeMap<(u32, u32), (u64, u32)> = BTreeMap::new();
        for piece in pieces.filter(|piece| piece.thread == thread) {
            let Some(frame) = self.recording.code.stack(piece.stack).next() else { continue };
            let (sum, _) = held.entry((frame.function, frame.line)).or_insert((0, piece.stack));
            *sum += piece.end.min(end) - piece.start.max(start);
        }
        held.into_values().max_by_key(|(sum, _)| *sum).map(|(_, stack)| stack)
    }

    fn mark_at(&self, thread: usize, time: u64) -> Option<u32> {
        let marks = &self.marks[thread];
        marks[..marks.partition_point(|(from, _)| *from <= time)].last()?.1
    }

    /// The holder in words.
    pub(super) fn named(&self, holder: Holder) -> Named<'a> {
        let Recording { code, .. } = self.recording;
        let frame = holder.stack.and_then(|stack| code.stack(stack).next());
        Named {
            thread: &self.timeline.threads[holder.thread].name,
            mark: holder.mark.map(|mark| self.recording.name(mark)),
            code: frame.map(|frame| code.text(frame).to_string()),
        }
    }
}

/// The parts of a lock's holds between two points in time.
fn during(lock: &LockLife, start: u64, end: u64) -> impl Iterator<Item = Hold> {
    let first = lock.holds.partition_point(|hold| hold.end <= start);
    let holds = lock.holds[first..].iter().take(MOST).take_while(move |hold| hold.start < end);
    holds.map(move |hold| Hold { start: hold.start.max(start), end: hold.end.min(end), ..*hold })
}

fn innermost_marks(life: &Life) -> Vec<(u64, Option<u32>)> {
    let mut spans: Vec<_> = life.marks.iter().collect();
    spans.sort_by_key(|span| (span.start, std::cmp::Reverse(span.end)));
    let (mut changes, mut open) = (Vec::new(), Vec::<(u64, u32)>::new());
    let leave = |until: u64, open: &mut Vec<(u64, u32)>, changes: &mut Vec<(u64, Option<u32>)>| {
        while let Some((end, _)) = open.pop_if(|(end, _)| *end <= until) {
            changes.push((end, open.last().map(|(_, name)| *name)));
        }
    };
    for span in spans {
        leave(span.start, &mut open, &mut changes);
        changes.push((span.start, Some(span.name)));
        open.push((span.end, span.name));
    }
    leave(u64::MAX, &mut open, &mut changes);
    changes
}
