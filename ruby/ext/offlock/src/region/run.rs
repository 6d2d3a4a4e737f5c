//! One run of an operation: on this thread or on a worker, with the lock or without it.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{self, Scope, ScopedJoinHandle, ThreadId};
use std::time::Duration;

use magnus::error::OpaqueError;
use magnus::value::ReprValue;
use magnus::{Error, Module, RModule, Ruby, Symbol, TryConvert, Value};
use offlock_core::{Operation, Task, time_slice};

use super::job::Job;
use super::release::{self, unpoisoned};
use super::scheduler;
use super::yielding::yield_between_calls;
use crate::error::{IntoException, internal_error};

/// Runs of at least this many bytes work on a worker thread from the start: they take tens of milliseconds,
/// so that the cost of starting a thread is negligible and the cost of a restart is not.
pub(super) const WORKER_BYTES: usize = 4 << 20;

/// The caller's choice whether to release the lock: `release: :auto | :always | :never` in Ruby.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Release(offlock_core::Release);

impl Release {
    pub(crate) const AUTO: Self = Self(offlock_core::Release::Auto);
    pub(crate) const ALWAYS: Self = Self(offlock_core::Release::Always);
    pub(crate) const NEVER: Self = Self(offlock_core::Release::Never);
}

impl TryConvert for Release {
    fn try_convert(value: Value) -> Result<Self, Error> {
        // Compare names, because Symbols made at run time (`to_sym`) have no identifier to compare.
        let symbol = Symbol::from_value(value).map(|symbol| symbol.name()).transpose()?;
        symbol.as_deref().and_then(offlock_core::Release::named).map(Self).ok_or_else(|| {
            let text = format!("release must be :auto, :always or :never, got {}", value.inspect());
            Error::new(Ruby::get_with(value).exception_arg_error(), text)
        })
    }
}

/// One run of an [`Operation`], described before it starts.
pub(crate) struct Region<'a> {
    operation: &'static Operation,
    bytes: usize,
    release: Release,
    progress: Option<&'a Progress<'a>>,
}

/// Is told the units that are done, with the lock; an exception ends the run.
pub(crate) type Progress<'a> = dyn Fn(u64) -> Result<(), Error> + 'a;

/// How often progress is told.
const TELL_EVERY: Duration = Duration::from_millis(50);

/// The result of a run, as the working thread sees it.
type Outcome<T, E> = thread::Result<Result<T, E>>;

impl<'a> Region<'a> {
    /// A run of `operation` over an input of `bytes` bytes.
    pub(crate) const fn new(operation: &'static Operation, bytes: usize) -> Self {
        Self { operation, bytes, release: Release::AUTO, progress: None }
    }

    /// Sets the caller's choice whether to release the lock.
    pub(crate) const fn release(self, release: Release) -> Self {
        Self { release, ..self }
    }

    /// Tells `progress` on the calling thread now and then how far the run is, if it works on a worker thread.
    pub(crate) const fn progress(self, progress: Option<&'a Progress<'a>>) -> Self {
        Self { progress, ..self }
    }

    /// Returns whether this run releases the lock.
    pub(crate) fn leaves(&self) -> bool {
        self.operation.is_released(self.release.0, self.bytes)
    }

    /// Runs `work`, without the lock when that pays, and returns its result or the exception that ended it.
    pub(crate) fn run<T, E>(
        &self,
        ruby: &Ruby,
        mut work: impl FnMut(&Task<'_>) -> Result<T, E> + Send,
    ) -> Result<T, Error>
    where
        T: Send,
        E: IntoException,
    {
        let outcome = if self.leaves() {
            let outcome = crate::trace::off_the_lock(self.operation.name, self.bytes, || {
                self.off_the_lock(ruby, &mut work)
            });
            time_slice::restart();
            outcome
        } else {
            self.yield_between_calls()?;
            under_the_lock(ruby, &mut work)
        };
        match outcome? {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(failure)) => Err(failure.into_exception(ruby)),
            Err(panic) => Err(self.panicked(ruby, panic.as_ref())),
        }
    }

    /// With `release: :never` the lock is kept.
    fn yield_between_calls(&self) -> Result<(), Error> {
        if self.release == Release::AUTO { yield_between_calls() } else { Ok(()) }
    }

    /// The only place that releases and re-acquires the lock. All facts about time spent without the lock
    /// (which operation, how many bytes, from when to when) are known here.
    fn off_the_lock<T: Send, E: Send>(
        &self,
        ruby: &Ruby,
        work: &mut (impl FnMut(&Task<'_>) -> Result<T, E> + Send),
    ) -> Result<Outcome<T, E>, Error> {
        let mut short = self.bytes < WORKER_BYTES;
        loop {
            if short && let Some(outcome) = in_place(ruby, work)? {
                return Ok(outcome);
            }
            if let Some(outcome) = on_worker(ruby, self.operation.name, self.progress, work)? {
                return Ok(outcome);
            }
            // No thread could be started: stay on this one.
            short = true;
        }
    }

    fn panicked(&self, ruby: &Ruby, panic: &(dyn Any + Send)) -> Error {
        internal_error(ruby, self.operation.panic_message(self.bytes, panic))
    }
}

/// Defines `Offlock::InternalError`, which a panic becomes, and the classes that pass work to fiber
/// schedulers.
pub(crate) fn define(ruby: &Ruby, offlock: RModule) -> Result<(), Error> {
    offlock.define_error("InternalError", ruby.exception_runtime_error())?;
    scheduler::define(ruby, offlock)
}

fn guarded<T, E>(work: &mut impl FnMut(&Task<'_>) -> Result<T, E>, task: &Task<'_>) -> Outcome<T, E> {
    catch_unwind(AssertUnwindSafe(|| work(task)))
}

/// Runs `work` on this thread with the lock held; at every check Ruby may handle interrupts.
fn under_the_lock<T, E>(
    ruby: &Ruby,
    work: &mut impl FnMut(&Task<'_>) -> Result<T, E>,
) -> Result<Outcome<T, E>, Error> {
    let interrupts = Interrupts::new();
    let poll = |_| interrupts.raised();
    let outcome = guarded(work, &Task::with_poll(&poll));
    match interrupts.take(ruby) {
        Some(raised) => Err(raised),
        None => Ok(outcome),
    }
}

/// Calls `body` without the lock, or not at all when an interrupt is pending.
///
/// `unblock` may be called from any thread at any time until this function returns, when Ruby interrupts this
/// thread: it has to make `body` return soon. Neither closure may panic.
///
/// # Errors
///
/// The exception that a fiber scheduler raised.
fn leave(ruby: &Ruby, body: &mut (dyn FnMut() + Send), unblock: &(dyn Fn() + Sync)) -> Result<(), Error> {
    let job = Arc::new(Job::new(body, unblock));
    let outcome = match scheduler::submit(ruby, &job) {
        Ok(()) if job.is_open() => job.run_released(),
        submitted => submitted,
    };
    job.close();
    outcome
}

/// Runs `work` on this thread without the lock; `None` when an interrupt that raised nothing stopped it.
fn in_place<T: Send, E: Send>(
    ruby: &Ruby,
    work: &mut (impl FnMut(&Task<'_>) -> Result<T, E> + Send),
) -> Result<Option<Outcome<T, E>>, Error> {
    let task = Task::new();
    loop {
        let mut outcome = None;
        leave(ruby, &mut || outcome = Some(guarded(work, &task)), &|| task.stop())?;
        let stopped = task.check().is_err();
        match outcome {
            Some(Ok(Err(_))) if stopped => {}
            // Return even if told to stop: Ruby handles the interrupt right after this call.
            Some(outcome) => return Ok(Some(outcome)),
            None => {}
        }
        release::handle_interrupts()?;
        if stopped {
            return Ok(None);
        }
    }
}

/// Runs `work` on a new thread while this one waits without the lock and handles interrupts; `None` when no
/// thread could be started.
fn on_worker<T: Send, E: Send>(
    ruby: &Ruby,
    name: &str,
    progress: Option<&Progress<'_>>,
    work: &mut (impl FnMut(&Task<'_>) -> Result<T, E> + Send),
) -> Result<Option<Outcome<T, E>>, Error> {
    let task = Task::new();
    let finished = AtomicBool::new(false);
    let wakeup = Wakeup::default();
    thread::scope(|scope| {
        let worker = spawn(scope, name, || {
            let outcome = guarded(work, &task);
            finished.store(true, Ordering::Release);
            wakeup.notify();
            outcome
        });
        let Ok(worker) = worker else { return Ok(None) };
        let tell = || progress.map_or(Ok(()), |progress| progress(task.done()));
        let waited = wait(ruby, &finished, &wakeup, progress.is_some().then_some(&tell));
        if waited.is_err() {
            task.stop();
        }
        let outcome = worker.join().unwrap_or_else(Err);
        waited.map(|()| Some(outcome))
    })
}

fn spawn<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    work: impl FnOnce() -> T + Send + 'scope,
) -> std::io::Result<ScopedJoinHandle<'scope, T>> {
    thread::Builder::new().name(name.to_owned()).spawn_scoped(scope, work)
}

/// Waits without the lock until the work is finished, and calls `tell` now and then; an error when an interrupt or `tell`
/// raises.
fn wait(
    ruby: &Ruby,
    finished: &AtomicBool,
    wakeup: &Wakeup,
    tell: Option<&dyn Fn() -> Result<(), Error>>,
) -> Result<(), Error> {
    let most = tell.map(|_| TELL_EVERY);
    loop {
        leave(ruby, &mut || wakeup.wait(most), &|| wakeup.notify())?;
        if finished.load(Ordering::Acquire) {
            return Ok(());
        }
        release::handle_interrupts()?;
        tell.map_or(Ok(()), |tell| tell())?;
    }
}

/// Wakes the waiting thread, either because the work has ended or because of an interrupt.
#[derive(Default)]
struct Wakeup {
    notified: Mutex<bool>,
    changed: Condvar,
}

impl Wakeup {
    fn notify(&self) {
        *unpoisoned(self.notified.lock()) = true;
        self.changed.notify_one();
    }

    /// Returns once `notify` was called since the last wait, or after the time `most`.
    fn wait(&self, most: Option<Duration>) {
        let notified = unpoisoned(self.notified.lock());
        let most = most.unwrap_or(Duration::MAX);
        *unpoisoned(self.changed.wait_timeout_while(notified, most, |notified| !*notified)).0 = false;
    }
}

/// The results of the checks of a run that keeps the lock.
struct Interrupts {
    /// The thread that holds the lock. In threads that help with the work, checks do nothing.
    owner: ThreadId,
    raised: Mutex<Option<OpaqueError>>,
}

impl Interrupts {
    fn new() -> Self {
        Self { owner: thread::current().id(), raised: Mutex::new(None) }
    }

    /// Lets Ruby handle interrupts and switch threads. Returns true when an interrupt raised and the run has
    /// to stop.
    fn raised(&self) -> bool {
        if thread::current().id() != self.owner {
            return false;
        }
        let raised = release::check_interrupts().err().map(OpaqueError::from);
        let stop = raised.is_some();
        *self.slot() = raised;
        stop
    }

    fn take(&self, ruby: &Ruby) -> Option<Error> {
        self.slot().take().map(|raised| OpaqueError::into_error_with(raised, ruby))
    }

    /// Never contended: only the owner calls this.
    fn slot(&self) -> MutexGuard<'_, Option<OpaqueError>> {
        unpoisoned(self.raised.lock())
    }
}
