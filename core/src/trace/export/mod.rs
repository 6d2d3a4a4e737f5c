//! Traces in the formats of other tools.

mod firefox;
mod gvl_tracing;
mod perfetto;
mod proto;

use std::io::{self, Write};
use std::path::Path;

use super::analyze::recording::Recording;
use super::analyze::summary::Summary;
use super::analyze::timeline::Timeline;
use super::report::write_report;

/// A format that traces can be written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Perfetto's native trace, for ui.perfetto.dev: a track per thread, a counter of waiting
    /// threads, and arrows from who held a lock to who waited for it.
    Perfetto,
    /// The JSON that the gem gvl-tracing writes.
    GvlTracing,
    /// The Firefox Profiler's processed profile, for profiler.firefox.com.
    Firefox,
    /// The summary as JSON, times in nanoseconds.
    Json,
    /// The report page.
    Html,
}

impl Format {
    const ALL: [Self; 5] = [Self::Perfetto, Self::GvlTracing, Self::Firefox, Self::Json, Self::Html];

    /// The usual extension of files in this format, without a leading dot.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Perfetto => "pftrace",
            Self::GvlTracing => "gvl.json",
            Self::Firefox => "firefox.json",
            Self::Json => "json",
            Self::Html => "html",
        }
    }

    /// The format that a file's name stands for.
    pub fn of_path(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        Self::ALL.into_iter().find(|format| name.ends_with(&format!(".{}", format.extension())))
    }

    /// Writes a trace in this format.
    pub fn write(self, recording: &Recording, timeline: &Timeline, out: &mut dyn Write) -> io::Result<()> {
        match self {
            Self::Perfetto => perfetto::write(recording, timeline, out),
            Self::GvlTracing => gvl_tracing::write(recording, timeline, out),
            Self::Firefox => firefox::write(recording, timeline, out),
            Self::Html => write_report(recording, timeline, out),
            Self::Json => writeln!(out, "{}", Summary::of(recording, timeline).to_json()),
        }
    }
}

/// The number of the traced process.
fn pid(recording: &Recording) -> u32 {
    recording.about("pid").and_then(|pid| pid.parse().ok()).unwrap_or(1)
}

/// What to call the traced process. An estimate is called one.
fn process_name(recording: &Recording) -> String {
    let name = recording.about("command").or_else(|| recording.about("language"));
    labelled(recording, name.unwrap_or("program"))
}

fn labelled(recording: &Recording, name: &str) -> String {
    let label = if recording.is_estimate() { " (estimated from samples)" } else { "" };
    format!("{name}{label}")
}
