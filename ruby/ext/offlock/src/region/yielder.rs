//! Yields the lock in the middle of long work that keeps it, such as making many objects: after each time slice
//! to a waiting thread, which Ruby itself would make wait for a tenth of a second. Handles interrupts, too.

use magnus::Error;
use magnus::rb_sys::protect;
use offlock_core::time_slice;

use super::{release, yielding};

/// The number of units of work between two checks of the thread's time slice. A unit takes 10 to 100 ns.
const LOOK_EVERY: usize = 512;

/// The number of copied bytes that count as a unit of work.
const BYTES: usize = 256;

/// Counts one piece of work, which may be interrupted and holds no other lock.
pub(crate) struct Yielder {
    /// The units of work until the next check.
    left: usize,
}

impl Yielder {
    /// A counter that has counted no work yet.
    pub(crate) const fn new() -> Self {
        Self { left: LOOK_EVERY }
    }

    /// Counts work, where one unit is the cost of making a small object. Returns whether other threads should
    /// run now.
    #[inline]
    pub(crate) fn is_due(&mut self, work: usize) -> bool {
        if self.left > work {
            self.left -= work;
            return false;
        }
        self.left = LOOK_EVERY;
        time_slice::look_is_due()
    }

    /// The units of work in copying `bytes` bytes.
    #[inline]
    pub(crate) const fn copying(bytes: usize) -> usize {
        bytes / BYTES
    }

    /// Counts work, and lets other threads run when it is time.
    ///
    /// # Errors
    ///
    /// The exception that an interrupt raised.
    #[inline]
    pub(crate) fn tick(&mut self, work: usize) -> Result<(), Error> {
        if self.is_due(work) { self.yield_lock() } else { Ok(()) }
    }

    /// Lets other threads run if the time slice is over, and handles interrupts.
    #[cold]
    pub(crate) fn yield_lock(&mut self) -> Result<(), Error> {
        protect(|| {
            // SAFETY: the lock is held; exceptions are caught here.
            unsafe { self.yield_or_raise() };
            rb_sys::Qnil as rb_sys::VALUE
        })?;
        Ok(())
    }

    /// Returns whether `yield_lock` would let other threads run or handle an interrupt.
    #[cold]
    pub(crate) fn has_to_yield(&self) -> bool {
        release::is_interrupted() || yielding::is_due_in_call()
    }

    /// Lets other threads run if the time slice is over, and handles interrupts: for code that Ruby calls and
    /// that owns no value that needs dropping.
    ///
    /// # Safety
    /// The lock is held. Interrupts raise, which skips destructors.
    #[cold]
    pub(crate) unsafe fn yield_or_raise(&mut self) {
        yielding::yield_if_due_in_call();
        // SAFETY: the contract of this function.
        unsafe { rb_sys::rb_thread_check_ints() };
    }
}
