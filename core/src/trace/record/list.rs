//! A lock-free list that only grows.
//!
//! A Treiber stack without removal: a push allocates a link and swings the head to it with compare-and-swap,
//! and a reader follows the links. Since nothing is ever removed or freed, there is no ABA problem and no
//! memory to reclaim.

#![allow(unsafe_code)]

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Values that are added and never removed. They live forever, and reading never waits.
pub(super) struct List<T: 'static>(AtomicPtr<Link<T>>);

struct Link<T: 'static> {
    value: T,
    next: Option<&'static Self>,
}

impl<T: Sync + 'static> List<T> {
    /// No values yet.
    pub(super) const fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    fn last(&self) -> Option<&'static Link<T>> {
        // SAFETY: the pointer is null or was leaked by `push`.
        unsafe { self.0.load(Ordering::Acquire).as_ref() }
    }

    /// Adds a value.
    pub(super) fn push(&self, value: T) -> &'static T {
        let link = Box::leak(Box::new(Link { value, next: None }));
        let added = ptr::from_mut(link);
        loop {
            let last = self.last();
            // SAFETY: just leaked, and invisible to other threads until it is published.
            unsafe { (*added).next = last };
            let last = last.map_or(ptr::null_mut(), |last| ptr::from_ref(last).cast_mut());
            if self.0.compare_exchange(last, added, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                // SAFETY: as above; from here on it is only read.
                return unsafe { &(*added).value };
            }
        }
    }

    /// The values, the latest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &'static T> + use<T> {
        std::iter::successors(self.last(), |link| link.next).map(|link| &link.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_threads_add_at_once_is_all_there() {
        static NUMBERS: List<usize> = List::new();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                scope.spawn(move || {
                    (0..1_000).for_each(|i| assert_eq!(*NUMBERS.push(thread + 4 * i), thread + 4 * i))
                });
            }
        });
        let mut numbers: Vec<usize> = NUMBERS.iter().copied().collect();
        numbers.sort_unstable();
        assert!(numbers.into_iter().eq(0..4_000));
    }
}
