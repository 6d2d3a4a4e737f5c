//! The summary as JSON, and the stacks that its figures rest on.

use std::collections::HashMap;
use std::io::{self, Write};

use serde::Serialize;

use crate::trace::analyze::blamed_code::blamed_pieces;
use crate::trace::analyze::recording::Recording;
use crate::trace::analyze::summary::Summary;
use crate::trace::analyze::timeline::Timeline;

#[derive(Serialize)]
struct WithStacks {
    #[serde(flatten)]
    summary: Summary,
    /// The frames of all stacks: a stack is a frame, its caller, the caller's caller and so on.
    frames: Vec<Frame>,
    /// The holds of locks in pieces, each with the stack of the holder.
    samples: Vec<Sample>,
}

#[derive(Serialize)]
struct Frame {
    function: String,
    file: String,
    line: u32,
    /// The index of the caller's frame, which is before this one.
    caller: Option<usize>,
}

#[derive(Serialize)]
struct Sample {
    /// The number of the lock.
    lock: u32,
    /// The index of the thread that held it.
    thread: usize,
    /// Nanoseconds since the beginning of the recording.
    start: u64,
    end: u64,
    /// How long all other threads together waited meanwhile.
    lost: u64,
    /// The index of the innermost frame.
    frame: usize,
}

/// Writes the summary, the frames and the samples.
pub(super) fn write(recording: &Recording, timeline: &Timeline, out: &mut dyn Write) -> io::Result<()> {
    let mut frames = Frames { recording, numbers: HashMap::new(), all: Vec::new() };
    let mut samples = Vec::new();
    for piece in blamed_pieces(recording, timeline) {
        let Some(frame) = frames.number(piece.stack) else { continue };
        let (start, end, lost) = (piece.start, piece.end, piece.lost);
        samples.push(Sample { lock: piece.lock, thread: piece.thread, start, end, lost, frame });
    }
    let summary = Summary::of(recording, timeline);
    serde_json::to_writer_pretty(&mut *out, &WithStacks { summary, frames: frames.all, samples })?;
    out.write_all(b"\n")
}

/// Numbers the frames from 0 on, callers first.
struct Frames<'a> {
    recording: &'a Recording,
    numbers: HashMap<u32, usize>,
    all: Vec<Frame>,
}

impl Frames<'_> {
    /// The index of a stack's innermost frame.
    fn number(&mut self, stack: u32) -> Option<usize> {
        let code = &self.recording.code;
        let known = |number: &u32| self.numbers.contains_key(number);
        let new: Vec<_> = code.numbered_stack(stack).take_while(|(number, _)| !known(number)).collect();
        for (number, frame) in new.into_iter().rev() {
            let text = code.text(frame);
            let caller = self.numbers.get(&frame.caller).copied();
            self.numbers.insert(number, self.all.len());
            self.all.push(Frame { function: text.function, file: text.file, line: text.line, caller });
        }
        self.numbers.get(&stack).copied()
    }
}
