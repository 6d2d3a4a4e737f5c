//! Traces as programs start them: into a file, into another tool's format, or into memory.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::analyze::recording::{NotATrace, Recording};
use super::analyze::summary::Summary;
use super::analyze::timeline::Timeline;
use super::environment::{flight_from_environment, switched_off};
use super::export::Format;
use super::files;
use super::flight_recorder::{FlightOptions, FlightRecorder};
#[cfg(unix)]
use super::live::{Publisher, TakeStacks};
use super::record::session::{Memory, Options, Trace};
use super::record::sink::Stats;
use crate::Task;

/// A trace that is being recorded, and what happens with it when it ends.
///
/// If tracing is [switched off](switched_off), it is one of nothing: it does not run, and no thread and no file belong
/// to it. The default is a capture of nothing, too.
#[derive(Default)]
pub struct Capture {
    trace: Option<Trace>,
    memory: Option<Memory>,
    export: Option<Export>,
    flight: Option<Arc<FlightRecorder>>,
    /// Where the last seconds are written at the end.
    end: Option<PathBuf>,
    #[cfg(unix)]
    publisher: Option<Publisher>,
}

/// An export to be written when the trace ends.
struct Export {
    format: Format,
    raw: PathBuf,
    path: PathBuf,
}

impl Capture {
    /// Records into a file, which replaces an existing one. If another tool's [`Format`] is asked for, or the
    /// file's name implies one (`app.pftrace`), that format is written at the end, from a trace beside it
    /// (`app.offlock`, or the first of `app-2.offlock`, … that does not exist), which is kept.
    ///
    /// # Errors
    ///
    /// Errors of creating the file, or of starting the recorder's thread.
    pub fn to_file(path: PathBuf, format: Option<Format>, options: &Options) -> io::Result<Self> {
        if switched_off().is_some() {
            return Ok(Self::default());
        }
        let Some(format) = format.or_else(|| Format::of_path(&path)) else {
            return Ok(Self { trace: Some(Trace::to_file(&path, options)?), ..Self::default() });
        };
        match format {
            // gvl-tracing creates its file at the start.
            Format::GvlTracing => files::write_named(&path, |out| out.write_all(b"[\n"))?,
            _ => files::check_named(&path)?,
        }
        let (file, raw) = files::create_beside(&path, "offlock")?;
        let trace = Trace::start(Box::new(file), options)?;
        Ok(Self { trace: Some(trace), export: Some(Export { format, raw, path }), ..Self::default() })
    }

    /// Records into memory.
    ///
    /// # Errors
    ///
    /// Errors of starting the recorder's thread.
    pub fn to_memory(options: &Options) -> io::Result<Self> {
        if let Some(reason) = switched_off() {
            return Ok(Self::of_nothing(options, reason));
        }
        let (trace, memory) = Trace::to_memory(options)?;
        Ok(Self { trace: Some(trace), memory: Some(memory), ..Self::default() })
    }

    /// An empty trace in memory, whose summary says why it is empty: a program that reads its summary goes on.
    fn of_nothing(options: &Options, reason: String) -> Self {
        let mut about = options.about.clone();
        about.extend([("exact".into(), "false".into()), ("obstacle".into(), reason)]);
        let mut memory = Memory::default();
        let written = memory.write_all(&Recording { about, ..Recording::default() }.to_bytes());
        debug_assert!(written.is_ok(), "memory takes everything");
        Self { memory: Some(memory), ..Self::default() }
    }

    /// Keeps the last seconds.
    ///
    /// # Errors
    ///
    /// As [`FlightRecorder::start`].
    pub fn keep(options: &Options, flight: &FlightOptions) -> io::Result<Self> {
        if switched_off().is_some() {
            return Ok(Self::default());
        }
        let flight = FlightRecorder::start(options, flight)?;
        Ok(Self { flight: Some(Arc::new(flight)), ..Self::default() })
    }

    /// Publishes this process: records nothing by itself, but a trace for each client that connects. `take_stacks` is
    /// called for each client that wants a dump instead.
    ///
    /// # Errors
    ///
    /// `AlreadyExists` if this process is published, errors of making the socket or of starting a thread.
    #[cfg(unix)]
    pub fn publish(options: &Options, take_stacks: TakeStacks) -> io::Result<Self> {
        if switched_off().is_some() {
            return Ok(Self::default());
        }
        Ok(Self { publisher: Some(Publisher::start(options, take_stacks)?), ..Self::default() })
    }

    /// Records into the file that the environment names, or keeps the last seconds and writes them there at the
    /// end; `None` if it names none. See [`Trace::from_environment`].
    pub fn from_environment(options: &Options) -> Option<io::Result<Self>> {
        if let Some(kept) = flight_from_environment(options) {
            return Some(kept.map(|(flight, end)| Self {
                flight: Some(Arc::new(flight)),
                end: Some(end),
                ..Self::default()
            }));
        }
        let started = Trace::from_environment(options)?;
        Some(started.map(|(trace, _)| Self { trace: Some(trace), ..Self::default() }))
    }

    /// The flight recorder, if the last seconds are kept.
    pub fn flight(&self) -> Option<Arc<FlightRecorder>> {
        self.flight.clone()
    }

    /// Whether this process is recording it.
    pub fn is_running(&self) -> bool {
        self.trace.as_ref().is_some_and(Trace::is_ours)
            || self.flight.as_ref().is_some_and(|flight| flight.is_running())
            || self.is_published()
    }

    /// Whether it is this process's publication. Then [`stop`](Self::stop) waits for connected clients, at most a
    /// second, so stop it without the interpreter's lock.
    pub fn is_published(&self) -> bool {
        #[cfg(unix)]
        return self.publisher.as_ref().is_some_and(Publisher::is_ours);
        #[cfg(not(unix))]
        false
    }

    /// Stops the trace. `None` if it was stopped before, or belongs to the process from which this one was
    /// forked.
    ///
    /// # Errors
    ///
    /// Errors of writing the trace or the export.
    pub fn stop(&mut self) -> io::Result<Option<Stats>> {
        #[cfg(unix)]
        drop(self.publisher.take());
        if let Some(flight) = self.flight.take() {
            return self.stop_keeping(&flight);
        }
        let Some(trace) = self.trace.take().filter(Trace::is_ours) else { return Ok(None) };
        let stats = trace.stop()?;
        if let Some(export) = self.export.take() {
            export.write()?;
        }
        Ok(Some(stats))
    }

    fn stop_keeping(&self, flight: &FlightRecorder) -> io::Result<Option<Stats>> {
        if !flight.is_running() {
            return Ok(None);
        }
        let stats = match &self.end {
            Some(path) => flight.dump(path),
            None => Ok(flight.kept()),
        };
        flight.stop();
        stats.map(Some)
    }

    /// The summary of a trace in memory, once it is stopped.
    pub fn summary(&self) -> Option<Result<Summary, NotATrace>> {
        let memory = self.memory.as_ref()?;
        Some(Recording::read(&memory.take(), &Task::new()).map(|recording| summarize(&recording)))
    }
}

fn summarize(recording: &Recording) -> Summary {
    Summary::of(recording, &Timeline::of(recording))
}

impl Export {
    fn write(&self) -> io::Result<()> {
        let recording = read(&self.raw)?;
        let timeline = Timeline::of(&recording);
        files::write_named(&self.path, |out| self.format.write(&recording, &timeline, out))
    }
}

fn read(path: &Path) -> io::Result<Recording> {
    Recording::read(&files::read(path)?, &Task::new()).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_stands_for_a_format_gets_that_format() {
        let folder = std::env::temp_dir().join(format!("offlock-capture-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("writable");
        let path = folder.join("app.json");
        let mut capture = Capture::to_file(path.clone(), None, &Options::default()).expect("writable");
        assert!(capture.is_running());
        assert!(capture.stop().expect("writable").is_some());
        assert!(!capture.is_running());
        assert_eq!(capture.stop().expect("nothing to do"), None);
        let summary = std::fs::read_to_string(&path).expect("was written");
        assert!(summary.contains("useful_parallelism"), "{summary}");
        assert!(read(&folder.join("app.offlock")).expect("a trace").damage.is_none());
        let mut second = Capture::to_file(path, None, &Options::default()).expect("writable");
        assert!(second.stop().expect("writable").is_some());
        assert!(
            read(&folder.join("app-2.offlock")).expect("a trace").damage.is_none(),
            "the first one's stays"
        );
        std::fs::remove_dir_all(&folder).expect("still there");
    }

    #[test]
    fn a_capture_of_nothing_has_a_summary_that_says_why() {
        let reason = "tracing is switched off by OFFLOCK_LOCK=off";
        let mut capture = Capture::of_nothing(&Options::default(), reason.into());
        assert!(!capture.is_running());
        assert_eq!(capture.stop().expect("nothing to do"), None);
        let summary = capture.summary().expect("in memory").expect("complete");
        assert_eq!((summary.threads.len(), &summary.damage), (0, &None));
        assert!(summary.to_text().contains(reason), "{}", summary.to_text());
    }

    #[test]
    fn a_trace_in_memory_can_be_summarised() {
        let mut capture = Capture::to_memory(&Options::default()).expect("memory");
        capture.stop().expect("memory");
        let summary = capture.summary().expect("in memory").expect("complete");
        assert_eq!(summary.damage, None);
    }
}
