//! The region: the one file of the Python front end that releases the interpreter lock.
//!
//! An operation has three steps. It *borrows* its inputs while the lock is held (`borrow.rs`), *works* on
//! plain Rust values inside [`Region::run`], and *builds* its Python result when the lock is held again:
//!
//! ```ignore
//! fn encode<'py>(py: Python<'py>, text: &Bound<'py, PyString>, release: Release) -> PyResult<Bound<'py, PyList>> {
//!     let borrowed = text.to_str()?;                                    // borrow
//!     let ids = Region::new(&TOKENS_ENCODE, borrowed.len())
//!         .release(release)
//!         .run(py, |task| encoding.encode(borrowed, task))?;            // work
//!     PyList::new(py, ids)                                              // build
//! }
//! ```
//!
//! The closure is `Send`, so the compiler refuses one that captures a `Python` token or a `Bound` object. It
//! gets a [`Task`] and passes it to the core, whose operations check it every fraction of a millisecond:
//!
//! - On the main thread, where CPython runs signal handlers, a check looks for signals every [`LOOK_EVERY`]
//!   of work. An exception that a handler raises (`KeyboardInterrupt`) stops the run. It is raised after
//!   everything that the run has allocated is dropped. This holds whether the lock was released or not.
//! - A [`Cancel`] stops the run from any other thread.
//!
//! A panic becomes an [`InternalError`]. A daemon thread that returns while the interpreter shuts down never
//! gets the lock again: PyO3 parks it forever on every version of CPython.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use offlock_core::{Operation, SpinHint, Task, time_slice};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::cpython::threads::is_only_thread;
use crate::error::{InternalError, IntoException, WithMessage, cancelled};
use crate::lock::region_events;

/// How the lock passes between the threads of this extension. There is one lock: PyO3's modules support only
/// the main interpreter.
static SPIN_HINT: SpinHint = SpinHint::new();

/// How much work the main thread does between two checks for signals.
///
/// A check needs the lock, and a thread that computes can delay its acquisition by 5 ms. The interval is long
/// enough that checks cost little, and short enough that Ctrl-C is answered within 50 ms.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The caller's choice whether the lock is released: `release="auto" | "always" | "never"` in Python.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Release(offlock_core::Release);

impl Release {
    pub(crate) const AUTO: Self = Self(offlock_core::Release::Auto);
    pub(crate) const ALWAYS: Self = Self(offlock_core::Release::Always);
    pub(crate) const NEVER: Self = Self(offlock_core::Release::Never);

    /// Whether a run of `operation` over `bytes` bytes releases the lock.
    #[inline]
    pub(crate) const fn leaves(self, operation: &Operation, bytes: usize) -> bool {
        operation.is_released(self.0, bytes)
    }
}

impl<'py> FromPyObject<'_, 'py> for Release {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match value.extract().ok().and_then(offlock_core::Release::named) {
            Some(release) => Ok(Self(release)),
            None => Err(PyValueError::with_message(format!(
                "release must be 'auto', 'always' or 'never', not {}",
                value.repr()?
            ))),
        }
    }
}

/// Stops a call from another thread.
#[pyclass(frozen, module = "offlock._offlock")]
#[derive(Default)]
pub(crate) struct Cancel(AtomicBool);

#[pymethods]
impl Cancel {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Stops the calls that were given this object within about a millisecond, and those that start later at
    /// once: they raise `concurrent.futures.CancelledError`. What a call has made of its result is freed first.
    fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether `cancel` was called.
    #[getter]
    pub(crate) fn cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// One run of an [`Operation`], described before it starts.
pub(crate) struct Region<'a> {
    operation: &'static Operation,
    bytes: usize,
    pub(crate) release: Release,
    pub(crate) cancel: Option<&'a Cancel>,
    progress: Option<&'a Progress<'a>>,
}

/// Is told the units that are done, with the lock; an exception ends the run.
pub(crate) type Progress<'a> = dyn Fn(Python<'_>, u64) -> PyResult<()> + Sync + 'a;

impl<'a> Region<'a> {
    /// A run of `operation` over an input of `bytes` bytes.
    pub(crate) const fn new(operation: &'static Operation, bytes: usize) -> Self {
        Self { operation, bytes, release: Release::AUTO, cancel: None, progress: None }
    }

    /// Sets whether the lock is released.
    pub(crate) const fn release(self, release: Release) -> Self {
        Self { release, ..self }
    }

    /// Lets `cancel` stop the run from another thread.
    pub(crate) const fn cancel(self, cancel: Option<&'a Cancel>) -> Self {
        Self { cancel, ..self }
    }

    /// Tells `progress` on the calling thread how far the run is, up to 50 times a second.
    pub(crate) const fn progress(self, progress: Option<&'a Progress<'a>>) -> Self {
        Self { progress, ..self }
    }

    /// Runs `work`, without the lock when that pays, and returns its result or the exception that ended it.
    pub(crate) fn run<T, E>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Task<'_>) -> Result<T, E> + Send,
    ) -> PyResult<T>
    where
        T: Send,
        E: IntoException,
    {
        let watch = Watch::new(self.cancel, self.progress, self.bytes < self.operation.break_even);
        let poll = |done| watch.poll(done);
        let guarded = || {
            catch_unwind(AssertUnwindSafe(|| {
                let task = Task::with_poll(&poll);
                work(&task)
            }))
        };
        let outcome = if self.leaves() {
            self.off_the_lock(py, guarded)
        } else {
            self.yield_between_calls(py)?;
            guarded()
        };
        self.deliver(py, outcome, &watch)
    }

    fn leaves(&self) -> bool {
        self.release.leaves(self.operation, self.bytes)
    }

    /// With `never`, the lock stays held.
    fn yield_between_calls(&self, py: Python<'_>) -> PyResult<()> {
        if self.release == Release::AUTO { yield_between_calls(py, self.bytes) } else { Ok(()) }
    }

    /// The only place where the lock is released and re-acquired. Everything to be recorded about time spent
    /// without the lock (which operation, how many bytes, from when to when) is known here.
    fn off_the_lock<R: Send>(&self, py: Python<'_>, work: impl FnOnce() -> R + Send) -> R {
        region_events::record(self.operation.name, self.bytes, || aside(py, work))
    }

    fn deliver<T, E: IntoException>(
        &self,
        py: Python<'_>,
        outcome: thread::Result<Result<T, E>>,
        watch: &Watch<'_>,
    ) -> PyResult<T> {
        if let Some(interrupt) = watch.take_interrupt() {
            drop(outcome);
            return Err(interrupt);
        }
        match outcome {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(_)) if self.cancel.is_some_and(Cancel::cancelled) => Err(cancelled(py)),
            Ok(Err(failure)) => Err(failure.into_exception(py)),
            Err(panic) => Err(self.internal_error(panic.as_ref())),
        }
    }

    fn internal_error(&self, panic: &(dyn Any + Send)) -> PyErr {
        InternalError::with_message(self.operation.panic_message(self.bytes, panic))
    }
}

/// Releases the lock for `work`, and re-acquires it. Used directly for long work that cannot fail, such as
/// freeing much memory.
pub(crate) fn aside<R: Send>(py: Python<'_>, work: impl FnOnce() -> R + Send) -> R {
    if cfg!(Py_GIL_DISABLED) {
        return py.detach(work);
    }
    let result = py.detach(|| {
        SPIN_HINT.released();
        let result = work();
        SPIN_HINT.spin();
        result
    });
    SPIN_HINT.acquired();
    time_slice::restart();
    result
}

/// Yields the lock if this thread has held it for its time slice, and then checks for signals. Operations
/// over `bytes` bytes that keep the lock call this.
#[inline]
pub(crate) fn yield_between_calls(py: Python<'_>, bytes: usize) -> PyResult<()> {
    if cfg!(Py_GIL_DISABLED) || !time_slice::look_is_due_before_call(bytes) {
        Ok(())
    } else {
        look_between_calls(py)
    }
}

#[cold]
fn look_between_calls(py: Python<'_>) -> PyResult<()> {
    if is_only_thread(py) {
        time_slice::restart();
    } else if time_slice::is_over_between_calls(SHORTEST_SLICE) {
        yield_lock(py);
        py.check_signals()?;
    }
    Ok(())
}

/// As [`yield_between_calls`], in the middle of a call. Operations that make many objects call this
/// regularly.
#[inline]
pub(crate) fn yield_in_call(py: Python<'_>) -> PyResult<()> {
    if time_slice::look_is_due() {
        look_in_call(py);
        py.check_signals()?;
    }
    Ok(())
}

/// As [`yield_in_call`], without a check for signals.
#[inline]
pub(crate) fn step_aside_in_call(py: Python<'_>) {
    if time_slice::look_is_due() {
        look_in_call(py);
    }
}

#[cold]
fn look_in_call(py: Python<'_>) {
    if cfg!(Py_GIL_DISABLED) {
        // No thread waits for a lock here, but a thread that stops all others, to collect garbage, waits for
        // this one.
        time_slice::restart();
        py.detach(|| ());
    } else if is_only_thread(py) {
        time_slice::restart();
    } else if time_slice::is_over_in_call(SHORTEST_SLICE_IN_CALL) {
        yield_lock(py);
    }
}

/// Releases the lock for a moment.
///
/// A waiting thread is woken when the lock is free, but takes tens of microseconds to run: hence the pause.
/// Without one it would find the lock held again and go back to sleep. It would never force a switch, which
/// CPython allows only after 5 ms without a release.
fn yield_lock(py: Python<'_>) {
    time_slice::yielding(SWITCH_INTERVAL, || py.detach(|| thread::sleep(ARRIVAL)));
}

/// About 70 µs with the overhead of the system.
const ARRIVAL: Duration = Duration::from_micros(15);
/// A thread that makes small calls yields after this many nanoseconds if it has the lock for so long.
const SHORTEST_SLICE: u64 = 1_000_000;
/// A thread in the middle of a call that makes many objects yields after this many nanoseconds, because each
/// yield costs the pause. Including the work between two checks, it has held the lock for 2 ms at most.
const SHORTEST_SLICE_IN_CALL: u64 = 1_250_000;
/// How long CPython lets a thread run while others wait (`sys.getswitchinterval`), in nanoseconds, by
/// default.
const SWITCH_INTERVAL: u64 = 5_000_000;

/// The state that the checks of one run read: whether it was cancelled, and, on the main thread, signals. These checks also
/// report progress.
struct Watch<'a> {
    /// The thread that started the run; checks in threads that help with the work read only `cancel`.
    owner: usize,
    cancel: Option<&'a Cancel>,
    progress: Option<&'a Progress<'a>>,
    /// Whether `interrupt` has an exception. Small calls, which are never interrupted, read only this.
    interrupted: AtomicBool,
    signals: Mutex<Signals>,
}

#[derive(Default)]
struct Signals {
    /// Whether the next check is the only one of a small call, which needs no look at the clock.
    skips_check: bool,
    next_look: Option<Instant>,
    interrupt: Option<PyErr>,
}

impl<'a> Watch<'a> {
    fn new(cancel: Option<&'a Cancel>, progress: Option<&'a Progress<'a>>, small: bool) -> Self {
        let signals = Mutex::new(Signals { skips_check: small, ..Signals::default() });
        Self { owner: this_thread(), cancel, progress, interrupted: AtomicBool::new(false), signals }
    }

    /// True when the run has to stop.
    fn poll(&self, done: u64) -> bool {
        self.cancel.is_some_and(Cancel::cancelled) || self.is_interrupted(done)
    }

    fn is_interrupted(&self, done: u64) -> bool {
        if this_thread() != self.owner || !self.look_is_due() {
            return false;
        }
        if !runs_signal_handlers() && self.progress.is_none() {
            return false;
        }
        let raised = Python::attach(|py| {
            py.check_signals()?;
            self.progress.map_or(Ok(()), |progress| progress(py, done))
        });
        let raised = raised.err();
        let stop = raised.is_some();
        self.interrupted.store(stop, Ordering::Relaxed);
        let mut signals = self.signals();
        signals.interrupt = raised;
        signals.next_look = Some(Instant::now() + LOOK_EVERY);
        stop
    }

    /// Counts from the first check on, and from the end of the last check for signals: time spent waiting for
    /// the lock is not work.
    fn look_is_due(&self) -> bool {
        let mut signals = self.signals();
        if std::mem::take(&mut signals.skips_check) {
            return false;
        }
        let now = Instant::now();
        now >= *signals.next_look.get_or_insert(now + LOOK_EVERY)
    }

    fn take_interrupt(&self) -> Option<PyErr> {
        if self.interrupted.load(Ordering::Relaxed) { self.signals().interrupt.take() } else { None }
    }

    /// Never contended: only checks on the owner's thread get here.
    fn signals(&self) -> MutexGuard<'_, Signals> {
        self.signals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A number that no other living thread has. `thread::current().id()` takes several times as long.
fn this_thread() -> usize {
    thread_local!(static HERE: u8 = const { 0 });
    HERE.with(|here| ptr::from_ref(here).addr())
}

/// Whether CPython may run signal handlers on this thread: only the main one does.
///
/// Asks the system, because Python's own answer needs the lock and can be patched by event loops. Where the
/// system has no answer, every thread checks; on threads other than the main one, CPython does nothing then.
fn runs_signal_handlers() -> bool {
    // SAFETY: both only read an identifier of the calling process and thread; they cannot fail.
    #[cfg(target_os = "linux")]
    return unsafe { libc::getpid() == libc::gettid() };
    // SAFETY: asks about the calling thread alone; it cannot fail.
    #[cfg(target_os = "macos")]
    return unsafe { libc::pthread_main_np() == 1 };
    #[cfg(not(any(target_os = "linux", target_os = "macos")))]
    return true;
}

#[cfg(test)]
mod tests {
    use offlock_core::Stopped;

    use super::*;

    static WORK: Operation = Operation { name: "test.work", break_even: 100 };

    fn attached<T>(body: impl FnOnce(Python<'_>) -> T) -> T {
        Python::initialize();
        Python::attach(body)
    }

    /// True when the calling thread holds the lock.
    fn held() -> bool {
        // SAFETY: may be called from any thread once the interpreter is initialized.
        unsafe { pyo3::ffi::PyGILState_Check() == 1 }
    }

    fn leaves(bytes: usize, release: Release) -> bool {
        attached(|py| {
            Region::new(&WORK, bytes).release(release).run(py, |_| Ok::<_, Stopped>(!held())).unwrap()
        })
    }

    #[test]
    fn small_inputs_stay_unless_the_caller_says_otherwise() {
        assert!(!leaves(99, Release::AUTO));
        assert!(leaves(100, Release::AUTO));
        assert!(leaves(0, Release::ALWAYS));
        assert!(!leaves(1 << 30, Release::NEVER));
    }

    #[test]
    fn a_panic_becomes_an_exception_on_either_side_of_the_lock() {
        for release in [Release::ALWAYS, Release::NEVER] {
            attached(|py| {
                let error = Region::new(&WORK, 7)
                    .release(release)
                    .run(py, |_| -> Result<(), Stopped> { panic!("odd {}", 1) })
                    .unwrap_err();
                assert!(error.is_instance_of::<InternalError>(py));
                assert_eq!(error.value(py).to_string(), "test.work over 7 bytes panicked: odd 1");
                assert!(held());
            });
        }
    }

    #[test]
    fn a_cancelled_run_stops_and_says_so() {
        attached(|py| {
            let cancel = Cancel::default();
            let canceller = &cancel;
            let error = Region::new(&WORK, 1 << 20)
                .cancel(Some(&cancel))
                .run(py, |task| -> Result<(), Stopped> {
                    thread::scope(|scope| {
                        scope.spawn(|| canceller.cancel());
                    });
                    loop {
                        task.check()?;
                    }
                })
                .unwrap_err();
            assert_eq!(error.get_type(py).name().unwrap(), "CancelledError");
        });
    }

    #[test]
    fn what_the_work_made_is_dropped_when_it_is_cancelled() {
        struct Guard<'a>(&'a AtomicBool);
        impl Drop for Guard<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let dropped = AtomicBool::new(false);
        let cancel = Cancel::default();
        cancel.cancel();
        attached(|py| {
            let outcome = Region::new(&WORK, 1 << 20).cancel(Some(&cancel)).run(py, |task| {
                let guard = Guard(&dropped);
                task.check().map(|()| guard)
            });
            assert!(outcome.is_err());
        });
        assert!(dropped.load(Ordering::Relaxed));
    }

    #[test]
    fn an_unknown_release_is_named() {
        attached(|py| {
            for (value, shown) in [("'sometimes'", "'sometimes'"), ("3", "3"), ("None", "None")] {
                let value = py.eval(&std::ffi::CString::new(value).unwrap(), None, None).unwrap();
                let error = value.extract::<Release>().unwrap_err();
                assert!(error.is_instance_of::<PyValueError>(py));
                let message = format!("release must be 'auto', 'always' or 'never', not {shown}");
                assert_eq!(error.value(py).to_string(), message);
            }
        });
    }
}
