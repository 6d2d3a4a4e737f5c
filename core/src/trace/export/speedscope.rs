//! speedscope's own JSON: profiles for <https://www.speedscope.app>.
//!
//! The first profile of each lock has, for each stack, how long other threads waited while the lock's holder had it.
//! A profile per thread follows, on the recording's axis of time: which code held the lock when, as far as that is
//! known. All numbers are nanoseconds.

use std::io::{self, Write};

use serde::Serialize;

use super::numbered::Numbered;
use super::process::process_name;
use crate::trace::analyze::blamed_code::{Piece, blamed_pieces, by_thread};
use crate::trace::analyze::code::FrameText;
use crate::trace::analyze::recording::Recording;
use crate::trace::analyze::timeline::{Life, LockLife, Timeline};

const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";
const UNIT: &str = "nanoseconds";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct File {
    #[serde(rename = "$schema")]
    schema: &'static str,
    exporter: String,
    name: String,
    active_profile_index: usize,
    shared: Shared,
    profiles: Vec<Profile>,
}

#[derive(Serialize)]
struct Shared {
    frames: Vec<Frame>,
}

#[derive(Serialize)]
struct Frame {
    name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    file: String,
    #[serde(skip_serializing_if = "is_zero")]
    line: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(line: &u32) -> bool {
    *line == 0
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase", rename_all_fields = "camelCase")]
enum Profile {
    Sampled {
        name: String,
        unit: &'static str,
        start_value: u64,
        end_value: u64,
        /// Frames by number, outermost first.
        samples: Vec<Vec<usize>>,
        weights: Vec<u64>,
    },
    Evented {
        name: String,
        unit: &'static str,
        start_value: u64,
        end_value: u64,
        events: Vec<Event>,
    },
}

#[derive(Serialize)]
struct Event {
    #[serde(rename = "type")]
    kind: EventKind,
    at: u64,
    frame: usize,
}

#[derive(Serialize, Clone, Copy)]
enum EventKind {
    #[serde(rename = "O")]
    Open,
    #[serde(rename = "C")]
    Close,
}

/// Writes the profiles.
pub(super) fn write(recording: &Recording, timeline: &Timeline, out: &mut dyn Write) -> io::Result<()> {
    let pieces = blamed_pieces(recording, timeline);
    let mut frames = Frames { recording, numbers: Numbered::default() };
    let of_locks = timeline.locks.iter().map(|lock| lost(lock, &pieces, &mut frames));
    let mut profiles: Vec<Profile> = of_locks.collect();
    let of_threads = timeline.threads.iter().zip(by_thread(timeline, pieces));
    let of_threads = of_threads.filter(|(_, pieces)| !pieces.is_empty());
    profiles.extend(of_threads.map(|(life, pieces)| held(life, &pieces, &mut frames)));
    let file = File {
        schema: SCHEMA,
        exporter: format!("offlock {}", env!("CARGO_PKG_VERSION")),
        name: process_name(recording),
        active_profile_index: 0,
        shared: Shared { frames: frames.finish() },
        profiles,
    };
    serde_json::to_writer(&mut *out, &file)?;
    out.write_all(b"\n")
}

/// Numbers frames.
struct Frames<'a> {
    recording: &'a Recording,
    numbers: Numbered<FrameText>,
}

impl Frames<'_> {
    /// The numbers of a stack's frames, outermost first.
    fn of(&mut self, stack: u32) -> Vec<usize> {
        let code = &self.recording.code;
        let mut frames: Vec<usize> =
            code.stack(stack).map(|frame| self.numbers.number(code.text(frame))).collect();
        frames.reverse();
        frames
    }

    fn finish(self) -> Vec<Frame> {
        let frame = |text: &FrameText| Frame {
            name: text.function.clone(),
            file: text.file.clone(),
            line: text.line,
        };
        self.numbers.rows().iter().map(frame).collect()
    }
}

/// How long others waited for a lock, by the stack of its holder.
fn lost(lock: &LockLife, pieces: &[Piece], frames: &mut Frames<'_>) -> Profile {
    let of_lock = || pieces.iter().filter(|piece| piece.lock == lock.id && piece.lost > 0);
    Profile::Sampled {
        name: format!("time others waited for {}", lock.name),
        unit: UNIT,
        start_value: 0,
        end_value: of_lock().map(|piece| piece.lost).sum(),
        samples: of_lock().map(|piece| frames.of(piece.stack)).collect(),
        weights: of_lock().map(|piece| piece.lost).collect(),
    }
}

/// Which code of a thread held a lock.
fn held(life: &Life, pieces: &[Piece], frames: &mut Frames<'_>) -> Profile {
    let mut open = Open::default();
    for piece in pieces {
        open.change(open.since.max(piece.start), &frames.of(piece.stack), piece.hold);
        open.since = open.since.max(piece.end);
    }
    open.change(open.since, &[], u64::MAX);
    Profile::Evented {
        name: format!("{}: what held the lock", life.name),
        unit: UNIT,
        start_value: life.start,
        end_value: life.end.max(open.since),
        events: open.events,
    }
}

/// The frames that are open, outermost first.
#[derive(Default)]
struct Open {
    frames: Vec<usize>,
    hold: u64,
    /// Until when they are known to be.
    since: u64,
    events: Vec<Event>,
}

impl Open {
    /// Goes over to the frames of a piece that begins at a time. Those that it has in common with the piece before
    /// stay open, if both are of the same hold.
    fn change(&mut self, at: u64, frames: &[usize], hold: u64) {
        let same = self.frames.iter().zip(frames).take_while(|(a, b)| a == b).count();
        let same = if self.hold == hold { same } else { 0 };
        let closed = self.frames.drain(same..).rev().collect::<Vec<_>>();
        let until = self.since;
        self.events.extend(closed.into_iter().map(|frame| Event {
            kind: EventKind::Close,
            at: until,
            frame,
        }));
        let opened = &frames[same..];
        self.events.extend(opened.iter().map(|frame| Event { kind: EventKind::Open, at, frame: *frame }));
        self.frames.extend(opened);
        self.hold = hold;
    }
}
