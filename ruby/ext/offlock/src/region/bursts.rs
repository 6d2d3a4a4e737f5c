//! Work under the lock that makes many objects, in bursts: about every millisecond another thread that waits gets the
//! lock, for which Ruby itself would let it wait a tenth of a second, and interrupts are handled.
//!
//! When nobody waits, that costs less than a microsecond. Beside a thread that computes, a turn takes as long as that
//! thread's time slice; there the next turn comes only after a rest of several times as long, so that this thread gets
//! its share of the time as well. Meanwhile Ruby's own clock ends its time slices, and interrupts are handled still.

use std::time::{Duration, Instant};

use magnus::Error;
use magnus::rb_sys::protect;

/// How long a burst lasts.
const BURST: Duration = Duration::from_millis(1);

/// How many units of work are done between two looks at the clock. A unit takes 10 to 100 ns.
const LOOK_EVERY: usize = 512;

/// How many bytes that are copied are a unit of work.
const BYTES: usize = 256;

/// A turn of others that took longer than this was one of a thread that computes.
const LONG: Duration = Duration::from_millis(2);

/// How many times as long as such a turn nobody else gets one, and how long at most.
const REST: u32 = 4;
const LONGEST_REST: Duration = Duration::from_millis(500);

/// Tells when a burst is over. For one piece of work, which may be interrupted, and holds no lock of ours meanwhile.
pub(crate) struct Bursts {
    /// The units of work until the next look at the clock.
    left: usize,
    /// `None` before the first look, which short work never comes to.
    began: Option<Instant>,
    rests_until: Option<Instant>,
}

impl Bursts {
    /// The first burst begins.
    pub(crate) const fn new() -> Self {
        Self { left: LOOK_EVERY, began: None, rests_until: None }
    }

    /// Counts work, of which a unit is to make a small object; whether the burst is over.
    #[inline]
    pub(crate) fn is_over(&mut self, work: usize) -> bool {
        if self.left > work {
            self.left -= work;
            return false;
        }
        self.look()
    }

    /// The work of copying so many bytes.
    #[inline]
    pub(crate) const fn copying(bytes: usize) -> usize {
        bytes / BYTES
    }

    #[cold]
    fn look(&mut self) -> bool {
        self.left = LOOK_EVERY;
        self.began.get_or_insert_with(Instant::now).elapsed() >= BURST
    }

    /// Counts work, and lets others run when the burst is over. An error is an exception that an interrupt raised.
    #[inline]
    pub(crate) fn pass(&mut self, work: usize) -> Result<(), Error> {
        if self.is_over(work) { self.give_way() } else { Ok(()) }
    }

    /// Lets others run.
    #[cold]
    pub(crate) fn give_way(&mut self) -> Result<(), Error> {
        protect(|| {
            // SAFETY: the lock is held; what is raised is caught here.
            unsafe { self.give_way_or_raise() };
            rb_sys::Qnil as rb_sys::VALUE
        })?;
        Ok(())
    }

    /// Lets others run, for code that Ruby calls and that owns nothing which needs dropping.
    ///
    /// # Safety
    /// The lock is held. Interrupts raise, which skips destructors.
    #[cold]
    pub(crate) unsafe fn give_way_or_raise(&mut self) {
        let before = Instant::now();
        if self.rests_until.is_some_and(|end| before < end) {
            // SAFETY: the contract of this function. Ends the thread's time slice if Ruby says so.
            unsafe { rb_sys::rb_thread_check_ints() };
        } else {
            // SAFETY: as above. Returns at once when no thread is ready to run.
            unsafe { rb_sys::rb_thread_schedule() };
            let turn = before.elapsed();
            if turn > LONG {
                self.rests_until = Some(Instant::now() + (turn * REST).min(LONGEST_REST));
            }
        }
        self.began = Some(Instant::now());
    }
}
