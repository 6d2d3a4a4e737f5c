//! The code that others waited for: which lines held a lock while threads wanted it, and for how long.
//!
//! A hold of the lock is cut into pieces, each with the stack that the holder had meanwhile, as
//! [`holder_stacks`](super::holder_stacks) says.
//!
//! ```text
//! holder    ├ parse┼ parse ┼parse┤
//! waiter    ·  ├────────────────────┤
//! lost           4+    7   +   5         parse 16
//! ```
//!
//! What others lost to a piece is the number of threads that waited meanwhile, integrated over time. One
//! sweep over the pieces and over the starts and ends of all waits of the lock computes it: for each group of
//! threads it keeps the integral up to the present, so a piece costs the difference of two of them. With n
//! waits and p pieces this takes O(n log n + p · [`GROUPS`]) steps.

use std::collections::{BTreeMap, HashMap};

use super::code::RecordedFrame;
use super::holder_stacks::settled;
use super::recording::{Moment, Recording};
use super::summary::{BlamedCode, BlamedLine, GroupSummary};
use super::timeline::{Hold, Life, LockLife, Timeline};

/// The most groups of waiting threads that are told apart.
const GROUPS: usize = 16;

/// A part of a hold during which, as far as is known, the holder had one stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// The lock.
    pub lock: u32,
    /// The holder, by its index in [`Timeline::threads`].
    pub thread: usize,
    /// When it begins.
    pub start: u64,
    /// When it ends.
    pub end: u64,
    /// When the hold began of which it is a part.
    pub hold: u64,
    /// The stack, in [`Recording::code`].
    pub stack: u32,
    /// How long all other threads together waited meanwhile.
    pub lost: u64,
}

impl BlamedCode {
    pub(super) fn of(recording: &Recording, timeline: &Timeline, groups: &[GroupSummary]) -> Self {
        let columns = Columns::new(timeline, groups);
        let same = recording.code.same_functions();
        let mut lines =
            Lines { recording, columns: &columns, same, rows: HashMap::new(), tasks: HashMap::new() };
        let mut code = Self::default();
        let stacks = stacks(recording, timeline);
        for lock in &timeline.locks {
            let mut waiting = Waiting::new(timeline, lock, &columns);
            let pieces = pieces(timeline, &stacks, lock);
            let holds = lock.holds.iter().map(|hold| (hold.start, hold.end));
            code.unknown += lost_during(timeline, lock, holds).iter().sum::<u64>();
            for mut piece in pieces {
                let lost = waiting.between(piece.start, piece.end);
                piece.lost = lost.iter().sum();
                code.known += piece.lost;
                if recording.looks_at(piece.stack) {
                    lines.add(&piece, &lost);
                }
            }
        }
        code.unknown = code.unknown.saturating_sub(code.known);
        code.lines = lines.finish();
        code
    }
}

/// The pieces of all holds of which there are stacks, and what others lost to each; lock by lock, in the order of
/// [`Timeline::locks`], and in the order of time.
pub fn blamed_pieces(recording: &Recording, timeline: &Timeline) -> Vec<Piece> {
    let stacks = stacks(recording, timeline);
    let of_lock = |lock: &LockLife| {
        let pieces = pieces(timeline, &stacks, lock);
        let lost = lost_during(timeline, lock, pieces.iter().map(|piece| (piece.start, piece.end)));
        let with_loss = pieces.into_iter().zip(lost).map(|(piece, lost)| Piece { lost, ..piece });
        with_loss.filter(|piece| recording.looks_at(piece.stack)).collect::<Vec<_>>()
    };
    timeline.locks.iter().flat_map(of_lock).collect()
}

/// The pieces of each thread, in the order of time.
pub(in crate::trace) fn by_thread(
    timeline: &Timeline,
    pieces: impl IntoIterator<Item = Piece>,
) -> Vec<Vec<Piece>> {
    let mut of_threads = vec![Vec::new(); timeline.threads.len()];
    pieces.into_iter().for_each(|piece| of_threads[piece.thread].push(piece));
    // With several locks they come lock by lock.
    of_threads.iter_mut().for_each(|pieces: &mut Vec<Piece>| pieces.sort_by_key(|piece| piece.start));
    of_threads
}

/// How long all threads together waited for a lock during each of some spans, which are in the order of time. Of
/// spans that overlap, the first one counts.
pub(in crate::trace) fn lost_during(
    timeline: &Timeline,
    lock: &LockLife,
    spans: impl Iterator<Item = (u64, u64)>,
) -> Vec<u64> {
    let mut waiting = Waiting::new(timeline, lock, &Columns::new(timeline, &[]));
    let mut last = 0;
    let lost = |(start, end): (u64, u64)| {
        let start = start.max(last);
        last = end.max(start);
        waiting.between(start, last).iter().sum()
    };
    spans.map(lost).collect()
}

/// The pieces of a lock's holds, without what was lost, in the order of time.
fn pieces(timeline: &Timeline, stacks: &BTreeMap<u32, Vec<Moment>>, lock: &LockLife) -> Vec<Piece> {
    let of_thread = |life: &Life| stacks.get(&life.id).map_or(&[][..], |stacks| stacks);
    let stacks: Vec<&[Moment]> = timeline.threads.iter().map(of_thread).collect();
    let mut next = vec![0; stacks.len()];
    let mut pieces = Vec::new();
    for hold in &lock.holds {
        let (stacks, next) = (stacks[hold.thread], &mut next[hold.thread]);
        *next += stacks[*next..].iter().take_while(|stack| stack.time < hold.start).count();
        let within = stacks[*next..].iter().take_while(|stack| stack.time <= hold.end).count();
        cut(lock.id, hold, &stacks[*next..*next + within], &mut pieces);
        *next += within;
    }
    pieces
}

/// The stacks of holders, at the ends of the pieces that they stand for; times are since the beginning of the recording.
fn stacks(recording: &Recording, timeline: &Timeline) -> BTreeMap<u32, Vec<Moment>> {
    let mut stacks = settled(recording);
    for stack in stacks.values_mut().flatten() {
        stack.time = stack.time.saturating_sub(recording.start).min(timeline.length);
    }
    stacks
}

/// Cuts a hold at the ends of the pieces.
fn cut(lock: u32, hold: &Hold, stacks: &[Moment], pieces: &mut Vec<Piece>) {
    let (first, mut start) = (pieces.len(), hold.start);
    for Moment { time: end, argument: stack, .. } in stacks.iter().copied() {
        pieces.push(Piece { lock, thread: hold.thread, start, end, hold: hold.start, stack, lost: 0 });
        start = end;
    }
    if let Some(last) = pieces[first..].last_mut() {
        last.end = hold.end;
    }
}

/// The groups of waiting threads that are told apart: a column for each, and one for all others.
struct Columns {
    /// The column of each thread.
    of: Vec<usize>,
    /// The group of each column but the last.
    groups: Vec<usize>,
}

impl Columns {
    fn new(timeline: &Timeline, groups: &[GroupSummary]) -> Self {
        let mut worst: Vec<usize> =
            (0..groups.len()).filter(|group| groups[*group].times.waiting > 0).collect();
        worst.sort_by_key(|group| std::cmp::Reverse(groups[*group].times.waiting));
        worst.truncate(GROUPS);
        let mut of = vec![worst.len(); timeline.threads.len()];
        for (column, group) in worst.iter().enumerate() {
            groups[*group].threads.iter().for_each(|thread| of[*thread] = column);
        }
        Self { of, groups: worst }
    }
}

/// How long the threads of each column have waited for a lock, up to a time that moves forward.
struct Waiting {
    /// The starts and ends of waits, by time: when, of which column, and whether one more waits.
    edges: Vec<(u64, usize, bool)>,
    next: usize,
    /// For each column: the number of waiting threads, since when, and the integral up to then.
    columns: Vec<(u64, u64, u64)>,
}

impl Waiting {
    fn new(timeline: &Timeline, lock: &LockLife, columns: &Columns) -> Self {
        let lives = timeline.threads.iter().zip(&columns.of);
        let waits = lives.flat_map(|(life, column)| life.waits.iter().map(move |wait| (wait, *column)));
        let of_lock = waits.filter(|(wait, _)| wait.lock == lock.id && wait.length() > 0);
        let both = of_lock.flat_map(|(wait, column)| [(wait.start, column, true), (wait.end, column, false)]);
        let mut edges: Vec<_> = both.collect();
        edges.sort_unstable_by_key(|(time, ..)| *time);
        Self { edges, next: 0, columns: vec![(0, 0, 0); columns.groups.len() + 1] }
    }

    /// How long the threads of each column waited between two times, which are not before those of the last
    /// call.
    fn between(&mut self, start: u64, end: u64) -> Vec<u64> {
        let before = self.until(start);
        self.until(end).iter().zip(before).map(|(after, before)| after - before).collect()
    }

    fn until(&mut self, time: u64) -> Vec<u64> {
        while let Some((at, column, begins)) = self.edges.get(self.next).filter(|(at, ..)| *at <= time) {
            let (count, since, sum) = &mut self.columns[*column];
            *sum += *count * (at - *since);
            *since = *at;
            *count = if *begins { *count + 1 } else { count.saturating_sub(1) };
            self.next += 1;
        }
        self.columns.iter().map(|(count, since, sum)| sum + count * (time - since)).collect()
    }
}

/// Gathers the lines.
struct Lines<'a> {
    recording: &'a Recording,
    columns: &'a Columns,
    same: HashMap<u32, u32>,
    rows: HashMap<(u32, u32), Line>,
    /// The function that stands for the task of each stack, if it has one.
    tasks: HashMap<u32, Option<u32>>,
}

/// The most tasks that are named of a line.
const TASKS: usize = 3;

struct Line {
    lost: Vec<u64>,
    /// What was lost to each task, by the function that stands for it.
    tasks: HashMap<u32, u64>,
    samples: u64,
    longest_hold: u64,
    /// The last hold on this line, and how long it has stayed there.
    hold: (u32, u64),
    stayed: u64,
}

impl Lines<'_> {
    fn add(&mut self, piece: &Piece, lost: &[u64]) {
        let Some(frame) = self.recording.code.stack(piece.stack).next() else { return };
        let code = &self.recording.code;
        let task = *self.tasks.entry(piece.stack).or_insert_with(|| code.task(piece.stack));
        let function = self.same.get(&frame.function).copied().unwrap_or(frame.function);
        let row = self.rows.entry((function, frame.line)).or_insert_with(|| Line {
            lost: vec![0; lost.len()],
            tasks: HashMap::new(),
            samples: 0,
            longest_hold: 0,
            hold: (piece.lock, piece.hold),
            stayed: 0,
        });
        row.lost.iter_mut().zip(lost).for_each(|(sum, lost)| *sum += lost);
        row.samples += 1;
        if let Some(task) = task {
            *row.tasks.entry(task).or_default() += piece.lost;
        }
        if row.hold != (piece.lock, piece.hold) {
            (row.hold, row.stayed) = ((piece.lock, piece.hold), 0);
        }
        row.stayed += piece.end - piece.start;
        row.longest_hold = row.longest_hold.max(row.stayed);
    }

    fn finish(self) -> Vec<BlamedLine> {
        let mut lines: Vec<BlamedLine> =
            self.rows.iter().filter_map(|((function, line), row)| self.line(*function, *line, row)).collect();
        lines.sort_by(|a, b| {
            let key = |line: &BlamedLine| (line.function.clone(), line.file.clone(), line.line);
            b.lost.cmp(&a.lost).then_with(|| key(a).cmp(&key(b)))
        });
        lines
    }

    fn line(&self, function: u32, line: u32, row: &Line) -> Option<BlamedLine> {
        let lost: u64 = row.lost.iter().sum();
        let text = self.recording.code.text(RecordedFrame { caller: 0, function, line });
        let mut groups: Vec<(usize, u64)> = self
            .columns
            .groups
            .iter()
            .copied()
            .zip(row.lost.iter().copied())
            .filter(|(_, lost)| *lost > 0)
            .collect();
        groups.sort_by_key(|(group, lost)| (std::cmp::Reverse(*lost), *group));
        let name =
            |function| self.recording.code.text(RecordedFrame { caller: 0, function, line: 0 }).function;
        let mut tasks: Vec<(String, u64)> = row
            .tasks
            .iter()
            .filter(|(_, lost)| **lost > 0)
            .map(|(task, lost)| (name(*task), *lost))
            .collect();
        tasks.sort_by(|(a, a_lost), (b, b_lost)| b_lost.cmp(a_lost).then_with(|| a.cmp(b)));
        tasks.truncate(TASKS);
        (lost > 0).then_some(BlamedLine {
            function: text.function,
            file: text.file,
            line: text.line,
            lost,
            longest_hold: row.longest_hold,
            samples: row.samples,
            groups,
            tasks,
        })
    }
}
