//! State shared between threads that stays usable in the child of a fork.
//!
//! `fork` copies one thread. A lock that another thread held at that moment stays locked in the child
//! forever. So shared state is kept in [`Remade`] values, which the child forgets (and leaks) instead of
//! locking them.

#![allow(unsafe_code)]

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Runs `handler` in the child after each later fork of this process, after the handlers that were registered
/// before it.
#[cfg(unix)]
pub fn after_fork_in_child(handler: extern "C" fn()) {
    // SAFETY: the handler is a function of this library, which is never unloaded once it records.
    unsafe { libc::pthread_atfork(None, None, Some(handler as unsafe extern "C" fn())) };
}

/// Runs `before` in the thread that forks, before each later fork of this process, and `after` in the parent
/// after it.
#[cfg(unix)]
pub fn around_forks(before: extern "C" fn(), after: extern "C" fn()) {
    // SAFETY: as above.
    unsafe {
        libc::pthread_atfork(
            Some(before as unsafe extern "C" fn()),
            Some(after as unsafe extern "C" fn()),
            None,
        )
    };
}

/// This system has no fork.
#[cfg(not(unix))]
pub fn around_forks(_before: extern "C" fn(), _after: extern "C" fn()) {}

/// This system has no fork.
#[cfg(not(unix))]
pub fn after_fork_in_child(_handler: extern "C" fn()) {}

/// A value that is made on first use and can be forgotten and made again, which the child of a fork does.
///
/// References to a value stay valid after it is forgotten: forgotten values are leaked, because after a fork
/// their locks may be held by threads that no longer exist. Reading a value takes one atomic load. Two
/// threads that make the value at once both call `make`; the second one drops its result.
pub struct Remade<T>(AtomicPtr<T>);

impl<T: Sync + 'static> Remade<T> {
    /// No value yet.
    pub const fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// The current value, if there is one.
    pub fn get(&self) -> Option<&'static T> {
        // SAFETY: the pointer is null or comes from `Box::into_raw` in `get_or_make` and is never freed.
        unsafe { self.0.load(Ordering::Acquire).as_ref() }
    }

    /// The current value; calls `make` if there is none.
    pub fn get_or_make(&self, make: impl FnOnce() -> T) -> &'static T {
        if let Some(value) = self.get() {
            return value;
        }
        let made = Box::into_raw(Box::new(make()));
        match self.0.compare_exchange(ptr::null_mut(), made, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: just allocated, published once, never freed.
            Ok(_) => unsafe { &*made },
            Err(first) => {
                // SAFETY: `made` lost the race and was never visible to other threads; `first` is as in
                // `get`.
                unsafe {
                    drop(Box::from_raw(made));
                    &*first
                }
            }
        }
    }

    /// Forgets the current value without touching it.
    pub fn forget(&self) {
        self.0.store(ptr::null_mut(), Ordering::Release);
    }
}

impl<T: Sync + 'static> Default for Remade<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// Locks a mutex, even if a thread panicked while it held the lock.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_made_once_until_it_is_forgotten() {
        static VALUE: Remade<u32> = Remade::new();
        assert!(VALUE.get().is_none());
        assert_eq!(*VALUE.get_or_make(|| 1), 1);
        let first = VALUE.get_or_make(|| 2);
        assert_eq!(*first, 1);
        VALUE.forget();
        assert_eq!(*VALUE.get_or_make(|| 3), 3);
        assert_eq!(*first, 1, "what was handed out stays valid");
    }
}
