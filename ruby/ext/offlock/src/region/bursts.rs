//! Work under the lock that makes many objects, in bursts: after each time slice another thread that waits gets the lock,
//! for which Ruby itself would let it wait a tenth of a second, and interrupts are handled.

use magnus::Error;
use magnus::rb_sys::protect;
use offlock_core::time_slice;

/// How many units of work are done between two looks at the thread's time slice. A unit takes 10 to 100 ns.
const LOOK_EVERY: usize = 512;

/// How many bytes that are copied are a unit of work.
const BYTES: usize = 256;

/// Tells when a burst is over. For one piece of work, which may be interrupted, and holds no lock of ours meanwhile.
pub(crate) struct Bursts {
    /// The units of work until the next look.
    left: usize,
}

impl Bursts {
    /// The first burst begins.
    pub(crate) const fn new() -> Self {
        Self { left: LOOK_EVERY }
    }

    /// Counts work, of which a unit is to make a small object; whether to let others run.
    #[inline]
    pub(crate) fn is_over(&mut self, work: usize) -> bool {
        if self.left > work {
            self.left -= work;
            return false;
        }
        self.left = LOOK_EVERY;
        time_slice::look_is_due()
    }

    /// The work of copying so many bytes.
    #[inline]
    pub(crate) const fn copying(bytes: usize) -> usize {
        bytes / BYTES
    }

    /// Counts work, and lets others run when the burst is over. An error is an exception that an interrupt raised.
    #[inline]
    pub(crate) fn pass(&mut self, work: usize) -> Result<(), Error> {
        if self.is_over(work) { self.give_way() } else { Ok(()) }
    }

    /// Lets others run if the time slice is over, and handles interrupts.
    #[cold]
    pub(crate) fn give_way(&mut self) -> Result<(), Error> {
        protect(|| {
            // SAFETY: the lock is held; what is raised is caught here.
            unsafe { self.give_way_or_raise() };
            rb_sys::Qnil as rb_sys::VALUE
        })?;
        Ok(())
    }

    /// Whether `give_way` would let others run, or handle an interrupt.
    #[cold]
    pub(crate) fn has_to_give_way(&self) -> bool {
        super::lock::is_interrupted() || super::has_to_step_aside_in_call()
    }

    /// Lets others run if the time slice is over, and handles interrupts: for code that Ruby calls and that owns nothing
    /// which needs dropping.
    ///
    /// # Safety
    /// The lock is held. Interrupts raise, which skips destructors.
    #[cold]
    pub(crate) unsafe fn give_way_or_raise(&mut self) {
        super::step_aside_in_call();
        // SAFETY: the contract of this function.
        unsafe { rb_sys::rb_thread_check_ints() };
    }
}
