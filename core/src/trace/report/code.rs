//! The stacks of a report page: of the code that others waited for, and of the threads that waited.
//!
//! Functions go into the page's head. Then, as numbers, each frame as the number of its caller's (from 1 on, in this
//! order; 0 if there is none), of its function (likewise; 0 for frames that were left out), and its line. For each
//! thread: its pieces of holds, each as start (relative to the previous one's), duration, lock and frame; its
//! stacks as it waited, each as time (relative to the previous one's) and frame.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::trace::analyze::blamed_code::{Piece, blamed_pieces, by_thread};
use crate::trace::analyze::code::{Code, RecordedFrame};
use crate::trace::analyze::recording::Recording;
use crate::trace::analyze::timeline::{Life, Timeline};
use crate::trace::format::code::LEFT_OUT;
use crate::trace::format::event::Kind;
use crate::trace::format::wire::put_number;

/// A function, by name and the path of its file, which may be empty.
#[derive(Serialize)]
pub(super) struct Function(String, String);

/// The stacks of a recording.
pub(super) struct Stacks<'a> {
    code: &'a Code,
    /// By thread, in the order of time.
    pieces: Vec<Vec<Piece>>,
    /// By thread: when it had waited for long, and its stack then.
    waits: Vec<Vec<(u64, u32)>>,
    /// The frames that these use, and from 1 on their new numbers.
    frames: BTreeMap<u32, u64>,
    /// Likewise for functions.
    functions: BTreeMap<u32, u64>,
}

impl<'a> Stacks<'a> {
    pub(super) fn of(recording: &'a Recording, timeline: &Timeline) -> Self {
        let code = &recording.code;
        let pieces = pieces(recording, timeline);
        let waits: Vec<_> = timeline.threads.iter().map(|life| waits(recording, timeline, life)).collect();
        let innermost = pieces.iter().flatten().map(|piece| piece.stack);
        let innermost: BTreeSet<u32> =
            innermost.chain(waits.iter().flatten().map(|(_, stack)| *stack)).collect();
        let used = with_callers(code, innermost);
        let functions: BTreeSet<u32> = used.iter().map(|id| code.frames[id].function).collect();
        let functions = functions.into_iter().filter(|function| *function != LEFT_OUT);
        Self { code, pieces, waits, frames: numbered(used), functions: numbered(functions) }
    }

    pub(super) fn functions(&self) -> Vec<Function> {
        let text = |function: &u32| self.code.text(RecordedFrame { caller: 0, function: *function, line: 0 });
        self.functions.keys().map(text).map(|text| Function(text.function, text.file)).collect()
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        let mut put = |number: u64| put_number(out, number);
        put(self.frames.len() as u64);
        for frame in self.frames.keys().map(|id| self.code.frames[id]) {
            put(self.frames.get(&frame.caller).copied().unwrap_or(0));
            put(self.functions.get(&frame.function).copied().unwrap_or(0));
            put(u64::from(frame.line));
        }
        for (pieces, waits) in self.pieces.iter().zip(&self.waits) {
            put(pieces.len() as u64);
            let mut last = 0;
            for piece in pieces {
                put(piece.start - last);
                put(piece.end - piece.start);
                put(u64::from(piece.lock));
                put(self.frames[&piece.stack]);
                last = piece.start;
            }
            put(waits.len() as u64);
            let mut last = 0;
            for (time, stack) in waits {
                put(time - last);
                put(self.frames[stack]);
                last = *time;
            }
        }
    }
}

/// The pieces during which others waited, by thread.
fn pieces(recording: &Recording, timeline: &Timeline) -> Vec<Vec<Piece>> {
    if recording.code.frames.is_empty() {
        return vec![Vec::new(); timeline.threads.len()];
    }
    by_thread(timeline, blamed_pieces(recording, timeline).into_iter().filter(|piece| piece.lost > 0))
}

/// When a thread waited, and its stack then.
fn waits(recording: &Recording, timeline: &Timeline, life: &Life) -> Vec<(u64, u32)> {
    let moments = recording.threads.get(&life.id).map_or(&[][..], |thread| &thread.moments);
    let of_waits = moments.iter().filter(|moment| moment.kind == Kind::StackWaiting);
    of_waits
        .filter(|moment| recording.code.frames.contains_key(&moment.argument))
        .map(|moment| (moment.time.saturating_sub(recording.start).min(timeline.length), moment.argument))
        .collect()
}

/// Frames and all their callers.
fn with_callers(code: &Code, innermost: BTreeSet<u32>) -> BTreeSet<u32> {
    let mut all = BTreeSet::new();
    for stack in innermost {
        let mut id = stack;
        while let Some(frame) = code.frames.get(&id) {
            if !all.insert(id) {
                break;
            }
            id = frame.caller;
        }
    }
    all
}

/// Numbers from 1 on.
fn numbered(ids: impl IntoIterator<Item = u32>) -> BTreeMap<u32, u64> {
    ids.into_iter().zip(1..).collect()
}
