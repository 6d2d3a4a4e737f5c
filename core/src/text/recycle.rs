//! Vectors that are used again. To allocate memory from the system and free it, call after call, takes longer than to
//! fill it.

use std::sync::Mutex;

use crate::memory::{self, OutOfMemory};

/// How many bytes are kept of each kind.
const KEPT: usize = 16 << 20;

/// Vectors of one capacity that nobody uses.
pub(super) struct Recycler<T> {
    vectors: Mutex<Vec<Vec<T>>>,
    capacity: usize,
}

impl<T> Recycler<T> {
    pub(super) const fn new(capacity: usize) -> Self {
        Self { vectors: Mutex::new(Vec::new()), capacity }
    }

    /// An empty vector with room for `length` items. One for less than half of what the others have is made to measure.
    pub(super) fn take(&self, length: usize) -> Result<Vec<T>, OutOfMemory> {
        if length <= self.capacity / 2 || length > self.capacity {
            return memory::with_room(length);
        }
        // Rather allocate than wait.
        let spare = self.vectors.try_lock().ok().and_then(|mut vectors| vectors.pop());
        spare.map_or_else(|| memory::with_room(self.capacity), Ok)
    }

    /// Keeps a vector for later, unless there are enough, or it is not of those.
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
