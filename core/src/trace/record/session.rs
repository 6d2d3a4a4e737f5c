//! Starting and stopping traces, and the writer thread.

use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::after_fork::watch_forks;
use super::buffers::buffers;
use super::code::code_table;
use super::drain::{Drain, drain};
use super::mode::TRACING;
use super::registry::{registry, switch_off};
use super::sink::{Sink, Stats};
use super::usage::{self, Meter};
use crate::fork::lock;
use crate::trace::files;
use crate::{clock, os, processors};

/// The options of a trace.
#[derive(Debug, Clone)]
pub struct Options {
    /// The description of the program in the file, in this order: `language`, `runtime`, `command`, … The
    /// recorder adds `pid`, `parent`, `clock`, `started`, `start`, `offlock`, `processors` and, if stacks are
    /// recorded, `stacks`: after how many nanoseconds.
    pub about: Vec<(String, String)>,
    /// The greatest size of the file; further events are counted as lost.
    pub limit: Option<u64>,
    /// Feeds record stacks once a thread has waited this long for a lock; never if this is `None`.
    pub stacks: Option<Duration>,
}

/// The default of [`Options::stacks`].
pub(in crate::trace) const STACKS_AFTER: Duration = Duration::from_millis(1);

impl Default for Options {
    fn default() -> Self {
        Self { about: Vec::new(), limit: None, stacks: Some(STACKS_AFTER) }
    }
}

/// A trace that is being recorded. Several may be recorded at the same time.
///
/// Dropping it stops it. It has no effect in the child of a fork, which never writes to it.
pub struct Trace {
    number: u64,
    drain: &'static Mutex<Drain>,
}

static NEXT: AtomicU64 = AtomicU64::new(1);

impl Trace {
    /// Starts a trace into a file that the user has named, which replaces an existing one.
    ///
    /// # Errors
    ///
    /// Errors of creating the file, or of starting the writer thread.
    pub fn to_file(path: &Path, options: &Options) -> io::Result<Self> {
        Self::start(Box::new(files::replace(path)?), options)
    }

    /// Starts a trace into memory.
    ///
    /// # Errors
    ///
    /// Errors of starting the writer thread.
    pub fn to_memory(options: &Options) -> io::Result<(Self, Memory)> {
        let memory = Memory::default();
        Ok((Self::start(Box::new(memory.clone()), options)?, memory))
    }

    /// Starts a trace into any writer. It is written to by the recorder's thread and, at the end, by the
    /// thread that stops the trace.
    ///
    /// # Errors
    ///
    /// Errors of writing the beginning, or of starting the writer thread.
    pub fn start(out: Box<dyn Write + Send>, options: &Options) -> io::Result<Self> {
        Self::start_until(out, options, None)
    }

    /// As [`start`](Self::start), but the recorder ends the trace by itself at a time of the monotonic clock, in
    /// nanoseconds. It still has to be stopped.
    pub(in crate::trace) fn start_until(
        out: Box<dyn Write + Send>,
        options: &Options,
        until: Option<u64>,
    ) -> io::Result<Self> {
        watch_forks();
        let shared = drain();
        let mut drain = lock(shared);
        buffers().pool.reserve();
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let mut sink = Sink::new(number, out, options.limit.unwrap_or(u64::MAX), options.stacks);
        sink.until = until.unwrap_or(u64::MAX);
        if !drain.is_driven {
            drain.meter = Meter::default();
            std::thread::Builder::new().name("offlock-trace".into()).spawn(move || drive(shared))?;
            drain.is_driven = true;
        }
        drain.pass();
        let about = about(options);
        code_table().begin();
        let begun =
            sink.begin(buffers().lost(), &about, &registry().definitions(), &code_table().definitions());
        match begun {
            Ok(()) => {
                sink.put_events(&usage::frame_of_process(), 0);
                drain.sinks.push(sink);
            }
            Err(_) => switch_off_unless_needed(&drain),
        }
        drain.set_stacks_after();
        begun.map(|()| Self { number, drain: shared })
    }

    /// Stops the trace and completes the file.
    ///
    /// # Errors
    ///
    /// The first error of writing the trace; an error if the trace belongs to the parent of a fork.
    pub fn stop(self) -> io::Result<Stats> {
        let stopped = self.finish();
        std::mem::forget(self);
        stopped.unwrap_or_else(|| Err(io::Error::other("the trace belongs to the parent process")))
    }

    /// Whether the trace is this process's own, not its parent's.
    pub fn is_ours(&self) -> bool {
        std::ptr::eq(self.drain, drain())
    }

    fn finish(&self) -> Option<io::Result<Stats>> {
        if !self.is_ours() {
            return None;
        }
        let mut drain = lock(self.drain);
        drain.meter.finish();
        let (_, time) = drain.pass();
        let Some(index) = drain.sinks.iter().position(|sink| sink.number == self.number) else {
            let ended = drain.ended.iter().position(|(number, _)| *number == self.number)?;
            return Some(drain.ended.swap_remove(ended).1);
        };
        let sink = drain.sinks.swap_remove(index);
        drain.set_stacks_after();
        switch_off_unless_needed(&drain);
        Some(sink.end(time, buffers().lost()))
    }
}

/// Writes everything recorded so far to all traces. Returns the time up to which they are complete.
pub(in crate::trace) fn catch_up() -> u64 {
    lock(drain()).pass().1
}

fn switch_off_unless_needed(drain: &Drain) {
    if drain.sinks.is_empty() {
        switch_off(TRACING);
        code_table().clear();
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        self.finish();
    }
}

/// The bytes of a trace into memory.
#[derive(Clone, Default)]
pub struct Memory(Arc<Mutex<Vec<u8>>>);

impl Memory {
    /// Takes the bytes.
    pub fn take(&self) -> Vec<u8> {
        std::mem::take(&mut lock(&self.0))
    }

    /// The number of bytes written so far.
    pub fn len(&self) -> usize {
        lock(&self.0).len()
    }

    /// Whether nothing was written so far.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        lock(&self.0).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn about(options: &Options) -> Vec<(String, String)> {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let ours = [
        ("pid", std::process::id().to_string()),
        ("parent", os::parent_process_id().to_string()),
        ("clock", clock::source().to_owned()),
        ("started", since_epoch.as_nanos().to_string()),
        ("start", os::monotonic_nanoseconds().to_string()),
        ("offlock", env!("CARGO_PKG_VERSION").to_owned()),
    ];
    let processors = processors::allowed().map(|count| ("processors", count.to_string()));
    let stacks = options.stacks.map(|wait| ("stacks", wait.as_nanos().to_string()));
    let ours = ours.into_iter().chain(processors).chain(stacks).map(|(key, value)| (key.to_owned(), value));
    options.about.iter().cloned().chain(ours).collect()
}

/// The writer thread: drains the queues until the last trace has been stopped.
fn drive(shared: &'static Mutex<Drain>) {
    os::block_signals();
    loop {
        let mut drain = lock(shared);
        if drain.sinks.is_empty() {
            drain.is_driven = false;
            return;
        }
        let (events, time) = drain.pass();
        drain.end_overdue(time);
        switch_off_unless_needed(&drain);
        drop(drain);
        std::thread::sleep(Drain::pause(events));
    }
}
