//! A field of an object that is set once.

use std::ops::Deref;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Empty until it is set to a `T`.
///
/// All zeros mean empty, which no type of the standard library promises. CPython may drop an object of a
/// Python subclass before PyO3 has initialized it: when there is no memory for its `__dict__`.
pub(crate) struct Once<T>(AtomicPtr<T>);

impl<T> Default for Once<T> {
    fn default() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }
}

impl<T> Once<T> {
    pub(crate) fn get(&self) -> Option<&T> {
        // SAFETY: null, or from `Arc::into_raw` in `set`; never changed after that, and dropped only with
        // `self`.
        unsafe { self.0.load(Ordering::Acquire).as_ref() }
    }

    /// Returns `value` if there is one already.
    pub(crate) fn set(&self, value: Arc<T>) -> Result<(), Arc<T>> {
        let new = Arc::into_raw(value).cast_mut();
        match self.0.compare_exchange(ptr::null_mut(), new, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => Ok(()),
            // SAFETY: from `Arc::into_raw` just above, and not shared yet.
            Err(_) => Err(unsafe { Arc::from_raw(new) }),
        }
    }

    /// Another reference to the value.
    pub(crate) fn share(&self) -> Option<Arc<T>> {
        self.get().map(|value| {
            // SAFETY: the pointer of an `Arc` whose reference is held by `self`.
            unsafe {
                Arc::increment_strong_count(value);
                Arc::from_raw(value)
            }
        })
    }
}

impl<T> Drop for Once<T> {
    fn drop(&mut self) {
        let value = *self.0.get_mut();
        if !value.is_null() {
            // SAFETY: the reference that `set` took over.
            drop(unsafe { Arc::from_raw(value) });
        }
    }
}

/// A value in a box, of a Python object that may be dropped before it is initialized: see [`Once`].
pub(crate) struct Boxed<T>(Option<Box<T>>);

impl<T> Boxed<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Some(Box::new(value)))
    }
}

impl<T> Deref for Boxed<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.0.as_deref().expect("an object that Python has was filled")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_value_stays_and_each_is_dropped_once() {
        let (first, second) = (Arc::new(1), Arc::new(2));
        let once = Once::default();
        assert!(once.get().is_none());
        assert!(once.set(Arc::clone(&first)).is_ok());
        assert_eq!(once.set(Arc::clone(&second)), Err(Arc::clone(&second)));
        assert_eq!((once.get(), once.share()), (Some(&1), Some(Arc::clone(&first))));
        drop(once);
        assert_eq!((Arc::strong_count(&first), Arc::strong_count(&second)), (1, 1));
    }
}
