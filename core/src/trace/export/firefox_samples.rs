//! The samples of a thread in the Firefox Profiler's profile, and the tables of its stacks.
//!
//! A sample's weight is the time that others waited for the lock meanwhile. Its stack is that of the thread as far as
//! it is known, otherwise the name of the state. The category is the state.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::numbered::Numbered;
use crate::trace::analyze::blamed_code::{Piece, by_thread, lost_during};
use crate::trace::analyze::code::Code;
use crate::trace::analyze::timeline::{LockLife, State, Timeline};

/// The unit of all times in a profile.
pub(super) fn milliseconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e6
}

/// What a thread does from one point in time to another.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample {
    start: u64,
    end: u64,
    state: State,
    /// The lock, if it holds one.
    lock: Option<u32>,
    /// Its stack in [`Recording::code`](crate::trace::analyze::recording::Recording::code).
    stack: Option<u32>,
    /// How long others waited for the lock meanwhile.
    lost: u64,
}

/// The samples of each thread: its states, cut where its stack changes.
pub(super) fn samples(timeline: &Timeline, pieces: &[Piece]) -> Vec<Vec<Sample>> {
    let mut all = Vec::new();
    for (life, pieces) in timeline.threads.iter().zip(by_thread(timeline, pieces.iter().copied())) {
        let mut samples = Vec::new();
        for (slice, end) in life.states() {
            let lock = slice.state.holds().then_some(slice.what);
            let whole = Sample { start: slice.start, end, state: slice.state, lock, stack: None, lost: 0 };
            cut(whole, &pieces, &mut samples);
        }
        all.push(samples);
    }
    for lock in &timeline.locks {
        add_lost(timeline, lock, &mut all);
    }
    all
}

/// Cuts the time of a state at the pieces that have stacks.
fn cut(whole: Sample, pieces: &[Piece], samples: &mut Vec<Sample>) {
    let first = pieces.partition_point(|piece| piece.end <= whole.start);
    let within = pieces[first..].iter().take_while(|piece| piece.start < whole.end);
    let mut rest = whole;
    for piece in within.filter(|piece| Some(piece.lock) == whole.lock && piece.start < piece.end) {
        let (start, end) = (piece.start.max(rest.start), piece.end.min(whole.end));
        if rest.start < start {
            samples.push(Sample { end: start, ..rest });
        }
        samples.push(Sample { start, end, stack: Some(piece.stack), ..whole });
        rest.start = end;
    }
    if rest.start < rest.end {
        samples.push(rest);
    }
}

/// Adds what others lost while threads held a lock.
fn add_lost(timeline: &Timeline, lock: &LockLife, all: &mut [Vec<Sample>]) {
    let mut holding: Vec<&mut Sample> =
        all.iter_mut().flatten().filter(|sample| sample.lock == Some(lock.id)).collect();
    holding.sort_by_key(|sample| sample.start);
    let lost = lost_during(timeline, lock, holding.iter().map(|sample| (sample.start, sample.end)));
    holding.into_iter().zip(lost).for_each(|(sample, lost)| sample.lost = lost);
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Func {
    /// A string, as the file is.
    name: usize,
    file: Option<usize>,
    /// The first line.
    line: Option<u32>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Frame {
    func: usize,
    line: Option<u32>,
    state: State,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Stack {
    frame: usize,
    /// The stack of the caller.
    prefix: Option<usize>,
    state: State,
}

/// The tables of a thread. Rows name each other by number.
pub(super) struct Tables<'a> {
    code: &'a Code,
    pub(super) strings: Numbered<String>,
    funcs: Numbered<Func>,
    frames: Numbered<Frame>,
    stacks: Numbered<Stack>,
    /// The stacks that were asked for.
    known: HashMap<(Option<u32>, State), usize>,
}

impl<'a> Tables<'a> {
    pub(super) fn new(code: &'a Code) -> Self {
        Self {
            code,
            strings: Numbered::default(),
            funcs: Numbered::default(),
            frames: Numbered::default(),
            stacks: Numbered::default(),
            known: HashMap::new(),
        }
    }

    /// The table of samples.
    pub(super) fn samples(&mut self, samples: &[Sample]) -> Value {
        let stacks: Vec<usize> =
            samples.iter().map(|sample| self.stack(sample.stack, sample.state)).collect();
        json!({
            "stack": stacks,
            "time": samples.iter().map(|sample| milliseconds(sample.start)).collect::<Vec<_>>(),
            "weight": samples.iter().map(|sample| milliseconds(sample.lost)).collect::<Vec<_>>(),
            "weightType": "tracing-ms",
            "length": samples.len(),
        })
    }

    fn stack(&mut self, stack: Option<u32>, state: State) -> usize {
        if let Some(number) = self.known.get(&(stack, state)) {
            return *number;
        }
        let frames: Vec<_> = stack.into_iter().flat_map(|stack| self.code.stack(stack)).collect();
        let number = frames.into_iter().rev().fold(None, |prefix, frame| {
            let text = self.code.text(frame);
            let first_line = self.code.functions.get(&frame.function).map_or(0, |function| function.line);
            let file = (!text.file.is_empty()).then(|| self.strings.number(text.file));
            let func = Func { name: self.strings.number(text.function), file, line: known(first_line) };
            Some(self.row(func, known(text.line), prefix, state))
        });
        let number = number.unwrap_or_else(|| {
            let name = self.strings.number(state.name().to_owned());
            self.row(Func { name, file: None, line: None }, None, None, state)
        });
        self.known.insert((stack, state), number);
        number
    }

    /// The number of a stack whose innermost frame is in this function.
    fn row(&mut self, func: Func, line: Option<u32>, prefix: Option<usize>, state: State) -> usize {
        let func = self.funcs.number(func);
        let frame = self.frames.number(Frame { func, line, state });
        self.stacks.number(Stack { frame, prefix, state })
    }

    pub(super) fn stack_table(&self) -> Value {
        let rows = self.stacks.rows();
        json!({
            "frame": column(rows, |stack| stack.frame),
            "prefix": column(rows, |stack| stack.prefix),
            "category": column(rows, |stack| stack.state as usize),
            "subcategory": column(rows, |_| 0),
            "length": rows.len(),
        })
    }

    pub(super) fn frame_table(&self) -> Value {
        let rows = self.frames.rows();
        json!({
            "address": column(rows, |_| -1),
            "inlineDepth": column(rows, |_| 0),
            "category": column(rows, |frame| frame.state as usize),
            "subcategory": column(rows, |_| 0),
            "func": column(rows, |frame| frame.func),
            "nativeSymbol": column(rows, |_| ()),
            "innerWindowID": column(rows, |_| ()),
            "implementation": column(rows, |_| ()),
            "line": column(rows, |frame| frame.line),
            "column": column(rows, |_| ()),
            "length": rows.len(),
        })
    }

    pub(super) fn func_table(&self) -> Value {
        let rows = self.funcs.rows();
        json!({
            "name": column(rows, |func| func.name),
            "isJS": column(rows, |_| false),
            "relevantForJS": column(rows, |_| false),
            "resource": column(rows, |_| -1),
            "fileName": column(rows, |func| func.file),
            "lineNumber": column(rows, |func| func.line),
            "columnNumber": column(rows, |_| ()),
            "length": rows.len(),
        })
    }
}

/// A line, unless it is unknown.
fn known(line: u32) -> Option<u32> {
    (line > 0).then_some(line)
}

fn column<T, V>(rows: &[T], of: impl Fn(&T) -> V) -> Vec<V> {
    rows.iter().map(of).collect()
}
