//! Leaving the interpreter lock and coming back: the foreign functions behind the region.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use magnus::rb_sys::protect;
use magnus::{Error, Ruby};
use offlock_core::SpinHint;

use super::unpoisoned;
use crate::main_ractor;

mod offer;

/// Return at once when interrupts are pending, before and after the work, instead of raising over live Rust values.
const FLAGS: c_int = 0x1; // INTR_FAIL

pub(super) use offer::define;

/// Calls `body` without the lock, or not at all when an interrupt is pending.
///
/// `unblock` is called, at any time until this returns and from any thread, when somebody wants the thread back:
/// it has to make `body` return soon. An error is an exception that a fiber scheduler raised. Neither closure may
/// panic.
pub(super) fn leave(
    ruby: &Ruby,
    body: &mut (dyn FnMut() + Send),
    unblock: &(dyn Fn() + Sync),
) -> Result<(), Error> {
    let passage = Arc::new(Passage::new(body, unblock));
    let outcome = match offer::offer(ruby, &passage) {
        Ok(()) if passage.is_open() => passage.enter(),
        offered => offered,
    };
    passage.close();
    outcome
}

/// Handles pending interrupts as after an operation that blocks: those deferred with
/// `Thread.handle_interrupt(… => :on_blocking)` are due, too.
pub(super) fn handle_interrupts(_ruby: &Ruby) -> Result<(), Error> {
    protect(|| {
        // SAFETY: the lock is held, and `nothing` may run without it. What the interrupts raise is caught here.
        unsafe { rb_sys::rb_thread_call_without_gvl(Some(nothing), ptr::null_mut(), None, ptr::null_mut()) };
        rb_sys::Qnil as rb_sys::VALUE
    })?;
    Ok(())
}

/// What is done without the lock where only giving it up matters.
unsafe extern "C" fn nothing(_: *mut c_void) -> *mut c_void {
    ptr::null_mut()
}

/// Handles pending interrupts and lets other threads have their turn.
///
/// Must be called with the lock held.
pub(super) fn check_interrupts() -> Result<(), Error> {
    protect(|| {
        // SAFETY: the lock is held. What the interrupts raise is caught here.
        unsafe { rb_sys::rb_thread_check_ints() };
        rb_sys::Qnil as rb_sys::VALUE
    })?;
    Ok(())
}

/// Releases the lock and takes it again, unless an interrupt is pending, which is left so. Must be called with the lock held.
///
/// Ruby hands the lock to the thread that has waited longest, which makes this thread the last in the queue: no pause is
/// needed.
pub(super) fn release_and_take() {
    // SAFETY: the lock is held, and `nothing` may run without it. With these flags nothing is raised.
    unsafe { rb_sys::rb_nogvl(Some(nothing), ptr::null_mut(), None, ptr::null_mut(), FLAGS) };
}

/// Whether the thread has interrupts to handle. Must be called with the lock held.
pub(super) fn is_interrupted() -> bool {
    // SAFETY: the lock is held.
    unsafe { rb_sys::rb_thread_interrupted(rb_sys::rb_thread_current()) != 0 }
}

/// Whether the Ractor has no other thread. Must be called with the lock held.
pub(super) fn is_only_thread() -> bool {
    // SAFETY: the lock is held.
    unsafe { rb_sys::rb_thread_alone() != 0 }
}

/// How the lock of the main Ractor goes from one of us to the next. In another one a thread is mostly alone with its lock.
static SPIN_HINT: SpinHint = SpinHint::new();

/// A way out of the lock and back that is taken at most once.
struct Passage {
    body: *mut (dyn FnMut() + Send),
    unblock: *const (dyn Fn() + Sync),
    spin_hint: Option<&'static SpinHint>,
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    Running,
    Closed,
}

// SAFETY: `body` is `Send` and called by the one thread that turns the state from `Open` to `Running`; `unblock` is
// `Sync`; the rest is a mutex and a condition variable.
unsafe impl Send for Passage {}
// SAFETY: as above.
unsafe impl Sync for Passage {}

impl Passage {
    /// `close` has to be called before the closures go out of scope.
    fn new<'a>(body: &'a mut (dyn FnMut() + Send + 'a), unblock: &'a (dyn Fn() + Sync + 'a)) -> Self {
        let body = ptr::from_mut(body);
        let unblock = ptr::from_ref(unblock);
        // SAFETY: only the lifetimes are lost, see above.
        let (body, unblock) = unsafe {
            (
                std::mem::transmute::<*mut (dyn FnMut() + Send + 'a), *mut (dyn FnMut() + Send)>(body),
                std::mem::transmute::<*const (dyn Fn() + Sync + 'a), *const (dyn Fn() + Sync)>(unblock),
            )
        };
        Self {
            body,
            unblock,
            spin_hint: main_ractor::is_current().then_some(&SPIN_HINT),
            state: Mutex::new(State::Open),
            ended: Condvar::new(),
        }
    }

    /// Releases the lock of the calling thread and calls the body, unless the passage is closed or an interrupt is pending.
    fn enter(&self) -> Result<(), Error> {
        let this = ptr::from_ref(self).cast_mut().cast();
        protect(|| {
            // SAFETY: the calling thread holds the lock, and `self` outlives the call. What a fiber scheduler
            // raises is caught here.
            unsafe { rb_sys::rb_nogvl(Some(Self::run), this, Some(Self::unblock), this, FLAGS) };
            if let Some(spin_hint) = self.spin_hint {
                spin_hint.took();
            }
            rb_sys::Qnil as rb_sys::VALUE
        })?;
        Ok(())
    }

    /// To be called by a thread that has just given up its lock and takes it again afterwards.
    unsafe extern "C" fn run(this: *mut c_void) -> *mut c_void {
        // SAFETY: `enter` passed `self`.
        let this = unsafe { &*this.cast::<Self>() };
        if let Some(spin_hint) = this.spin_hint {
            spin_hint.gave();
        }
        this.work();
        if let Some(spin_hint) = this.spin_hint {
            spin_hint.claim();
        }
        ptr::null_mut()
    }

    /// Runs the body, if that is still wanted.
    fn work(&self) {
        if self.advance(State::Open, State::Running) {
            // SAFETY: the state was `Open`, so `close` has not returned and the closure is alive, and nobody else calls it.
            unsafe { (*self.body)() };
            self.advance(State::Running, State::Closed);
            self.ended.notify_all();
        }
    }

    unsafe extern "C" fn unblock(this: *mut c_void) {
        // SAFETY: `enter` or an offer passed `self`. Ruby calls this only while `rb_nogvl` has not returned, or while the
        // operation that keeps `self` is there.
        let this = unsafe { &*this.cast::<Self>() };
        this.interrupt();
    }

    /// Calls `unblock` with the state held, so that the passage cannot be closed meanwhile. The body may be about to
    /// run as well as running.
    fn interrupt(&self) {
        let state = self.state();
        if *state != State::Closed {
            // SAFETY: the passage is not closed, so the closure is alive.
            unsafe { (*self.unblock)() };
        }
    }

    fn is_open(&self) -> bool {
        *self.state() == State::Open
    }

    /// Makes sure that the body does not run and never will again.
    fn close(&self) {
        self.advance(State::Open, State::Closed);
        self.interrupt();
        let running = |state: &mut State| *state == State::Running;
        drop(unpoisoned(self.ended.wait_while(self.state(), running)));
    }

    fn advance(&self, from: State, to: State) -> bool {
        let mut state = self.state();
        let due = *state == from;
        if due {
            *state = to;
        }
        due
    }

    fn state(&self) -> MutexGuard<'_, State> {
        unpoisoned(self.state.lock())
    }
}
