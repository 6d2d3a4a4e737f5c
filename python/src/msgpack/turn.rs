//! What one call at a time may use, of an object that several threads may hold and that callbacks may get at.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::thread;
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::errors::WithMessage;

/// Something that one call at a time may use.
///
/// A call that finds it in use raises `RuntimeError`, as with the originals: it comes from a callback of the one that uses
/// it, or that one waits for a callback, or for a file. But where nothing runs meanwhile except a build that now and then
/// lets others have the lock, calls of other threads wait, as they would if the lock were not let go.
pub(super) struct Turn<T> {
    inner: Mutex<T>,
    /// The thread that uses it, or used it last, if others may wait for that; else 0.
    user: AtomicU64,
    message: &'static str,
}

/// Between two looks whether it is free.
const WAIT: Duration = Duration::from_micros(100);

impl<T: Default> Turn<T> {
    /// A default value. `message` is what those are told who find it in use.
    pub(super) fn new(message: &'static str) -> Self {
        Self { inner: Mutex::default(), user: AtomicU64::new(0), message }
    }
}

impl<T> Turn<T> {
    /// Takes it, as soon as it is free.
    #[inline]
    pub(super) fn take(&self, py: Python<'_>) -> PyResult<Taken<'_, T>> {
        loop {
            match self.try_take() {
                Some(taken) => return Ok(taken),
                None => self.wait(py)?,
            }
        }
    }

    /// Takes it, if it is free.
    #[inline]
    pub(super) fn try_take(&self) -> Option<Taken<'_, T>> {
        let guard = match self.inner.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        };
        guard.map(|guard| {
            self.user.store(0, Ordering::Release);
            Taken { turn: self, guard }
        })
    }

    /// Waits a little, if waiting is of use.
    #[cold]
    fn wait(&self, py: Python<'_>) -> PyResult<()> {
        let user = self.user.load(Ordering::Acquire);
        if user == 0 || user == this_thread() {
            return Err(self.in_use());
        }
        py.detach(|| thread::sleep(WAIT));
        py.check_signals()
    }

    /// What those are told who find it in use.
    #[cold]
    pub(super) fn in_use(&self) -> PyErr {
        PyRuntimeError::with_message(self.message)
    }
}

/// Something that was taken; given back when this is dropped.
pub(super) struct Taken<'a, T> {
    turn: &'a Turn<T>,
    guard: MutexGuard<'a, T>,
}

impl<T> Taken<'_, T> {
    /// Says whether calls of other threads are to wait: only if nothing that they could be needed for runs meanwhile.
    #[inline]
    pub(super) fn others_wait(&self, wait: bool) {
        self.turn.user.store(if wait { this_thread() } else { 0 }, Ordering::Release);
    }
}

impl<T> Deref for Taken<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> DerefMut for Taken<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

/// A number of the calling thread's own, other than 0.
#[inline]
fn this_thread() -> u64 {
    thread_local!(static MARK: u8 = const { 0 });
    MARK.try_with(|mark| std::ptr::from_ref(mark).addr() as u64).unwrap_or(1)
}
