//! The JSON of the gem gvl-tracing: Chrome's trace events, a pair for each state of a thread.

use std::io::{self, Write};

use serde_json::json;

use super::super::recording::Recording;
use super::super::timeline::{Life, State, Timeline};
use super::{labelled, pid};

/// The gem's name for a state, and for one that the gem does not know ours.
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

/// Writes the trace: one event a line, thread names last, as the gem does.
pub(super) fn write(recording: &Recording, timeline: &Timeline, out: &mut dyn Write) -> io::Result<()> {
    let pid = pid(recording);
    let runtime = recording.about("runtime").or_else(|| recording.about("language")).unwrap_or("unknown");
    let title = labelled(recording, &format!("Ruby threads view ({runtime})"));
    let process = json!({"ph": "M", "pid": pid, "name": "process_name", "args": {"name": title}});
    write!(out, "[\n  {process}")?;
    for life in &timeline.threads {
        write_thread(pid, life, out)?;
    }
    for life in &timeline.threads {
        let args = json!({"name": life.name});
        let named = json!({"ph": "M", "pid": pid, "tid": life.id, "name": "thread_name", "args": args});
        write!(out, ",\n  {named}")?;
    }
    out.write_all(b"\n]\n")
}

fn write_thread(pid: u32, life: &Life, out: &mut dyn Write) -> io::Result<()> {
    for (slice, end) in life.states() {
        let begin = json!({
            "ph": "B", "pid": pid, "tid": life.id, "ts": microseconds(slice.start), "name": name(slice.state),
        });
        let end = json!({"ph": "E", "pid": pid, "tid": life.id, "ts": microseconds(end)});
        write!(out, ",\n  {begin},\n  {end}")?;
    }
    Ok(())
}
