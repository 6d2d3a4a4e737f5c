//! Recycled vectors. Allocating memory from the system and freeing it at each call takes longer than filling
//! it.
//!
//! A [`Recycler`] is a static that all threads share. This is safe: a vector is owned by the thread that took
//! it, and no thread waits for the mutex, so a fork while another thread holds it costs the child only the
//! recycled memory.

use std::sync::Mutex;

use crate::memory::{self, OutOfMemory};

/// The most bytes that are kept of each kind.
const KEPT: usize = 16 << 20;

/// Vectors of one capacity that are not in use.
pub(super) struct Recycler<T> {
    vectors: Mutex<Vec<Vec<T>>>,
    capacity: usize,
}

impl<T> Recycler<T> {
    pub(super) const fn new(capacity: usize) -> Self {
        Self { vectors: Mutex::new(Vec::new()), capacity }
    }

    /// An empty vector with capacity for `length` items. If that is at most half of the recycled capacity,
    /// the vector is allocated.
    pub(super) fn take(&self, length: usize) -> Result<Vec<T>, OutOfMemory> {
        if length <= self.capacity / 2 || length > self.capacity {
            return memory::with_capacity(length);
        }
        // If another thread holds the lock, allocate instead of waiting.
        let spare = self.vectors.try_lock().ok().and_then(|mut vectors| vectors.pop());
        spare.map_or_else(|| memory::with_capacity(self.capacity), Ok)
    }

    /// Keeps a vector, unless there are enough or it has another capacity.
    pub(super) fn give(&self, mut vector: Vec<T>) {
        if vector.capacity() != self.capacity {
            return;
        }
        if let Ok(mut vectors) = self.vectors.try_lock()
            && (vectors.len() + 1) * self.capacity * size_of::<T>() <= KEPT
        {
            vector.clear();
            vectors.push(vector);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_given_is_taken_again_and_empty() {
        let spare = Recycler::<u16>::new(1000);
        let mut vector = spare.take(501).unwrap();
        assert_eq!(vector.capacity(), 1000);
        vector.resize(501, 7);
        let address = vector.as_ptr();
        spare.give(vector);
        let again = spare.take(1000).unwrap();
        assert_eq!((again.as_ptr(), again.len()), (address, 0));
        let other = spare.take(600).unwrap();
        assert_ne!(other.as_ptr(), address);
    }

    #[test]
    fn other_sizes_are_made_to_measure_and_not_kept() {
        let spare = Recycler::<u8>::new(1000);
        for length in [0, 1, 500, 1001] {
            let vector = spare.take(length).unwrap();
            assert_eq!(vector.capacity(), length);
            spare.give(vector);
        }
        assert!(spare.vectors.lock().unwrap().is_empty());
    }

    #[test]
    fn no_more_is_kept_than_it_should_be() {
        let spare = Recycler::<u32>::new(KEPT / 16);
        (0..9).for_each(|_| spare.give(Vec::with_capacity(KEPT / 16)));
        assert_eq!(spare.vectors.lock().unwrap().len(), 4);
    }
}
