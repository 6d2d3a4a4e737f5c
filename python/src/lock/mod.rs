//! Observes CPython's lock: traces, live numbers and marks. The Python half is `offlock/lock/`.

#![cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "the hooks are what calls the feed"))]

mod dump;
pub(crate) mod feed;
mod flight;
#[cfg(all(target_os = "linux", Py_GIL_DISABLED))]
pub(crate) mod parked;
mod permission;
pub(crate) mod region_events;
mod samples;
pub(crate) mod waiters;
mod without_lock;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;

use flight::Watch;
use offlock_core::trace::{
    self, Capture, FlightOptions, FlightRecorder, Metric, Name, Options, Waits, Watched, metrics,
};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

#[cfg(target_os = "linux")]
use crate::cpython::gil_hooks as hooks;
use crate::cpython::gil_slot;
#[cfg(target_os = "linux")]
use crate::cpython::known_functions;
use crate::cpython::object;
use crate::cpython::sequence::{Container, SequenceBuilder};
#[cfg(target_os = "linux")]
use crate::cpython::thread_stacks;
use crate::cpython::threads;
use crate::error::WithMessage;
use crate::objects::{Int, Text, tuple};

/// Replaces the hooks on systems that have none.
#[cfg(not(target_os = "linux"))]
mod hooks {
    pub(super) fn install(_py: pyo3::Python<'_>) -> Result<(), String> {
        Err("watching the lock needs Linux".into())
    }

    pub(super) fn prepare_stacks(_py: pyo3::Python<'_>) -> Result<(), String> {
        Err("recording stacks needs Linux".into())
    }

    pub(super) fn uninstall() {}

    pub(super) fn after_fork_in_child() {}
}

/// Redirects the interpreter's calls if needed; the calling thread holds the lock. The error says why it cannot
/// or must not be watched.
fn watch(py: Python<'_>) -> Result<(), String> {
    if let Some(reason) = trace::switched_off() {
        return Err(reason);
    }
    permission::given()?;
    hooks::install(py)
}

/// Restores the interpreter's calls when nothing is recorded any more.
fn unwatch() {
    if !trace::is_active() {
        hooks::uninstall();
        without_lock::unwatch();
    }
}

/// Registers the handlers for forks, once. Called while the extension is loaded.
fn watch_forks() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        trace::watch_forks();
        trace::after_fork_in_child(after_fork_in_child);
    });
}

extern "C" fn after_fork_in_child() {
    hooks::after_fork_in_child();
    #[cfg(target_os = "linux")]
    known_functions::after_fork_in_child();
    feed::after_fork_in_child();
    without_lock::after_fork_in_child();
}

/// A thread's native id and name, as `threading` knows them.
type ThreadName = (u32, String);

/// A trace that is being recorded. It is taken out while it is being stopped, which continues without the
/// interpreter's lock.
#[pyclass(module = "offlock._offlock.lock", frozen)]
struct Recorder(Mutex<Option<Capture>>);

impl Recorder {
    fn capture(&self) -> MutexGuard<'_, Option<Capture>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn flight(&self) -> Option<Arc<FlightRecorder>> {
        self.capture().as_ref().and_then(Capture::flight).filter(|flight| flight.is_running())
    }
}

#[pymethods]
impl Recorder {
    /// Starts a trace into a file, or into memory when there is no path. Where the lock cannot be watched it records
    /// what a `Sampler` estimates.
    ///
    /// `about`: the description of the program in the file, in order. `threads`: the existing threads. `limit`:
    /// the maximum number of bytes to write. `stacks`: after how many seconds of waiting stacks are recorded, None
    /// if never. Raises OSError when the file cannot be written.
    #[new]
    #[pyo3(signature = (path, about, threads, limit=None, stacks=None))]
    fn start(
        py: Python<'_>,
        path: Option<PathBuf>,
        about: Vec<(String, String)>,
        threads: Vec<ThreadName>,
        limit: Option<u64>,
        stacks: Option<f64>,
    ) -> PyResult<Self> {
        let stacks = stacks.map(|stacks| duration("stacks", stacks)).transpose()?;
        begin(py, about, (limit, stacks), &threads, |options| match path {
            Some(path) => Capture::to_file(path, None, options),
            None => Capture::to_memory(options),
        })
    }

    /// Starts the trace that `offlock trace` requested in the environment; None when it did not.
    #[staticmethod]
    fn from_environment(
        py: Python<'_>,
        about: Vec<(String, String)>,
        threads: Vec<ThreadName>,
    ) -> PyResult<Option<Self>> {
        if !trace::is_requested() {
            return Ok(None);
        }
        let nothing = || Err(std::io::Error::other("the environment names no trace"));
        let start = |options: &Options| Capture::from_environment(options).unwrap_or_else(nothing);
        begin(py, about, (None, Options::default().stacks), &threads, start).map(Some)
    }

    /// Starts to keep the last seconds.
    ///
    /// `about`, `threads`, `stacks`: as for a trace. `kept`: how many seconds in how many bytes. `dumps`: the path to
    /// which they are written once a thread has waited for the lock for so many seconds, or has held it for so many
    /// while another one waited; the least number of seconds between two files, and the most files.
    #[staticmethod]
    fn keep(
        py: Python<'_>,
        about: Vec<(String, String)>,
        threads: Vec<ThreadName>,
        stacks: Option<f64>,
        kept: (f64, usize),
        dumps: (Option<PathBuf>, Option<f64>, Option<f64>, f64, u32),
    ) -> PyResult<Self> {
        let ((keep, memory), (path, wait, hold, interval, most)) = (kept, dumps);
        let flight = FlightOptions {
            keep: duration("seconds", keep)?,
            memory,
            path,
            wait: wait.map(|wait| duration("dump_on_wait", wait)).transpose()?,
            hold: hold.map(|hold| duration("dump_on_hold", hold)).transpose()?,
            interval: duration("interval", interval)?,
            most,
        };
        let limits = (None, stacks.map(|stacks| duration("stacks", stacks)).transpose()?);
        begin(py, about, limits, &threads, |options| Capture::keep(options, &flight))
    }

    /// Publishes this process, for clients that ask for a trace; they get stacks if `stacks` is not None.
    #[staticmethod]
    fn publish(
        py: Python<'_>,
        about: Vec<(String, String)>,
        threads: Vec<ThreadName>,
        stacks: Option<f64>,
    ) -> PyResult<Self> {
        let limits = (None, stacks.map(|stacks| duration("stacks", stacks)).transpose()?);
        begin(py, about, limits, &threads, |options| Capture::publish(options, dump::take))
    }

    /// Writes the last seconds to a file. Returns the numbers of events, of lost events and of bytes, or None when
    /// nothing is kept.
    fn dump<'py>(
        &self,
        py: Python<'py>,
        path: PathBuf,
        threads: Vec<ThreadName>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(flight) = self.flight() else { return Ok(None) };
        name_all(&threads);
        let stats = py.detach(|| flight.dump(&path))?;
        numbers(py, [stats.events, stats.lost, stats.bytes]).map(Some)
    }

    /// Writes the last seconds to a file beside the recorder's path and returns its path; None if it has none.
    fn dump_beside(&self, py: Python<'_>, threads: Vec<ThreadName>) -> PyResult<Option<PathBuf>> {
        let Some(flight) = self.flight() else { return Ok(None) };
        name_all(&threads);
        let beside = |path| flight.dump_beside(path);
        Ok(py.detach(|| flight.path().map(beside)).transpose()?)
    }

    /// Watches for waits ("wait") or holds ("hold") of at least so many seconds, if `own` also for waits of offlock's own
    /// threads; None if nothing is kept.
    fn watch(&self, watched: &str, seconds: f64, own: bool) -> PyResult<Option<Watch>> {
        let watched = if watched == "wait" { Watched::Wait } else { Watched::Hold };
        let at_least = duration("seconds", seconds)?;
        Ok(self.flight().map(|flight| Watch::new(flight.watch(watched, at_least, own))))
    }

    /// The number of bytes that the last seconds take; None if none are kept.
    #[getter]
    fn memory(&self) -> Option<Int> {
        self.flight().map(|flight| Int(flight.memory()))
    }

    /// Stops the trace; a second call changes nothing.
    ///
    /// Returns the numbers of events, of lost events and of bytes, or None when it was stopped before or belongs to the
    /// process that this one was forked from.
    fn stop<'py>(&self, py: Python<'py>, threads: Vec<ThreadName>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(mut capture) = self.capture().take() else { return Ok(None) };
        if capture.is_running() {
            name_all(&threads);
        }
        let stopped = py.detach(|| capture.stop());
        *self.capture() = Some(capture);
        unwatch();
        stopped?.map(|stats| numbers(py, [stats.events, stats.lost, stats.bytes])).transpose()
    }

    /// The summary of a stopped trace into memory, as text and as JSON.
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let summary = self.capture().as_ref().and_then(Capture::summary);
        let Some(summary) = summary else { return Ok(None) };
        let summary = summary.map_err(|error| PyRuntimeError::with_message(error.to_string()))?;
        let (text, json) = (object::text(py, &summary.to_text())?, object::text(py, &summary.to_json())?);
        tuple(py, [text.into_any(), json.into_any()]).map(Some)
    }

    /// Whether the trace is being recorded by this process.
    #[getter]
    fn is_running(&self) -> bool {
        self.capture().as_ref().is_some_and(Capture::is_running)
    }
}

fn name_all(threads: &[ThreadName]) {
    threads.iter().for_each(|(native_id, name)| feed::name_thread(*native_id, name));
}

/// The duration that an argument names in seconds.
fn duration(argument: &str, seconds: f64) -> PyResult<Duration> {
    let refused = |_| format!("{argument}={seconds} is not a possible number of seconds");
    Duration::try_from_secs_f64(seconds).map_err(|error| PyValueError::with_message(refused(error)))
}

/// Finds out what stacks need. The error says why there are none.
fn prepare_stacks(py: Python<'_>) -> Result<(), String> {
    hooks::prepare_stacks(py)?;
    #[cfg(target_os = "linux")]
    thread_stacks::prepare(py);
    Ok(())
}

fn begin(
    py: Python<'_>,
    about: Vec<(String, String)>,
    (limit, stacks): (Option<u64>, Option<Duration>),
    threads: &[ThreadName],
    start: impl FnOnce(&Options) -> std::io::Result<Capture>,
) -> PyResult<Recorder> {
    if trace::switched_off().is_some() {
        let nothing = start(&Options { about, ..Options::default() })?;
        return Ok(Recorder(Mutex::new(Some(nothing))));
    }
    let watched = watch(py);
    feed::announce(threads, watched.is_ok());
    let mut options = Options { about, limit, stacks: stacks.filter(|_| watched.is_ok()) };
    let has_no_lock = watched.is_err() && without_lock::is_used(py);
    let watched =
        if has_no_lock && permission::given().is_ok() { Err(without_lock::OBSTACLE.into()) } else { watched };
    if has_no_lock {
        options.about.push(("lock".into(), "none".into()));
        let obstacle = without_lock::watch(py).err();
        options.about.extend(obstacle.map(|obstacle| ("waits_obstacle".into(), obstacle)));
    }
    if let Err(obstacle) = watched {
        options.about.extend([("exact".into(), "false".into()), ("obstacle".into(), obstacle)]);
    } else if stacks.is_some()
        && let Err(obstacle) = prepare_stacks(py)
    {
        options.stacks = None;
        options.about.push(("stacks_obstacle".into(), obstacle));
    }
    let capture = start(&options).inspect_err(|_| unwatch())?;
    if has_no_lock {
        // Another thread that stopped the last trace meanwhile may have restored the calls.
        let _ = without_lock::watch(py);
    }
    Ok(Recorder(Mutex::new(Some(capture))))
}

/// Whether the environment asks this process to publish itself.
#[pyfunction]
fn is_live_requested() -> bool {
    trace::is_live_requested()
}

/// The reason why this process traces and measures nothing, if the environment says so; None when it may.
#[pyfunction]
fn switched_off() -> Option<Text<String>> {
    trace::switched_off().map(Text)
}

/// The reason why the lock cannot be watched in this process; None when it can.
#[pyfunction]
fn obstacle(py: Python<'_>) -> Option<Text<String>> {
    let found = watch(py).err().map(Text);
    unwatch();
    found
}

/// The reason why no stacks can be recorded in this process; None when they can.
#[pyfunction]
fn stacks_obstacle(py: Python<'_>) -> Option<Text<String>> {
    let found = watch(py).and_then(|()| hooks::prepare_stacks(py)).err().map(Text);
    unwatch();
    found
}

/// The names of loaded extension modules that have not declared that they can run without the lock.
#[pyfunction]
fn modules_that_need_lock(py: Python<'_>) -> PyResult<Vec<String>> {
    let loaded = py.import("sys")?.getattr("modules")?.cast_into::<PyDict>()?;
    Ok(gil_slot::modules_that_need_lock(&loaded))
}

/// The system's id of the calling thread, even if a library has replaced the threads of Python.
#[pyfunction]
fn native_id() -> Int {
    Int(feed::native_id() as usize)
}

/// Records the name of a thread.
#[pyfunction]
fn name_thread(native_id: u32, name: &str) {
    if trace::is_active() {
        feed::name_thread(native_id, name);
    }
}

/// For `gc.callbacks`: the calling thread begins or ends a collection.
#[pyfunction]
fn on_gc(phase: &str, _info: &Bound<'_, PyAny>) {
    if !trace::is_tracing() {
        return;
    }
    let thread = feed::current();
    match phase {
        "start" => thread.gc_enter(trace::now()),
        _ => thread.gc_exit(trace::now()),
    }
}

/// The calling thread begins a section that the program calls `name`.
#[pyfunction]
fn mark_begin(name: &str) {
    if trace::is_tracing() {
        feed::current().mark_begin(trace::now(), Name::of(name));
    }
}

/// The calling thread ends the section that it began last, and may give it another name.
#[pyfunction]
#[pyo3(signature = (renamed=None))]
fn mark_end(renamed: Option<&str>) {
    if trace::is_tracing() {
        feed::current().mark_end(trace::now(), renamed.map(Name::of));
    }
}

fn metric(name: &str) -> PyResult<Metric> {
    match name {
        "global" => Ok(Metric::Global),
        "local" => Ok(Metric::Local),
        "waiting" => Ok(Metric::Waiting),
        _ => Err(PyValueError::with_message(format!("no metric is called {name:?}"))),
    }
}

/// Starts one of the metrics "global", "local" and "waiting", unless tracing is switched off. Returns the reason if it
/// was started but will stay zero.
#[pyfunction]
fn enable(py: Python<'_>, name: &str) -> PyResult<Option<Text<String>>> {
    let metric = metric(name)?;
    if trace::switched_off().is_some() {
        return Ok(None);
    }
    let obstacle = watch(py).err();
    metric.enable();
    Ok(obstacle.map(Text))
}

/// Stops a metric; the numbers stay.
#[pyfunction]
fn disable(name: &str) -> PyResult<()> {
    metric(name)?.disable();
    unwatch();
    Ok(())
}

/// Whether a metric is being measured.
#[pyfunction]
fn is_enabled(name: &str) -> PyResult<bool> {
    Ok(metric(name)?.is_enabled())
}

/// Nanoseconds that all threads together have waited, and the number of acquisitions.
#[pyfunction]
fn global_numbers(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    numbers(py, [metrics::waited(), metrics::acquisitions()])
}

/// Resets the numbers of all threads together to zero.
#[pyfunction]
fn reset_global() {
    metrics::reset();
}

/// The number of threads that wait for the lock, or that waited when measuring stopped.
#[pyfunction]
fn waiting() -> Int {
    Int(metrics::waiting() as usize)
}

/// Counts waiting threads from zero again.
#[pyfunction]
fn reset_waiting() {
    metrics::reset_waiting();
}

/// A thread's nanoseconds waited, acquisitions and releases; zeros for a thread not seen yet.
#[pyfunction]
fn local_numbers(py: Python<'_>, native_id: u32) -> PyResult<Bound<'_, PyAny>> {
    let all = feed::find(native_id).map(|thread| thread.metrics()).unwrap_or_default();
    numbers(py, [all.waited, all.acquisitions, all.releases])
}

/// A number of the calling thread for `frame_of`.
#[pyfunction]
fn thread_number(py: Python<'_>) -> PyResult<i64> {
    threads::number(py)
}

/// The frame that a thread executes; `None` if it has ended or executes no Python code.
#[pyfunction]
fn frame_of(py: Python<'_>, thread_number: i64) -> PyResult<Option<Bound<'_, PyAny>>> {
    threads::frame_of(py, thread_number)
}

/// Resets a thread's numbers to zero.
#[pyfunction]
fn reset_local(native_id: u32) {
    if let Some(thread) = feed::find(native_id) {
        thread.reset_metrics();
    }
}

/// The waits of all threads, or of the one with a native id: pairs of an upper bound in ns and a count.
#[pyfunction]
#[pyo3(signature = (native_id=None))]
fn waits(py: Python<'_>, native_id: Option<u32>) -> PyResult<Bound<'_, PyAny>> {
    let Waits(buckets) = match native_id {
        None => metrics::waits(),
        Some(id) => feed::find(id).map_or(Waits(Vec::new()), |thread| thread.waits()),
    };
    let pairs = buckets.into_iter().map(|(bound, count)| numbers(py, [bound, count]));
    let pairs = pairs.collect::<PyResult<Vec<_>>>()?;
    let mut list = SequenceBuilder::new(py, Container::List, pairs.len())?;
    pairs.into_iter().for_each(|pair| list.push(pair));
    Ok(list.finish())
}

/// A tuple of numbers.
fn numbers<const N: usize>(py: Python<'_>, all: [u64; N]) -> PyResult<Bound<'_, PyAny>> {
    let ints = all.into_iter().map(|number| Ok(object::size(py, number as usize)?.into_any()));
    tuple(py, ints.collect::<PyResult<Vec<_>>>()?)
}

/// `offlock._offlock.lock`
#[pymodule(gil_used = false)]
pub(crate) mod lock {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::lock::flight::Watch;
    #[pymodule_export]
    use crate::lock::samples::Sampler;
    #[pymodule_export]
    use crate::lock::{
        Recorder, disable, enable, frame_of, global_numbers, is_enabled, is_live_requested, local_numbers,
        mark_begin, mark_end, modules_that_need_lock, name_thread, native_id, obstacle, on_gc, reset_global,
        reset_local, reset_waiting, stacks_obstacle, switched_off, thread_number, waiting, waits,
    };

    #[pymodule_init]
    fn init(_module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::lock::watch_forks();
        Ok(())
    }
}
