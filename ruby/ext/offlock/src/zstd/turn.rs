//! Admits one thread at a time to a stream.

use std::cell::Cell;
use std::sync::{Mutex, MutexGuard, TryLockError};

use magnus::value::{InnerValue, Opaque};
use magnus::{Error, Ruby, gc};

use crate::error::exception;

/// A mutex of Ruby's, in which a thread waits without the lock, and a fiber without its thread.
#[derive(Default)]
pub(super) struct Turn(Cell<Option<Opaque<magnus::Mutex>>>);

impl Turn {
    /// Makes the mutex.
    pub(super) fn prepare(&self, ruby: &Ruby) {
        self.0.set(Some(ruby.mutex_new().into()));
    }

    pub(super) fn mark(&self, marker: &gc::Marker) {
        if let Some(mutex) = self.0.get() {
            marker.mark(mutex);
        }
    }

    /// Calls `work` once it is this thread's turn, if the stream has a `state`, which no thread uses then.
    ///
    /// Ruby handles no interrupt between the end of `work` and the return of the native method that calls this, so what
    /// `work` returns is not lost.
    pub(super) fn take<S, T>(
        &self,
        ruby: &Ruby,
        state: &Mutex<Option<S>>,
        work: impl FnOnce() -> Result<T, Error>,
    ) -> Result<T, Error> {
        let Some(mutex) = self.0.get() else { return Err(uninitialized(ruby)) };
        let mutex = mutex.get_inner_with(ruby);
        mutex.lock()?;
        let made = state_of(ruby, state).map(drop).and_then(|()| work());
        mutex.unlock()?;
        made
    }
}

/// The state of a stream, for the thread whose turn it is.
pub(super) fn state_of<'a, T>(
    ruby: &Ruby,
    state: &'a Mutex<Option<T>>,
) -> Result<MutexGuard<'a, Option<T>>, Error> {
    match state.try_lock() {
        Ok(state) if state.is_some() => Ok(state),
        Err(TryLockError::Poisoned(poisoned)) if poisoned.get_ref().is_some() => Ok(poisoned.into_inner()),
        Ok(_) | Err(TryLockError::Poisoned(_)) => Err(uninitialized(ruby)),
        Err(TryLockError::WouldBlock) => Err(exception(
            ruby,
            "Offlock::Zstd::Error",
            "the stream was at work on another thread when the process forked".into(),
        )),
    }
}

fn uninitialized(ruby: &Ruby) -> Error {
    Error::new(ruby.exception_type_error(), "uninitialized stream: super was not called, or it is a copy")
}
