//! A flight recorder: keeps the last seconds in bounded memory, writes them when asked or when a thread waits
//! for the lock or holds it for too long, and tells watches about such waits and holds.
//!
//! The recorder's own thread only copies frames into the [`Ring`]. Everything else happens on threads that are
//! there for it: one that writes dumps by itself, if there is a reason to, and those that ask a [`Watch`].

mod shared;
#[cfg(test)]
mod tests;
mod watch;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use self::shared::Shared;
use self::watch::LOOK_EVERY;
pub use self::watch::{Alarm, Watch};
use super::files;
use super::record::lock_watch::Watched;
use super::record::ring::Ring;
use super::record::session::{Options, Trace};
use super::record::sink::Stats;
use crate::fork::lock;
use crate::os;

/// What a flight recorder keeps, and when it writes that by itself.
#[derive(Debug, Clone)]
pub struct FlightOptions {
    /// How much of the past it keeps.
    pub keep: Duration,
    /// The most bytes that it takes; it keeps less of the past if that is not enough. At least
    /// [`LEAST_MEMORY`](Self::LEAST_MEMORY). If the names of the program's threads, functions and marks take more
    /// than three quarters of it, the rest of them is in addition.
    pub memory: usize,
    /// Where it writes dumps by itself: `app.offlock`, then `app-2.offlock`, … It never replaces a file.
    pub path: Option<PathBuf>,
    /// It writes a dump when a thread has waited for the lock for so long.
    pub wait: Option<Duration>,
    /// It writes a dump when a thread has held the lock for so long while another one waited.
    pub hold: Option<Duration>,
    /// The least time between two dumps that it writes by itself.
    pub interval: Duration,
    /// The most dumps that it writes by itself.
    pub most: u32,
}

impl FlightOptions {
    /// The least [`memory`](Self::memory): a few frames have to fit.
    pub const LEAST_MEMORY: usize = 1 << 20;
}

impl Default for FlightOptions {
    /// 30 seconds in at most 64 MiB; at most 10 dumps by itself, one in a minute.
    fn default() -> Self {
        Self {
            keep: Duration::from_secs(30),
            memory: 64 << 20,
            path: None,
            wait: None,
            hold: None,
            interval: Duration::from_secs(60),
            most: 10,
        }
    }
}

/// A recording of the last seconds. Dropping it stops it.
///
/// It has no effect in the child of a fork, which starts one of its own.
pub struct FlightRecorder {
    trace: Mutex<Option<Trace>>,
    shared: Arc<Shared>,
    writer: Mutex<Option<std::thread::JoinHandle<()>>>,
    path: Option<PathBuf>,
}

impl FlightRecorder {
    /// Starts recording.
    ///
    /// # Errors
    ///
    /// `InvalidInput` if the memory is less than [`FlightOptions::LEAST_MEMORY`], or if there is a reason to
    /// write dumps but no path; errors of starting a thread.
    pub fn start(options: &Options, flight: &FlightOptions) -> io::Result<Self> {
        let invalid = |text: String| io::Error::new(io::ErrorKind::InvalidInput, text);
        if flight.memory < FlightOptions::LEAST_MEMORY {
            let least = FlightOptions::LEAST_MEMORY;
            return Err(invalid(format!("a memory of {} bytes is less than {least}", flight.memory)));
        }
        let writes = flight.wait.or(flight.hold).is_some();
        if writes && flight.path.is_none() {
            return Err(invalid("it is to write dumps by itself, but has no path for them".into()));
        }
        let ring = Ring::new(flight.keep, flight.memory);
        let trace = Trace::start(Box::new(ring.clone()), options)?;
        let shared = Arc::new(Shared::new(ring));
        let recorder = Self {
            trace: Mutex::new(Some(trace)),
            shared,
            writer: Mutex::new(None),
            path: flight.path.clone(),
        };
        if writes {
            let (shared, flight) = (Arc::clone(&recorder.shared), flight.clone());
            let builder = std::thread::Builder::new().name("offlock-dump".into());
            *lock(&recorder.writer) = Some(builder.spawn(move || write_dumps(&shared, &flight))?);
        }
        Ok(recorder)
    }

    /// Writes the last seconds to a file that the user has named. The recording goes on.
    ///
    /// # Errors
    ///
    /// Errors of writing the file, which then stays as it was; an error if the recorder has stopped or
    /// belongs to the parent of a fork.
    pub fn dump(&self, path: &Path) -> io::Result<Stats> {
        if !self.is_running() {
            return Err(io::Error::other("the flight recorder does not run in this process"));
        }
        let dump = self.shared.last_seconds();
        files::write_named(path, |out| dump.write(out))?;
        Ok(dump.stats())
    }

    /// Writes the last seconds to the first of the files `app.offlock`, `app-2.offlock`, … that does not exist,
    /// and returns its path. The recording goes on.
    ///
    /// # Errors
    ///
    /// As [`dump`](Self::dump).
    pub fn dump_beside(&self, path: &Path) -> io::Result<PathBuf> {
        self.shared.dump_beside(path)
    }

    /// The size of the trace that [`dump`](Self::dump) would write now.
    pub fn kept(&self) -> Stats {
        self.shared.last_seconds().stats()
    }

    /// Where dumps are written that nobody names.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Watches for waits or holds of at least this time. `counts_own` is whether waits of offlock's own threads count.
    pub fn watch(&self, watched: Watched, at_least: Duration, counts_own: bool) -> Watch {
        Watch::new(&self.shared, watched, at_least, counts_own)
    }

    /// Whether it is recording, in this process.
    pub fn is_running(&self) -> bool {
        self.shared.is_ours() && lock(&self.trace).is_some()
    }

    /// The number of bytes that the kept events take.
    pub fn memory(&self) -> usize {
        self.shared.ring.size()
    }

    /// The number of dumps that it has written by itself.
    pub fn written(&self) -> u32 {
        self.shared.written.load(Ordering::Relaxed)
    }

    /// Whether a dump could not be written by itself. The reason is on the standard error.
    pub fn has_failed(&self) -> bool {
        self.shared.has_failed.load(Ordering::Relaxed)
    }

    /// Stops recording. A second call changes nothing.
    pub fn stop(&self) {
        if !self.shared.is_ours() {
            return;
        }
        let trace = lock(&self.trace).take();
        drop(trace);
        self.shared.stop();
        if let Some(writer) = lock(&self.writer).take() {
            let _ = writer.join();
        }
    }
}

impl Drop for FlightRecorder {
    fn drop(&mut self) {
        if self.shared.is_ours() {
            self.stop();
        } else if let Ok(writer) = self.writer.get_mut() {
            // The thread does not exist in the child, where its number may be that of another thread by now, which
            // would be detached.
            std::mem::forget(writer.take());
        }
    }
}

/// Writes dumps until the recorder stops or has written the most.
fn write_dumps(shared: &Arc<Shared>, flight: &FlightOptions) {
    os::block_signals();
    let Some(path) = &flight.path else { return };
    let reasons = [(Watched::Wait, flight.wait), (Watched::Hold, flight.hold)];
    let watches: Vec<Watch> = reasons
        .into_iter()
        .filter_map(|(watched, at_least)| Some(Watch::new(shared, watched, at_least?, false)))
        .collect();
    while shared.written.load(Ordering::Relaxed) < flight.most && shared.sleep(LOOK_EVERY) {
        // Each watch has to look, so that it forgets what it has seen.
        let alarms: Vec<_> = watches.iter().filter_map(|watch| watch.look().pop()).collect();
        let Some(alarm) = alarms.first() else { continue };
        // The events of the cause's end belong into the dump, if it ends soon.
        let is_running = shared.sleep(LOOK_EVERY * 2);
        match shared.dump_beside(path) {
            Ok(file) => {
                shared.written.fetch_add(1, Ordering::Relaxed);
                eprintln!("offlock: {alarm}; the last seconds are in {}", file.display());
            }
            Err(error) => {
                shared.has_failed.store(true, Ordering::Relaxed);
                let path = path.display();
                eprintln!("offlock: {alarm}; the last seconds could not be written to {path}: {error}");
            }
        }
        if !is_running || !shared.sleep(flight.interval) {
            return;
        }
        watches.iter().for_each(|watch| drop(watch.look()));
    }
}
