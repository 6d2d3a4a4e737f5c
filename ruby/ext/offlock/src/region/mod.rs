//! The region: the one folder of the Ruby front end that releases the interpreter lock.
//!
//! An operation has three beats. It *borrows* its inputs while the lock is held (`borrow/`), *works* on
//! plain Rust values inside [`Region::run`], and *builds* its Ruby result when the lock is held again:
//!
//! ```ignore
//! fn count(ruby: &Ruby, encoding: &'static Encoding, text: Value, release: Release) -> Result<usize, Error> {
//!     let text = borrowed!(Text, ruby, text);                         // borrow
//!     let utf8 = text.view();
//!     Region::new(&COUNT, text.len())
//!         .release(release)
//!         .run(ruby, |task| encoding.count(utf8.checked(task)?, task)) // work
//! }                                                                   // build: here an Integer
//! ```
//!
//! The closure is `Send`, so the compiler refuses one that captures a Ruby value. It gets a [`Task`] and hands it
//! to the core, whose operations check it every fraction of a millisecond.
//!
//! # Interrupts
//!
//! `Thread#kill`, `Thread#raise`, `Timeout` and Ctrl-C wake a thread that is off the lock through an unblock
//! function. So do things that raise nothing: `Thread#wakeup`, a trap handler that returns. What they are is
//! known only once the lock is held again and the interrupt has been handled. Hence:
//!
//! - A short run is told to stop. If the interrupt raises, everything the run had made is dropped first and the
//!   exception goes on its way. If not, the work runs once more, on a worker thread.
//! - On a worker thread, where runs over [`WORKER_BYTES`] bytes work from the start, the work goes on while the Ruby thread waits for it.
//!   Interrupts then only end the wait; the work is told to stop when one of them raises.
//!
//! So an interrupt that raises nothing costs a short run at most one more start, and a long one nothing. The closure
//! may therefore be called twice. The second call starts over, or goes on from where the first was stopped if
//! it keeps its state outside.
//!
//! A run that stays under the lock lets Ruby handle interrupts and switch threads at every check.
//!
//! # Fiber schedulers
//!
//! A scheduler that implements `blocking_operation_wait` (Ruby 3.4 and later) may run the work on another
//! thread while other fibers go on. Work must therefore not depend on the thread it runs on.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{self, Scope, ScopedJoinHandle, ThreadId};

use magnus::error::OpaqueError;
use magnus::value::ReprValue;
use magnus::{Error, Module, RModule, Ruby, Symbol, TryConvert, Value};
use offlock_core::{Operation, Task, time_slice};

use crate::error::{IntoException, internal_error};

mod job;
mod pace;
mod release;
mod scheduler;
mod yielding;

use job::Job;
pub(crate) use pace::Pace;
use release::unpoisoned;
pub(crate) use yielding::{yield_between_calls, yield_between_calls_or_raise};

/// Runs over at least this many bytes work on a worker thread from the start: they last long enough (tens of milliseconds)
/// that starting a thread is nothing and starting over would be felt.
const WORKER_BYTES: usize = 4 << 20;

/// The caller's choice whether the lock is released: `release: :auto | :always | :never` in Ruby.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Release(offlock_core::Release);

impl Release {
    pub(crate) const AUTO: Self = Self(offlock_core::Release::Auto);
    pub(crate) const ALWAYS: Self = Self(offlock_core::Release::Always);
    pub(crate) const NEVER: Self = Self(offlock_core::Release::Never);
}

impl TryConvert for Release {
    fn try_convert(value: Value) -> Result<Self, Error> {
        // By name: symbols made at run time (`to_sym`) have no identifier to be compared.
        let symbol = Symbol::from_value(value).map(|symbol| symbol.name()).transpose()?;
        symbol.as_deref().and_then(offlock_core::Release::named).map(Self).ok_or_else(|| {
            let text = format!("release must be :auto, :always or :never, got {}", value.inspect());
            Error::new(Ruby::get_with(value).exception_arg_error(), text)
        })
    }
}

/// One run of an [`Operation`], described before it starts.
pub(crate) struct Region {
    operation: &'static Operation,
    bytes: usize,
    release: Release,
}

/// How a run ended, seen from the thread that worked.
type Outcome<T, E> = thread::Result<Result<T, E>>;

impl Region {
    /// A run of `operation` over an input of `bytes` bytes.
    pub(crate) const fn new(operation: &'static Operation, bytes: usize) -> Self {
        Self { operation, bytes, release: Release::AUTO }
    }

    /// Lets the caller decide whether the lock is released.
    pub(crate) const fn release(self, release: Release) -> Self {
        Self { release, ..self }
    }

    /// Whether this run leaves the lock.
    pub(crate) fn leaves(&self) -> bool {
        self.operation.is_released(self.release.0, self.bytes)
    }

    /// Runs `work`, off the lock when that pays, and delivers its result or the exception that ended it.
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

    /// The only place where the lock is given up and taken back: what has to be known about time spent
    /// off the lock (which operation, how many bytes, from when to when) is known here.
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
            if let Some(outcome) = on_worker(ruby, self.operation.name, work)? {
                return Ok(outcome);
            }
            // No thread to be had: stay on this one.
            short = true;
        }
    }

    fn panicked(&self, ruby: &Ruby, panic: &(dyn Any + Send)) -> Error {
        internal_error(ruby, self.operation.panic_message(self.bytes, panic))
    }
}

/// Defines `Offlock::InternalError`, what a panic becomes, and what stands between Ruby and fiber schedulers.
pub(crate) fn define(ruby: &Ruby, offlock: RModule) -> Result<(), Error> {
    offlock.define_error("InternalError", ruby.exception_runtime_error())?;
    scheduler::define(ruby, offlock)
}

fn guarded<T, E>(work: &mut impl FnMut(&Task<'_>) -> Result<T, E>, task: &Task<'_>) -> Outcome<T, E> {
    catch_unwind(AssertUnwindSafe(|| work(task)))
}

/// Runs `work` on this thread with the lock held; every check lets Ruby handle interrupts.
fn under_the_lock<T, E>(
    ruby: &Ruby,
    work: &mut impl FnMut(&Task<'_>) -> Result<T, E>,
) -> Result<Outcome<T, E>, Error> {
    let interrupts = Interrupts::new();
    let poll = || interrupts.raised();
    let outcome = guarded(work, &Task::with_poll(&poll));
    match interrupts.take(ruby) {
        Some(raised) => Err(raised),
        None => Ok(outcome),
    }
}

/// Calls `body` without the lock, or not at all when an interrupt is pending.
///
/// `unblock` is called, at any time until this returns and from any thread, when somebody wants the thread back:
/// it has to make `body` return soon. An error is an exception that a fiber scheduler raised. Neither closure may
/// panic.
fn leave(ruby: &Ruby, body: &mut (dyn FnMut() + Send), unblock: &(dyn Fn() + Sync)) -> Result<(), Error> {
    let job = Arc::new(Job::new(body, unblock));
    let outcome = match scheduler::submit(ruby, &job) {
        Ok(()) if job.is_open() => job.run_released(),
        submitted => submitted,
    };
    job.close();
    outcome
}

/// Runs `work` on this thread without the lock; `None` when it was stopped by an interrupt that raised nothing.
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
            // Even if told to stop: Ruby handles the interrupt right after this call.
            Some(outcome) => return Ok(Some(outcome)),
            None => {}
        }
        release::handle_interrupts()?;
        if stopped {
            return Ok(None);
        }
    }
}

/// Runs `work` on a thread of its own while this one waits without the lock, handling interrupts; `None` when
/// there is no thread to be had.
fn on_worker<T: Send, E: Send>(
    ruby: &Ruby,
    name: &str,
    work: &mut (impl FnMut(&Task<'_>) -> Result<T, E> + Send),
) -> Result<Option<Outcome<T, E>>, Error> {
    let task = Task::new();
    let finished = AtomicBool::new(false);
    let bell = Bell::default();
    thread::scope(|scope| {
        let worker = spawn(scope, name, || {
            let outcome = guarded(work, &task);
            finished.store(true, Ordering::Release);
            bell.ring();
            outcome
        });
        let Ok(worker) = worker else { return Ok(None) };
        let waited = wait(ruby, &finished, &bell);
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

/// Waits without the lock until the work is finished; an error when an interrupt raises.
fn wait(ruby: &Ruby, finished: &AtomicBool, bell: &Bell) -> Result<(), Error> {
    loop {
        leave(ruby, &mut || bell.wait(), &|| bell.ring())?;
        if finished.load(Ordering::Acquire) {
            return Ok(());
        }
        release::handle_interrupts()?;
    }
}

/// Wakes the waiting thread, be it for the end of the work or for an interrupt.
#[derive(Default)]
struct Bell {
    rung: Mutex<bool>,
    heard: Condvar,
}

impl Bell {
    fn ring(&self) {
        *unpoisoned(self.rung.lock()) = true;
        self.heard.notify_one();
    }

    /// Returns once it has rung since the last wait.
    fn wait(&self) {
        let rung = unpoisoned(self.rung.lock());
        *unpoisoned(self.heard.wait_while(rung, |rung| !*rung)) = false;
    }
}

/// What the checks of a run under the lock came upon.
struct Interrupts {
    /// The thread that holds the lock; checks in threads that help with the work look for nothing.
    owner: ThreadId,
    raised: Mutex<Option<OpaqueError>>,
}

impl Interrupts {
    fn new() -> Self {
        Self { owner: thread::current().id(), raised: Mutex::new(None) }
    }

    /// Lets Ruby handle interrupts and switch threads; true when one raised and the run has to stop.
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

    /// Never contended: only the owner gets here.
    fn slot(&self) -> MutexGuard<'_, Option<OpaqueError>> {
        unpoisoned(self.raised.lock())
    }
}

#[cfg(test)]
mod tests;
