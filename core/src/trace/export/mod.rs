//! Export of traces in the formats of other tools.
//!
//! Each format is a file of its own that writes from the [`Timeline`].

mod collapsed;
mod firefox;
mod firefox_samples;
mod gvl_tracing;
mod holders;
mod json;
mod numbered;
mod perfetto;
mod perfetto_stacks;
mod process;
mod proto;
mod speedscope;

use std::io::{self, Write};
use std::path::Path;

use super::analyze::recording::Recording;
use super::analyze::timeline::Timeline;
use super::report::write_report;

/// A format that traces can be written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Perfetto's native trace, for ui.perfetto.dev: a track per thread, a counter of waiting threads, and
    /// arrows from the previous holder of a lock to the thread that waited for it.
    Perfetto,
    /// The JSON of the gem gvl-tracing.
    GvlTracing,
    /// The Firefox Profiler's processed profile, for profiler.firefox.com.
    Firefox,
    /// The stacks that others waited for, for speedscope.app: how long they waited, and which code of each thread
    /// held the lock when.
    Speedscope,
    /// The stacks that others waited for, one per line: the input of flame graph tools.
    Collapsed,
    /// The summary as JSON, times in nanoseconds, with the stacks of the threads that held the lock.
    Json,
    /// The report page.
    Html,
}

impl Format {
    const ALL: [Self; 7] = [
        Self::Perfetto,
        Self::GvlTracing,
        Self::Firefox,
        Self::Speedscope,
        Self::Collapsed,
        Self::Json,
        Self::Html,
    ];

    /// The usual extension of files in this format, without a leading dot.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Perfetto => "pftrace",
            Self::GvlTracing => "gvl.json",
            Self::Firefox => "firefox.json",
            Self::Speedscope => "speedscope.json",
            Self::Collapsed => "folded",
            Self::Json => "json",
            Self::Html => "html",
        }
    }

    /// The format that a file's name implies.
    pub fn of_path(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        Self::ALL.into_iter().find(|format| name.ends_with(&format!(".{}", format.extension())))
    }

    /// Writes a trace in this format.
    ///
    /// # Errors
    ///
    /// Errors of `out`.
    pub fn write(self, recording: &Recording, timeline: &Timeline, out: &mut dyn Write) -> io::Result<()> {
        match self {
            Self::Perfetto => perfetto::write(recording, timeline, out),
            Self::GvlTracing => gvl_tracing::write(recording, timeline, out),
            Self::Firefox => firefox::write(recording, timeline, out),
            Self::Html => write_report(&[(recording, timeline)], out),
            Self::Speedscope => speedscope::write(recording, timeline, out),
            Self::Collapsed => collapsed::write(recording, timeline, out),
            Self::Json => json::write(recording, timeline, out),
        }
    }
}
