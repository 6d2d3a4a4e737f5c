//! Threads that share a stream take turns.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;

use crate::errors::WithMessage;

/// What only one thread at a time may use.
pub(super) struct Turns<T> {
    /// Who has the turn: the address of something that each thread has its own of, 0 for nobody.
    holder: AtomicUsize,
    inner: Mutex<T>,
}

impl<T> Turns<T> {
    pub(super) const fn new(inner: T) -> Self {
        Self { holder: AtomicUsize::new(0), inner: Mutex::new(inner) }
    }

    /// Waits, off the interpreter lock, until no other thread has the turn.
    ///
    /// `RuntimeError` when this thread has it already: a signal handler that uses the stream it interrupted.
    pub(super) fn take(&self, py: Python<'_>) -> PyResult<Turn<'_, T>> {
        let me = this_thread();
        if self.holder.load(Ordering::Relaxed) == me {
            return Err(PyRuntimeError::with_message(
                "a signal handler uses the stream whose work it interrupted",
            ));
        }
        let inner = self.inner.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        self.holder.store(me, Ordering::Relaxed);
        Ok(Turn { holder: &self.holder, inner })
    }
}

fn this_thread() -> usize {
    thread_local!(static MARK: u8 = const { 0 });
    MARK.with(|mark| std::ptr::from_ref(mark).addr())
}

/// The turn of one thread; it ends when this is dropped.
pub(super) struct Turn<'a, T> {
    holder: &'a AtomicUsize,
    inner: MutexGuard<'a, T>,
}

impl<T> Deref for Turn<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T> DerefMut for Turn<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inner
    }
}

impl<T> Drop for Turn<'_, T> {
    fn drop(&mut self) {
        self.holder.store(0, Ordering::Relaxed);
    }
}
