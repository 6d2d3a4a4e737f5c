//! A mutex for the state of an object that several threads and callbacks may use.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::thread;
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::error::WithMessage;

/// A value that one call at a time may use.
///
/// A call that finds it in use raises `RuntimeError`, as with the originals: the call comes from a callback
/// of the call that uses the value, or that call waits for a callback or a file. If the using call only
/// builds objects, and yields the interpreter lock in between, calls of other threads wait instead, as they
/// would if it did not yield.
pub(super) struct ObjectLock<T> {
    inner: Mutex<T>,
    /// The thread that uses it, or used it last, if calls of other threads wait for it; otherwise 0.
    user: AtomicU64,
    message: &'static str,
}

/// How long a thread sleeps before it tries again.
const WAIT: Duration = Duration::from_micros(100);

impl<T: Default> ObjectLock<T> {
    /// Wraps the default value. `message` is that of the `RuntimeError` when the value is in use.
    pub(super) fn new(message: &'static str) -> Self {
        Self { inner: Mutex::default(), user: AtomicU64::new(0), message }
    }
}

impl<T> ObjectLock<T> {
    /// Locks the value, as soon as it is free.
    #[inline]
    pub(super) fn lock(&self, py: Python<'_>) -> PyResult<ObjectGuard<'_, T>> {
        loop {
            match self.try_lock() {
                Some(taken) => return Ok(taken),
                None => self.wait(py)?,
            }
        }
    }

    /// Locks the value, if it is free.
    #[inline]
    pub(super) fn try_lock(&self) -> Option<ObjectGuard<'_, T>> {
        let guard = match self.inner.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        };
        guard.map(|guard| {
            self.user.store(0, Ordering::Release);
            ObjectGuard { lock: self, guard }
        })
    }

    /// Sleeps for a moment, if the value will be released without this call's help.
    #[cold]
    fn wait(&self, py: Python<'_>) -> PyResult<()> {
        let user = self.user.load(Ordering::Acquire);
        if user == 0 || user == this_thread() {
            return Err(self.in_use());
        }
        py.detach(|| thread::sleep(WAIT));
        py.check_signals()
    }

    /// The error of a call that finds the value in use.
    #[cold]
    pub(super) fn in_use(&self) -> PyErr {
        PyRuntimeError::with_message(self.message)
    }
}

/// The value, for one call; unlocked when this is dropped.
pub(super) struct ObjectGuard<'a, T> {
    lock: &'a ObjectLock<T>,
    guard: MutexGuard<'a, T>,
}

impl<T> ObjectGuard<'_, T> {
    /// Sets whether calls of other threads wait: only if this call runs no code that could wait for them.
    #[inline]
    pub(super) fn others_wait(&self, wait: bool) {
        self.lock.user.store(if wait { this_thread() } else { 0 }, Ordering::Release);
    }
}

impl<T> Deref for ObjectGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> DerefMut for ObjectGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

/// A number that identifies the calling thread, other than 0.
#[inline]
fn this_thread() -> u64 {
    thread_local!(static MARK: u8 = const { 0 });
    MARK.try_with(|mark| std::ptr::from_ref(mark).addr() as u64).unwrap_or(1)
}
