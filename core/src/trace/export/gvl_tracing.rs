//! The JSON of the gem gvl-tracing: Chrome's trace events, with a begin and an end event for each state of a
//! thread. That of a wait has the thread that held the lock meanwhile, its mark and its code, as arguments.

use std::io::{self, Write};

use serde_json::{Value, json};

use super::holders::Holders;
use super::process::{labelled, pid};
use crate::trace::analyze::blamed_code::blamed_pieces;
use crate::trace::analyze::recording::Recording;
use crate::trace::analyze::timeline::{Life, State, Timeline};
use crate::trace::format::event::Kind;

/// The gem's name for a state, or our own for states that the gem does not know.
fn name(state: State) -> &'static str {
    match state {
        State::Running => "running",
        State::Waiting => "wants_gvl",
        State::Idle => "waiting",
        State::Sleep => "sleeping",
        State::OffLock => "off_lock",
        State::Gc => "gc",
    }
}

fn microseconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1_000.0
}

/// Writes the trace, one event a line.
pub(super) fn write(recording: &Recording, timeline: &Timeline, out: &mut dyn Write) -> io::Result<()> {
    let pid = pid(recording);
    let runtime = recording.about("runtime").or_else(|| recording.about("language")).unwrap_or("unknown");
    let title = labelled(recording, &format!("Ruby threads view ({runtime})"));
    let process = json!({"ph": "M", "pid": pid, "name": "process_name", "args": {"name": title}});
    write!(out, "[\n  {process}")?;
    let pieces = blamed_pieces(recording, timeline);
    let mut holders = Holders::new(recording, timeline, &pieces);
    for life in &timeline.threads {
        write_thread(recording, life, &mut holders, out)?;
    }
    out.write_all(b"\n]\n")
}

/// As in the gem's files, on which programs rely, the start of a thread comes first and its end last. So the
/// thread's name, whose position does not matter, is between them.
fn write_thread(
    recording: &Recording,
    life: &Life,
    holders: &mut Holders<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let pid = pid(recording);
    if happened(recording, life, Kind::ThreadStart) {
        write_pair(pid, life.id, begin("started", life.start), life.start, out)?;
    }
    let args = json!({"name": life.name});
    let named = json!({"ph": "M", "pid": pid, "tid": life.id, "name": "thread_name", "args": args});
    write!(out, ",\n  {named}")?;
    for (slice, end) in life.states() {
        let mut event = begin(name(slice.state), slice.start);
        if let Some(holder) = holders.of(slice, end).map(|holder| holders.named(holder)) {
            let args =
                [("held_by", Some(holder.thread.to_owned())), ("mark", holder.mark), ("code", holder.code)];
            event["args"] = args.into_iter().filter_map(|(key, value)| Some((key, value?))).collect();
        }
        write_pair(pid, life.id, event, end, out)?;
    }
    if happened(recording, life, Kind::ThreadEnd) {
        write_pair(pid, life.id, begin("died", life.end), life.end, out)?;
    }
    Ok(())
}

fn begin(name: &str, time: u64) -> Value {
    json!({"ph": "B", "ts": microseconds(time), "name": name})
}

fn write_pair(pid: u32, tid: u32, mut begin: Value, end: u64, out: &mut dyn Write) -> io::Result<()> {
    (begin["pid"], begin["tid"]) = (pid.into(), tid.into());
    let end = json!({"ph": "E", "pid": pid, "tid": tid, "ts": microseconds(end)});
    write!(out, ",\n  {begin},\n  {end}")
}

/// Whether the recording saw the thread begin, or end.
fn happened(recording: &Recording, life: &Life, kind: Kind) -> bool {
    let thread = recording.threads.get(&life.id);
    thread.is_some_and(|thread| thread.moments.iter().any(|moment| moment.kind == kind))
}
