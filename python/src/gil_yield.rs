//! Yielding the lock in the middle of a call that makes, reads or frees many objects.

use pyo3::prelude::*;

use crate::error::cancelled;
use crate::region::{self, Cancel, Region, Release};

/// Counts objects. After every [`CHECK_EVERY`] of them it checks whether the thread's time slice is over. If
/// so, it yields the lock to the threads that wait for it.
pub(crate) struct Yielder<'a> {
    until_check: u32,
    mode: Mode,
    cancel: Option<&'a Cancel>,
}

/// The action of a check.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Nothing: no other code may run.
    Nothing,
    /// Runs signal handlers.
    Signals,
    /// Yields the lock if the time slice is over, and runs signal handlers.
    Yield,
}

/// Some 5 µs, but far longer while the system has to find new memory. A check takes some nanoseconds.
const CHECK_EVERY: u32 = 128;

/// Copying this many bytes to new memory takes about as long as making a small object.
const BYTES_LIKE_AN_OBJECT: usize = 256;

impl Default for Yielder<'_> {
    /// The lock is kept.
    fn default() -> Self {
        Self::with(Mode::Nothing)
    }
}

impl<'a> Yielder<'a> {
    /// The lock is yielded after each time slice.
    pub(crate) fn yielding() -> Self {
        Self::with(Mode::Yield)
    }

    /// As the caller of an operation chose. If the lock is never to be released, checks only run signal
    /// handlers.
    pub(crate) fn of(release: Release) -> Self {
        Self::with(if release == Release::NEVER { Mode::Signals } else { Mode::Yield })
    }

    /// For the objects that are read before a run and made after it.
    pub(crate) fn around(run: &Region<'a>) -> Self {
        Self::of(run.release).cancel(run.cancel)
    }

    const fn with(mode: Mode) -> Self {
        Self { until_check: CHECK_EVERY, mode, cancel: None }
    }

    /// Lets `cancel` end the call from another thread.
    pub(crate) const fn cancel(self, cancel: Option<&'a Cancel>) -> Self {
        Self { cancel, ..self }
    }

    /// One that does the same at its checks, for work between the objects that this one counts.
    pub(crate) const fn another(&self) -> Self {
        Self { until_check: CHECK_EVERY, ..*self }
    }

    /// Counts an object; called before it is made. Raises the exception that a signal handler raises, and
    /// `CancelledError` if the call was cancelled.
    #[inline(always)]
    pub(crate) fn tick(&mut self, py: Python<'_>) -> PyResult<()> {
        self.until_check -= 1;
        if self.until_check == 0 { self.check_now(py) } else { Ok(()) }
    }

    /// As [`tick`](Self::tick), for work that takes as long as making `objects` small objects.
    #[inline]
    pub(crate) fn tick_many(&mut self, py: Python<'_>, objects: usize) -> PyResult<()> {
        if self.passes(objects) { self.check_now(py) } else { Ok(()) }
    }

    /// As [`tick`](Self::tick), for an object to which `bytes` bytes are copied.
    #[inline]
    pub(crate) fn tick_bytes(&mut self, py: Python<'_>, bytes: usize) -> PyResult<()> {
        if bytes < BYTES_LIKE_AN_OBJECT {
            self.tick(py)
        } else {
            self.tick_many(py, 1 + bytes / BYTES_LIKE_AN_OBJECT)
        }
    }

    /// Makes the next object count as much as copying `bytes` bytes.
    #[inline]
    pub(crate) fn charge(&mut self, bytes: usize) {
        let objects = u32::try_from(bytes / BYTES_LIKE_AN_OBJECT).unwrap_or(u32::MAX);
        self.until_check = self.until_check.saturating_sub(objects).max(1);
    }

    /// As [`tick`](Self::tick), for code that cannot raise: signal handlers do not run.
    #[inline]
    pub(crate) fn tick_quietly(&mut self, py: Python<'_>) {
        if self.passes(1) {
            self.until_check = CHECK_EVERY;
            if self.mode == Mode::Yield {
                region::step_aside_in_call(py);
            }
        }
    }

    #[inline]
    fn passes(&mut self, objects: usize) -> bool {
        let objects = u32::try_from(objects).unwrap_or(u32::MAX);
        self.until_check = self.until_check.saturating_sub(objects);
        self.until_check == 0
    }

    #[cold]
    pub(crate) fn check_now(&mut self, py: Python<'_>) -> PyResult<()> {
        self.until_check = CHECK_EVERY;
        if self.cancel.is_some_and(Cancel::cancelled) {
            return Err(cancelled(py));
        }
        match self.mode {
            Mode::Nothing => Ok(()),
            Mode::Signals => py.check_signals(),
            Mode::Yield => region::yield_in_call(py),
        }
    }
}
