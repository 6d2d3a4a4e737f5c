//! Resets the recorder in the child of a fork.

use std::sync::Once;

use super::{buffers, code, drain, metrics, mode, native, registry};
use crate::{clock, fork};

/// Registers the fork handler. Call it when the library is loaded: if the process forks while another thread
/// is in this function, the child cannot record.
pub fn watch_forks() {
    static HANDLER: Once = Once::new();
    HANDLER.call_once(|| fork::after_fork_in_child(forget_the_parent));
    // The rate of the counter is known by the time a trace starts.
    clock::start();
}

/// Ends the parent's recordings in the child. The metrics continue, from zero waiting threads.
///
/// Threads of the parent may have held the locks of shared values. So the values are forgotten, not cleared.
extern "C" fn forget_the_parent() {
    mode::clear(mode::TRACING | mode::LIVE);
    mode::set_stacks_after(None);
    drain::forget();
    buffers::forget();
    registry::forget();
    code::forget();
    metrics::reset_waiting();
    native::forget();
}
