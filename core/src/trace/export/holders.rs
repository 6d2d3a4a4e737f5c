//! Who held the lock during a wait.

use crate::trace::analyze::recording::Recording;
use crate::trace::analyze::timeline::{Hold, Life, LockLife, Slice, State, Timeline};

/// The thread that held the lock for most of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Holder {
    /// The thread, by its index.
    pub(super) thread: usize,
    /// The name of the innermost mark in which it held the lock longest.
    pub(super) mark: Option<u32>,
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
}

impl<'a> Holders<'a> {
    pub(super) fn new(recording: &'a Recording, timeline: &'a Timeline) -> Self {
        let marks = timeline.threads.iter().map(innermost_marks).collect();
        Self { recording, timeline, marks, held: vec![0; timeline.threads.len()] }
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
        Some(Holder { thread, mark: self.mark_at(thread, longest.start) })
    }

    fn mark_at(&self, thread: usize, time: u64) -> Option<u32> {
        let marks = &self.marks[thread];
        marks[..marks.partition_point(|(from, _)| *from <= time)].last()?.1
    }

    /// The names of the holder's thread and mark.
    pub(super) fn named(&self, holder: Holder) -> (&'a str, Option<String>) {
        let mark = holder.mark.map(|mark| self.recording.name(mark));
        (&self.timeline.threads[holder.thread].name, mark)
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
