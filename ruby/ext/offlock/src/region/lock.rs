//! Leaving the interpreter lock and coming back: the foreign functions behind the region.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use magnus::rb_sys::{FromRawValue, protect};
use magnus::value::ReprValue;
use magnus::{Error, Ruby, Value};
use offlock_core::Handover;

use super::unpoisoned;
use crate::main_ractor;

/// The version of Ruby's API that the extension was built for.
const API: (u32, u32) = (rb_sys::RUBY_API_VERSION_MAJOR, rb_sys::RUBY_API_VERSION_MINOR);

/// Whether the work is offered to the fiber scheduler by us instead of by `rb_nogvl`.
///
/// Ruby 3.4 keeps the record that goes with the offer on the stack of the waiting fiber. When that fiber is
/// raised into (`Timeout`, `Fiber#raise`), the thread that works is left with a dangling pointer. Our
/// [`Passage`] is on the heap and can be closed.
const OFFER: bool = API.0 == 3 && API.1 == 4;

/// Return at once when interrupts are pending, before and after the work, instead of raising over live Rust
/// values; and from 3.5 on, let the fiber scheduler move the work.
const FLAGS: c_int = INTR_FAIL | if API.0 > 3 || API.1 > 4 { OFFLOAD_SAFE } else { 0 };
const INTR_FAIL: c_int = 0x1;
/// Not among the constants of Ruby 3.3.
const OFFLOAD_SAFE: c_int = 0x4;

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
    let outcome = match offer(ruby, &passage) {
        Ok(()) if passage.is_open() => passage.enter(),
        offered => offered,
    };
    passage.close();
    outcome
}

/// Handles pending interrupts as after an operation that blocks: those deferred with
/// `Thread.handle_interrupt(… => :on_blocking)` are due, too.
pub(super) fn handle_interrupts(_ruby: &Ruby) -> Result<(), Error> {
    unsafe extern "C" fn nothing(_: *mut c_void) -> *mut c_void {
        ptr::null_mut()
    }
    protect(|| {
        // SAFETY: the lock is held, and `nothing` may run without it. What the interrupts raise is caught here.
        unsafe { rb_sys::rb_thread_call_without_gvl(Some(nothing), ptr::null_mut(), None, ptr::null_mut()) };
        rb_sys::Qnil as rb_sys::VALUE
    })?;
    Ok(())
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

/// Offers the work to the fiber scheduler of the current fiber, if it has one that wants work.
fn offer(ruby: &Ruby, passage: &Arc<Passage>) -> Result<(), Error> {
    if !OFFER {
        return Ok(());
    }
    // SAFETY: the lock is held.
    let scheduler = unsafe { Value::from_raw(rb_sys::rb_fiber_scheduler_current()) };
    if scheduler.is_nil() || !scheduler.respond_to("blocking_operation_wait", false)? {
        return Ok(());
    }
    let passage = Arc::clone(passage);
    let work = ruby.proc_from_fn(move |_ruby, _arguments, _block| passage.enter());
    scheduler.funcall::<_, _, Value>("blocking_operation_wait", (work,))?;
    Ok(())
}

/// How the lock of the main Ractor goes from one of us to the next. In another one a thread is mostly alone with its lock.
static HANDOVER: Handover = Handover::new();

/// A way out of the lock and back that is taken at most once.
struct Passage {
    body: *mut (dyn FnMut() + Send),
    unblock: *const (dyn Fn() + Sync),
    handover: Option<&'static Handover>,
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
            handover: main_ractor::is_current().then_some(&HANDOVER),
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
            if let Some(handover) = self.handover {
                handover.took();
            }
            rb_sys::Qnil as rb_sys::VALUE
        })?;
        Ok(())
    }

    unsafe extern "C" fn run(this: *mut c_void) -> *mut c_void {
        // SAFETY: `enter` passed `self`.
        let this = unsafe { &*this.cast::<Self>() };
        if this.advance(State::Open, State::Running) {
            if let Some(handover) = this.handover {
                handover.gave();
            }
            // SAFETY: the state was `Open`, so `close` has not returned and the closure is alive, and nobody else calls it.
            unsafe { (*this.body)() };
            if let Some(handover) = this.handover {
                handover.claim();
            }
            this.advance(State::Running, State::Closed);
            this.ended.notify_all();
        }
        ptr::null_mut()
    }

    unsafe extern "C" fn unblock(this: *mut c_void) {
        // SAFETY: `enter` passed `self`, and Ruby calls this only while `rb_nogvl` has not returned.
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
