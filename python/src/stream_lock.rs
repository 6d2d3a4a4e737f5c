//! A mutex for a stream that several threads share.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;

use crate::error::WithMessage;

/// A value that one thread at a time may use. A thread that waits for it releases the interpreter lock.
pub(crate) struct StreamLock<T> {
    /// The thread that holds the lock, as [`this_thread`] numbers them; 0 if none does.
    owner: AtomicUsize,
    inner: Mutex<T>,
}

impl<T> StreamLock<T> {
    pub(crate) const fn new(inner: T) -> Self {
        Self { owner: AtomicUsize::new(0), inner: Mutex::new(inner) }
    }

    /// Waits until no other thread holds the lock, and acquires it.
    ///
    /// `RuntimeError` if this thread holds it already: a signal handler uses the stream whose work it
    /// interrupted.
    pub(crate) fn lock(&self, py: Python<'_>) -> PyResult<StreamGuard<'_, T>> {
        let this = this_thread();
        if self.owner.load(Ordering::Relaxed) == this {
            return Err(PyRuntimeError::with_message(
                "a signal handler uses the stream whose work it interrupted",
            ));
        }
        let inner = self.inner.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        self.owner.store(this, Ordering::Relaxed);
        Ok(StreamGuard { owner: &self.owner, inner })
    }
}

/// The address of a thread-local variable, which identifies the thread.
fn this_thread() -> usize {
    thread_local!(static MARK: u8 = const { 0 });
    MARK.with(|mark| std::ptr::from_ref(mark).addr())
}

/// The lock, held by one thread until this is dropped.
pub(crate) struct StreamGuard<'a, T> {
    owner: &'a AtomicUsize,
    inner: MutexGuard<'a, T>,
}

impl<T> Deref for StreamGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T> DerefMut for StreamGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inner
    }
}

impl<T> Drop for StreamGuard<'_, T> {
    fn drop(&mut self) {
        self.owner.store(0, Ordering::Relaxed);
    }
}
