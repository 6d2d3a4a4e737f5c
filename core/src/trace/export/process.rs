//! The traced process, as exports name it.

use crate::trace::analyze::recording::Recording;

/// The id of the traced process.
pub(super) fn pid(recording: &Recording) -> u32 {
    recording.about("pid").and_then(|pid| pid.parse().ok()).unwrap_or(1)
}

/// The name of the traced process, labelled if the trace is an estimate.
pub(super) fn process_name(recording: &Recording) -> String {
    let name = recording.about("command").or_else(|| recording.about("language"));
    labelled(recording, name.unwrap_or("program"))
}

/// `name`, labelled if the trace is an estimate.
pub(super) fn labelled(recording: &Recording, name: &str) -> String {
    let label = if recording.is_estimate() { " (estimated from samples)" } else { "" };
    format!("{name}{label}")
}
