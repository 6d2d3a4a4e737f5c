//! Stacks in Perfetto's trace: a track below a thread's own has a slice for each piece of a hold of which the stack is
//! known, named after the innermost function. The slice carries the stack, weighted with the time in nanoseconds that
//! others waited meanwhile, so that a selected area shows a flame graph of that time.

use std::collections::BTreeSet;

use super::proto::Message;
use crate::trace::analyze::blamed_code::Piece;
use crate::trace::analyze::code::{Code, RecordedFrame};
use crate::trace::analyze::recording::Recording;
use crate::trace::format::code::LEFT_OUT;

mod event {
    pub(super) const CALLSTACK_IID: u32 = 56;
    pub(super) const CALLSTACK_WEIGHT: u32 = 57;
}
mod interned {
    pub(super) const EVENT_NAMES: u32 = 2;
    pub(super) const FUNCTION_NAMES: u32 = 5;
    pub(super) const FRAMES: u32 = 6;
    pub(super) const CALLSTACKS: u32 = 7;
    pub(super) const SOURCE_PATHS: u32 = 18;
    pub(super) const ANNOTATION_TEXTS: u32 = 29;
    pub(super) const IID: u32 = 1;
}
mod frame {
    pub(super) const FUNCTION_NAME_IID: u32 = 2;
    pub(super) const SOURCE_PATH_IID: u32 = 5;
    pub(super) const LINE: u32 = 6;
    pub(super) const KIND: u32 = 7;
    pub(super) const INTERPRETED: u64 = 3;
}
const FRAME_IDS: u32 = 2;

/// The number of the name of a slice with this stack, and of the text that says where the stack is. Numbers of names
/// and of threads are less.
pub(super) fn code_name(stack: u32) -> u64 {
    1 << 33 | u64::from(stack)
}

/// Adds what stacks consist of to interned data: the names of slices, the texts of annotations, files, functions,
/// frames and stacks. Frames and stacks keep the numbers that they have in the recording.
pub(super) fn intern_stacks(all: Message, recording: &Recording, pieces: &[Piece]) -> Message {
    let code = &recording.code;
    let stacks: BTreeSet<u32> = pieces.iter().map(|piece| piece.stack).collect();
    let frames: BTreeSet<u32> =
        stacks.iter().flat_map(|stack| code.numbered_stack(*stack)).map(|(number, _)| number).collect();
    let frames = || frames.iter().filter_map(|number| Some((*number, *code.frames.get(number)?)));
    let text = |number: &u32| code.frames.get(number).map(|frame| code.text(*frame));
    let names: Vec<_> = stacks.iter().filter_map(|stack| Some((code_name(*stack), text(stack)?))).collect();
    let places: Vec<_> = names.iter().map(|(number, text)| (*number, text.to_string())).collect();
    let all =
        all.interned(interned::EVENT_NAMES, names.iter().map(|(number, text)| (*number, &*text.function)));
    let all =
        all.interned(interned::ANNOTATION_TEXTS, places.iter().map(|(number, text)| (*number, &**text)));
    let files: BTreeSet<u32> =
        frames().map(|(_, frame)| file(code, frame)).filter(|file| *file > 0).collect();
    let path = |file: &u32| code.files.get(file).map_or("", String::as_str);
    let all = all.interned(interned::SOURCE_PATHS, files.iter().map(|file| (u64::from(*file), path(file))));
    let functions: Vec<(u64, String)> =
        frames().map(|(_, frame)| (function_name(frame), code.text(frame).function)).collect();
    let functions: BTreeSet<(u64, &str)> =
        functions.iter().map(|(number, name)| (*number, &**name)).collect();
    let all = all.interned(interned::FUNCTION_NAMES, functions.into_iter());
    let all = frames()
        .fold(all, |all, (number, frame)| all.message(interned::FRAMES, described(code, number, frame)));
    stacks.iter().fold(all, |all, stack| all.message(interned::CALLSTACKS, callstack(code, *stack)))
}

/// The number of a function's name. Frames that were left out are called by their number.
fn function_name(frame: RecordedFrame) -> u64 {
    match frame.function {
        LEFT_OUT => 1 << 32 | u64::from(frame.line),
        function => u64::from(function),
    }
}

/// The number of a frame's file, 0 if it has none.
fn file(code: &Code, frame: RecordedFrame) -> u32 {
    code.functions.get(&frame.function).map_or(0, |function| function.file)
}

fn described(code: &Code, number: u32, frame: RecordedFrame) -> Message {
    let message = Message::default()
        .number(interned::IID, u64::from(number))
        .number(frame::FUNCTION_NAME_IID, function_name(frame))
        .number(frame::KIND, frame::INTERPRETED);
    let file = Some(file(code, frame)).filter(|file| *file > 0);
    let line = Some(code.text(frame).line).filter(|line| *line > 0);
    let message =
        file.into_iter().fold(message, |all, file| all.number(frame::SOURCE_PATH_IID, u64::from(file)));
    line.into_iter().fold(message, |all, line| all.number(frame::LINE, u64::from(line)))
}

/// A stack with its frames, outermost first.
fn callstack(code: &Code, stack: u32) -> Message {
    let mut frames: Vec<u32> = code.numbered_stack(stack).map(|(number, _)| number).collect();
    frames.reverse();
    let message = Message::default().number(interned::IID, u64::from(stack));
    frames.into_iter().fold(message, |all, frame| all.number(FRAME_IDS, u64::from(frame)))
}

/// Adds the stack of a piece to the event that begins its slice.
pub(super) fn with_stack(event: Message, piece: &Piece) -> Message {
    event
        .number(event::CALLSTACK_IID, u64::from(piece.stack))
        .fixed(event::CALLSTACK_WEIGHT, (piece.lost as f64).to_bits())
}
