//! Traces, live numbers and marks of Ruby's lock. The Ruby half is `lib/offlock/lock/`.

mod dump;
mod events;
mod exclusion;
mod flight;
mod json;
mod stacks;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::cruby::thread::{Ractor, RubyThread};
use crate::region::without_the_lock;
use events::RactorName;
use flight::{Watch, duration};
use magnus::rb_sys::AsRawValue;
use magnus::value::ReprValue;
use magnus::{
    DataTypeFunctions, Error, Module, Object, RArray, RModule, Ruby, TryConvert, TypedData, Value, function,
    method,
};
use offlock_core::trace::{
    self, Capture, FlightRecorder, Format, Metric, Name, Options, Stand, Watched, metrics,
};

/// Runs `work`, which runs without the lock, so that a trace shows it as the named operation over `bytes` bytes.
///
/// The lock is held at the beginning and at the end.
pub(crate) fn off_the_lock<R>(operation: &str, bytes: usize, work: impl FnOnce() -> R) -> R {
    if !trace::is_tracing() {
        return work();
    }
    let thread = events::current();
    thread.region_begin(trace::now(), Name::of(operation));
    let result = work();
    thread.region_end(trace::now(), bytes as u64);
    result
}

/// Defines the private module `Offlock::Lock::Native`.
pub(crate) fn define(ruby: &Ruby, offlock: RModule) -> Result<(), Error> {
    events::prepare();
    exclusion::prepare();
    let native = offlock.define_module("Lock")?.define_module("Native")?;
    let recorder = native.define_class("Recorder", ruby.class_object())?;
    recorder.define_singleton_method("start", function!(Recorder::start, 5))?;
    recorder.define_singleton_method("from_environment", function!(Recorder::from_environment, 3))?;
    recorder.define_singleton_method("keep", function!(Recorder::keep, 5))?;
    recorder.define_singleton_method("publish", function!(Recorder::publish, 4))?;
    recorder.define_method("dump", method!(Recorder::dump, 2))?;
    recorder.define_method("dump_beside", method!(Recorder::dump_beside, 1))?;
    recorder.define_method("watch", method!(Recorder::watch, 3))?;
    recorder.define_method("memory", method!(Recorder::memory, 0))?;
    native.define_class("Watch", ruby.class_object())?.define_method("next", method!(Watch::next, 0))?;
    recorder.define_method("stop", method!(Recorder::stop, 1))?;
    recorder.define_method("summary", method!(Recorder::summary, 0))?;
    recorder.define_method("running?", method!(Recorder::is_running, 0))?;
    native.define_singleton_method("gc_point", function!(gc_point, 0))?;
    native.define_singleton_method("parsed", function!(json::parsed, 1))?;
    native.define_singleton_method("name_thread", function!(name_thread, 2))?;
    native.define_singleton_method("name_ractor", function!(name_ractor, 3))?;
    native.define_singleton_method("sleeps=", function!(set_sleeps, 1))?;
    native.define_singleton_method("mark_begin", function!(mark_begin, 1))?;
    native.define_singleton_method("mark_end", function!(mark_end, 1))?;
    native.define_singleton_method("enable", function!(enable, 2))?;
    native.define_singleton_method("disable", function!(disable, 1))?;
    native.define_singleton_method("enabled?", function!(is_enabled, 1))?;
    native.define_singleton_method("global_numbers", function!(global_numbers, 0))?;
    native.define_singleton_method("reset_global", function!(metrics::reset, 0))?;
    native.define_singleton_method("waiting", function!(metrics::waiting, 0))?;
    native.define_singleton_method("reset_waiting", function!(metrics::reset_waiting, 0))?;
    native.define_singleton_method("local_numbers", function!(local_numbers, 1))?;
    native.define_singleton_method("reset_local", function!(reset_local, 1))?;
    native.define_singleton_method("usage", function!(usage, 2))?;
    native.define_singleton_method("waits", function!(waits, 1))?;
    native.define_singleton_method("switched_off", function!(trace::switched_off, 0))?;
    native.define_singleton_method("live_requested?", function!(trace::is_live_requested, 0))?;
    native.define_singleton_method("exclusively", function!(exclusion::exclusively, 1))
}

/// Registers the hook for thread events. The lock is held, and `ractor` is the current Ractor.
fn watch(ractor: Value) {
    events::watch(Ractor::of(ractor));
}

/// A trace that is being recorded.
#[derive(TypedData)]
#[magnus(class = "Offlock::Lock::Native::Recorder", free_immediately)]
struct Recorder(Mutex<Capture>);

impl DataTypeFunctions for Recorder {}

/// A thread, its name, and whether it is waiting for the lock (`Thread#status` is "run").
type ThreadEntry = (Value, String, bool);

impl Recorder {
    /// Starts a trace into a file, or into memory without a path. Of the other tools' formats, only gvl-tracing's is
    /// selected by an argument instead of the file's name.
    fn start(
        ruby: &Ruby,
        (path, as_gvl_tracing): (Option<PathBuf>, bool),
        about: Vec<(String, String)>,
        threads: RArray,
        ractor: Value,
        (limit, stacks): (Option<u64>, Option<f64>),
    ) -> Result<Self, Error> {
        let stacks = stacks.map(|stacks| duration(ruby, "stacks", stacks)).transpose()?;
        let options = Options { about, limit, stacks };
        let format = as_gvl_tracing.then_some(Format::GvlTracing);
        Self::begin(ruby, threads, ractor, path.as_deref(), || match &path {
            Some(path) => Capture::to_file(path.clone(), format, &options),
            None => Capture::to_memory(&options),
        })
    }

    /// Starts the trace that `offlock trace` requested in the environment; nil if it requested none.
    fn from_environment(
        ruby: &Ruby,
        about: Vec<(String, String)>,
        threads: RArray,
        ractor: Value,
    ) -> Result<Option<Self>, Error> {
        if !trace::is_requested() {
            return Ok(None);
        }
        let options = Options { about, ..Options::default() };
        let nothing = || Err(std::io::Error::other("the environment names no trace"));
        let start = || Capture::from_environment(&options).unwrap_or_else(nothing);
        Self::begin(ruby, threads, ractor, None, start).map(Some)
    }

    fn begin(
        ruby: &Ruby,
        threads: RArray,
        ractor: Value,
        path: Option<&Path>,
        start: impl FnOnce() -> std::io::Result<Capture>,
    ) -> Result<Self, Error> {
        let started = |capture: std::io::Result<Capture>| {
            let capture = capture.map_err(|error| system_call_error(ruby, &error, path))?;
            Ok(Self(Mutex::new(capture)))
        };
        if trace::switched_off().is_some() {
            return started(start());
        }
        watch(ractor);
        stacks::prepare::<events::Sample>(ruby);
        let own = ruby.thread_current().as_raw();
        for entry in threads {
            let (thread, name, ready) = ThreadEntry::try_convert(entry)?;
            let stand = match ready {
                _ if thread.as_raw() == own => Stand::Holds,
                true => Stand::Wants,
                false => Stand::Off,
            };
            if let Some(thread) = RubyThread::of(thread) {
                events::name_thread(thread, &name, Some(stand));
            }
        }
        started(start())
    }

    /// Starts to keep the last seconds, so many in so many bytes.
    fn keep(
        ruby: &Ruby,
        about: Vec<(String, String)>,
        threads: RArray,
        ractor: Value,
        (stacks, kept): (Option<f64>, (f64, usize)),
        dumps: flight::Dumps,
    ) -> Result<Self, Error> {
        let flight = flight::options(ruby, kept, dumps)?;
        let stacks = stacks.map(|stacks| duration(ruby, "stacks", stacks)).transpose()?;
        let options = Options { about, limit: None, stacks };
        Self::begin(ruby, threads, ractor, None, || Capture::keep(&options, &flight))
    }

    /// Publishes this process, for clients that ask for a trace; they get stacks if `stacks` is not nil.
    fn publish(
        ruby: &Ruby,
        about: Vec<(String, String)>,
        threads: RArray,
        ractor: Value,
        stacks: Option<f64>,
    ) -> Result<Self, Error> {
        let stacks = stacks.map(|stacks| duration(ruby, "stacks", stacks)).transpose()?;
        let options = Options { about, limit: None, stacks };
        dump::prepare(ruby);
        Self::begin(ruby, threads, ractor, None, || Capture::publish(&options, dump::take))
    }

    /// Writes the last seconds to a file.
    ///
    /// Returns the numbers of events, of lost events and of bytes, or nil if nothing is kept.
    fn dump(
        ruby: &Ruby,
        this: &Self,
        path: PathBuf,
        threads: RArray,
    ) -> Result<Option<(u64, u64, u64)>, Error> {
        let Some(flight) = this.flight() else { return Ok(None) };
        name_all(ruby, threads)?;
        let stats = without_the_lock(|| flight.dump(&path));
        let stats = stats.map_err(|error| system_call_error(ruby, &error, Some(&path)))?;
        Ok(Some((stats.events, stats.lost, stats.bytes)))
    }

    /// Writes the last seconds to a file beside the recorder's path and returns its path; nil if it has none.
    fn dump_beside(ruby: &Ruby, this: &Self, threads: RArray) -> Result<Option<PathBuf>, Error> {
        let Some(flight) = this.flight() else { return Ok(None) };
        name_all(ruby, threads)?;
        let beside = |path| flight.dump_beside(path);
        let path = without_the_lock(|| flight.path().map(beside).transpose());
        path.map_err(|error| system_call_error(ruby, &error, None))
    }

    /// Watches for waits ("wait") or holds ("hold") of at least so many seconds, if `own` also for waits of offlock's own
    /// threads; nil if nothing is kept.
    fn watch(
        ruby: &Ruby,
        this: &Self,
        watched: String,
        seconds: f64,
        own: bool,
    ) -> Result<Option<Watch>, Error> {
        let watched = if watched == "wait" { Watched::Wait } else { Watched::Hold };
        let at_least = duration(ruby, "seconds", seconds)?;
        Ok(this.flight().map(|flight| Watch(flight.watch(watched, at_least, own))))
    }

    /// The number of bytes that the last seconds take; nil if none are kept.
    fn memory(&self) -> Option<usize> {
        self.flight().map(|flight| flight.memory())
    }

    fn flight(&self) -> Option<Arc<FlightRecorder>> {
        self.capture().flight().filter(|flight| flight.is_running())
    }

    /// Stops the trace; a second call changes nothing.
    ///
    /// Returns the numbers of events, of lost events and of bytes, or nil if the trace was stopped before or belongs to
    /// the process that this one was forked from.
    fn stop(ruby: &Ruby, this: &Self, threads: RArray) -> Result<Option<(u64, u64, u64)>, Error> {
        name_all(ruby, threads)?;
        let is_published = this.capture().is_published();
        let stop = || this.capture().stop();
        let stats = if is_published { without_the_lock(stop) } else { stop() };
        stacks::stopped();
        let stats = stats.map_err(|error| system_call_error(ruby, &error, None))?;
        Ok(stats.map(|stats| (stats.events, stats.lost, stats.bytes)))
    }

    /// The summary of a stopped trace into memory, as text and as JSON.
    fn summary(ruby: &Ruby, this: &Self) -> Result<Option<(String, String)>, Error> {
        let Some(summary) = this.capture().summary() else { return Ok(None) };
        match summary {
            Ok(summary) => Ok(Some((summary.to_text(), summary.to_json()))),
            Err(error) => Err(Error::new(ruby.exception_runtime_error(), error.to_string())),
        }
    }

    /// Returns whether this process is recording the trace.
    fn is_running(&self) -> bool {
        self.capture().is_running()
    }

    fn capture(&self) -> MutexGuard<'_, Capture> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Gives threads and the functions of their stacks their names.
fn name_all(ruby: &Ruby, threads: RArray) -> Result<(), Error> {
    for entry in threads {
        let (thread, name, _) = ThreadEntry::try_convert(entry)?;
        if let Some(thread) = RubyThread::of(thread) {
            events::name_thread(thread, &name, None);
        }
    }
    stacks::name_functions(ruby);
    Ok(())
}

/// The `Errno` exception of a failed system call, which names the path, and an IOError for other errors.
fn system_call_error(ruby: &Ruby, error: &std::io::Error, path: Option<&Path>) -> Error {
    let Some(code) = error.raw_os_error() else {
        return Error::new(ruby.exception_io_error(), error.to_string());
    };
    let class = ruby.exception_system_call_error();
    let exception: Result<magnus::Exception, Error> = match path {
        Some(path) => class.funcall("new", (path.display().to_string(), code)),
        None => class.funcall("new", (code,)),
    };
    exception.map_or_else(|error| error, Error::from)
}

fn gc_point() -> Value {
    events::gc_point().value()
}

fn name_thread(thread: Value, name: String) {
    if trace::is_active()
        && let Some(thread) = RubyThread::of(thread)
    {
        events::name_thread(thread, &name, None);
    }
}

fn name_ractor(ractor: Value, lock: String, threads: Option<String>) {
    if let Some(ractor) = Ractor::of(ractor) {
        events::name_ractor(ractor, RactorName { lock, threads });
    }
}

fn set_sleeps(sleeps: bool) {
    if trace::is_active() {
        events::set_sleeps(sleeps);
    }
}

fn mark_begin(name: String) {
    if trace::is_tracing() {
        events::current().mark_begin(trace::now(), Name::of(&name));
    }
}

fn mark_end(renamed: Option<String>) {
    if trace::is_tracing() {
        events::current().mark_end(trace::now(), renamed.as_deref().map(Name::of));
    }
}

fn metric(ruby: &Ruby, name: &str) -> Result<Metric, Error> {
    match name {
        "global" => Ok(Metric::Global),
        "local" => Ok(Metric::Local),
        "waiting" => Ok(Metric::Waiting),
        _ => Err(Error::new(ruby.exception_arg_error(), format!("no metric is called {name:?}"))),
    }
}

/// Starts a metric, unless tracing is switched off.
fn enable(ruby: &Ruby, name: String, ractor: Value) -> Result<(), Error> {
    let metric = metric(ruby, &name)?;
    if trace::switched_off().is_some() {
        return Ok(());
    }
    watch(ractor);
    metric.enable();
    Ok(())
}

fn disable(ruby: &Ruby, name: String) -> Result<(), Error> {
    metric(ruby, &name)?.disable();
    Ok(())
}

fn is_enabled(ruby: &Ruby, name: String) -> Result<bool, Error> {
    Ok(metric(ruby, &name)?.is_enabled())
}

/// The nanoseconds that all threads together have waited, and the number of acquisitions.
fn global_numbers() -> (u64, u64) {
    (metrics::waited(), metrics::acquisitions())
}

/// The recorder's thread of a Ruby thread, if it is known.
fn find(thread: Value) -> Option<&'static trace::Thread> {
    RubyThread::of(thread).and_then(events::find)
}

/// The nanoseconds that a thread has waited, its acquisitions and its releases; zeros for an unknown thread.
fn local_numbers(thread: Value) -> (u64, u64, u64) {
    let numbers = find(thread).map(|thread| thread.metrics()).unwrap_or_default();
    (numbers.waited, numbers.acquisitions, numbers.releases)
}

/// The nanoseconds that a thread has waited for the lock, was ready to run without a processor, and collected garbage.
fn usage(thread: Value, native_id: u32) -> (u64, u64, u64) {
    let waited = find(thread).map_or(0, |thread| thread.metrics().waited);
    let collected = RubyThread::of(thread).map_or(0, events::collected);
    (waited, trace::run_delay(native_id).unwrap_or(0), collected)
}

fn reset_local(thread: Value) {
    if let Some(thread) = find(thread) {
        thread.reset_metrics();
    }
}

/// The waits of all threads, or of one thread: pairs of a duration in nanoseconds and a count.
fn waits(thread: Option<Value>) -> Vec<(u64, u64)> {
    match thread {
        None => metrics::waits().0,
        Some(thread) => find(thread).map_or(Vec::new(), |thread| thread.waits().0),
    }
}
