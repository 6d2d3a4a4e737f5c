//! The memory of a stream, of which Ruby's garbage collector is told: the more there is, the earlier it runs.

use crate::cruby;

/// The number of bytes that were reported.
#[derive(Default)]
pub(super) struct Reported(usize);

impl Reported {
    /// Reports the memory that is used now. The calling thread must hold the lock.
    pub(super) fn set(&mut self, bytes: usize) {
        if bytes != self.0 {
            cruby::adjust_memory(bytes as isize - self.0 as isize);
            self.0 = bytes;
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.0
    }
}

impl Drop for Reported {
    /// Called by the collector, which holds the lock.
    fn drop(&mut self) {
        self.set(0);
    }
}
