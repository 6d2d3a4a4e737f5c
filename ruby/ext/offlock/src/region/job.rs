//! Work without the interpreter lock that can be prevented from running once no thread waits for it.

use std::ffi::c_void;
use std::ptr;
use std::sync::{Condvar, Mutex, MutexGuard};

use magnus::Error;
use magnus::rb_sys::protect;
use offlock_core::SpinHint;

use super::release::{FLAGS, unpoisoned};
use crate::cruby::ractor;

/// How the lock of the main Ractor passes from one of our threads to the next. In another Ractor a thread is
/// mostly alone with its lock.
static SPIN_HINT: SpinHint = SpinHint::new();

/// Work to be done without the lock, at most once, by the first thread that runs it.
pub(super) struct Job {
    body: *mut (dyn FnMut() + Send),
    unblock: *const (dyn Fn() + Sync),
    spin_hint: Option<&'static SpinHint>,
    phase: Mutex<Phase>,
    ended: Condvar,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    Running,
    Closed,
}

// SAFETY: `body` is `Send`, and only the thread that changes the state from `Open` to `Running` calls it;
// `unblock` is `Sync`; the rest is a mutex and a condition variable.
unsafe impl Send for Job {}
// SAFETY: the threads that share a job change it under its mutex, as described above.
unsafe impl Sync for Job {}

impl Job {
    /// Call `close` before the closures go out of scope.
    pub(super) fn new<'a>(
        body: &'a mut (dyn FnMut() + Send + 'a),
        unblock: &'a (dyn Fn() + Sync + 'a),
    ) -> Self {
        let body = ptr::from_mut(body);
        let unblock = ptr::from_ref(unblock);
        // SAFETY: this only erases the lifetimes, see above.
        let (body, unblock) = unsafe {
            (
                std::mem::transmute::<*mut (dyn FnMut() + Send + 'a), *mut (dyn FnMut() + Send)>(body),
                std::mem::transmute::<*const (dyn Fn() + Sync + 'a), *const (dyn Fn() + Sync)>(unblock),
            )
        };
        Self {
            body,
            unblock,
            spin_hint: ractor::is_main().then_some(&SPIN_HINT),
            phase: Mutex::new(Phase::Open),
            ended: Condvar::new(),
        }
    }

    /// Releases the lock of the calling thread and calls the body, unless the job is closed or an interrupt
    /// is pending.
    pub(super) fn run_released(&self) -> Result<(), Error> {
        let this = ptr::from_ref(self).cast_mut().cast();
        protect(|| {
            // SAFETY: the calling thread holds the lock, and `self` outlives the call. An exception of a
            // fiber scheduler is caught here.
            unsafe { rb_sys::rb_nogvl(Some(Self::released), this, Some(Self::unblock), this, FLAGS) };
            if let Some(spin_hint) = self.spin_hint {
                spin_hint.acquired();
            }
            rb_sys::Qnil as rb_sys::VALUE
        })?;
        Ok(())
    }

    /// The callback of a thread that has just released its lock and re-acquires it afterwards.
    unsafe extern "C" fn released(this: *mut c_void) -> *mut c_void {
        // SAFETY: `run_released` passed `self`.
        let this = unsafe { &*this.cast::<Self>() };
        if let Some(spin_hint) = this.spin_hint {
            spin_hint.released();
        }
        this.run();
        if let Some(spin_hint) = this.spin_hint {
            spin_hint.spin();
        }
        ptr::null_mut()
    }

    /// Runs the body unless the job was closed or has already run.
    pub(super) fn run(&self) {
        if self.advance(Phase::Open, Phase::Running) {
            // SAFETY: the state was `Open`, so `close` has not returned and the closure is alive, and no
            // other thread calls it.
            unsafe { (*self.body)() };
            self.advance(Phase::Running, Phase::Closed);
            self.ended.notify_all();
        }
    }

    pub(super) unsafe extern "C" fn unblock(this: *mut c_void) {
        // SAFETY: `run_released` or an offer passed `self`. Ruby calls this only while `rb_nogvl` has not
        // returned, or while the operation that keeps `self` exists.
        let this = unsafe { &*this.cast::<Self>() };
        this.interrupt();
    }

    /// Calls `unblock` with the state locked, so that the job cannot be closed in the meantime. The body may
    /// be running or about to run.
    fn interrupt(&self) {
        let phase = self.phase();
        if *phase != Phase::Closed {
            // SAFETY: the job is not closed, so the closure is alive.
            unsafe { (*self.unblock)() };
        }
    }

    pub(super) fn is_open(&self) -> bool {
        *self.phase() == Phase::Open
    }

    /// Prevents the body from running. If it is running, interrupts it and waits for its end.
    pub(super) fn close(&self) {
        self.advance(Phase::Open, Phase::Closed);
        self.interrupt();
        let running = |phase: &mut Phase| *phase == Phase::Running;
        drop(unpoisoned(self.ended.wait_while(self.phase(), running)));
    }

    fn advance(&self, from: Phase, to: Phase) -> bool {
        let mut phase = self.phase();
        let due = *phase == from;
        if due {
            *phase = to;
        }
        due
    }

    fn phase(&self) -> MutexGuard<'_, Phase> {
        unpoisoned(self.phase.lock())
    }
}
