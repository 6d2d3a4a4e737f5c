//! Collapsed stacks: the code that others waited for, one stack per line, as flame graph tools read it.
//!
//! ```text
//! main (app.py:3);serve (app.py:10);parse (app.py:41) 12000000
//! ```
//!
//! The number is the time in nanoseconds that other threads waited while the lock's holder had this stack.

use std::collections::BTreeMap;
use std::io::{self, Write};

use crate::trace::analyze::blamed_code::blamed_pieces;
use crate::trace::analyze::code::FrameText;
use crate::trace::analyze::recording::Recording;
use crate::trace::analyze::timeline::Timeline;

pub(super) fn write(recording: &Recording, timeline: &Timeline, out: &mut dyn Write) -> io::Result<()> {
    let mut by_number: BTreeMap<u32, u64> = BTreeMap::new();
    for piece in blamed_pieces(recording, timeline) {
        *by_number.entry(piece.stack).or_default() += piece.lost;
    }
    let mut lost: BTreeMap<String, u64> = BTreeMap::new();
    for (stack, time) in by_number.into_iter().filter(|(_, time)| *time > 0) {
        *lost.entry(stack_of(recording, stack)).or_default() += time;
    }
    lost.iter().try_for_each(|(stack, time)| writeln!(out, "{stack} {time}"))
}

fn stack_of(recording: &Recording, stack: u32) -> String {
    let code = &recording.code;
    let mut frames: Vec<String> = code.stack(stack).map(|frame| frame_of(&code.text(frame))).collect();
    frames.reverse();
    frames.join(";")
}

/// What separates frames and stacks in the format cannot be part of a frame.
fn frame_of(text: &FrameText) -> String {
    text.to_string().replace(';', ",").replace(['\n', '\r'], " ")
}
