//! Wakes the main thread for a moment, so that it looks for interrupts.
//!
//! Ruby has no function for this that a thread without the lock may call. But signals do just that: Ruby's handler, which is
//! the same for all signals that it handles, notes the signal's number, and wakes the main thread, which then looks for
//! interrupts and for the signals' handlers, and goes on to wait. Here the handler is called as a function, with a number for
//! which Ruby never has a handler: that of the signal by which it interrupts system calls, which it does not let programs use.
//! No signal is sent.
//!
//! The handler is taken from the system, which calls it for at least two signals, and must be a function of Ruby's own
//! library. Otherwise, and with `OFFLOCK_INTERNALS=0`, nothing is woken.

use std::ffi::{c_int, c_void};
use std::mem::zeroed;
use std::sync::OnceLock;

use magnus::Ruby;

/// The signals that Ruby handles from the start, some of which a program or its parent may have set to something else.
const HANDLED: [c_int; 7] =
    [libc::SIGINT, libc::SIGHUP, libc::SIGTERM, libc::SIGQUIT, libc::SIGALRM, libc::SIGUSR1, libc::SIGUSR2];

/// Ruby asks the system for the details of a signal, too, which its handler ignores.
type Handler = extern "C" fn(c_int, *const c_void, *const c_void);

static HANDLER: OnceLock<Option<Handler>> = OnceLock::new();

/// Looks for Ruby's handler.
pub(crate) fn prepare(_: &Ruby) {
    HANDLER.get_or_init(|| {
        let handlers: Vec<usize> = HANDLED.into_iter().filter_map(handler_of).collect();
        let is_common = |handler: &&usize| handlers.iter().filter(|other| other == handler).count() > 1;
        let common = handlers.iter().find(is_common).filter(|_| super::uses_internals());
        // SAFETY: a function of Ruby's that the system calls with the number of a signal.
        common.map(|handler| unsafe { std::mem::transmute::<usize, Handler>(*handler) })
    });
}

/// The address of the function of Ruby's that handles a signal; `None` if it is ignored or handled by something else.
fn handler_of(signal: c_int) -> Option<usize> {
    // SAFETY: a sigaction may be all zeros, and is a valid place to write one to.
    let action = unsafe {
        let mut action: libc::sigaction = zeroed();
        (libc::sigaction(signal, std::ptr::null(), &raw mut action) == 0).then_some(action)
    };
    let handler =
        Some(action?.sa_sigaction).filter(|handler| ![libc::SIG_DFL, libc::SIG_IGN].contains(handler))?;
    let ruby = rb_sys::rb_nogvl as *const c_void as usize;
    (library_of(handler).is_some() && library_of(handler) == library_of(ruby)).then_some(handler)
}

/// The address of the library that has a function.
fn library_of(function: usize) -> Option<usize> {
    // SAFETY: a Dl_info may be all zeros, and is a valid place to write one to; any address may be asked for.
    let info = unsafe {
        let mut info: libc::Dl_info = zeroed();
        (libc::dladdr(function as *const c_void, &raw mut info) != 0).then_some(info)
    };
    info.map(|info| info.dli_fbase as usize)
}

/// Wakes the main thread for a moment, if Ruby's handler is known. Any thread may call this.
pub(crate) fn wake_main_thread() {
    if let Some(Some(handler)) = HANDLER.get() {
        handler(libc::SIGVTALRM, std::ptr::null(), std::ptr::null());
    }
}
