//! What a fork leaves of a recording in the child.

use std::sync::Once;

use super::{buffers, drain, metrics, mode, native, registry};
use crate::fork;

/// Prepares for forks. Call it when the library is loaded: a fork that comes while another thread is in here leaves the
/// child's recorder unusable.
pub fn watch_forks() {
    static HANDLER: Once = Once::new();
    HANDLER.call_once(|| fork::after_fork_in_child(forget_the_parent));
}

/// Nothing of the parent's recording goes on. The metrics do, from here.
///
/// The parent's threads may have held the locks of what they shared, so it is not touched.
extern "C" fn forget_the_parent() {
    mode::clear(mode::TRACING);
    drain::forget();
    buffers::forget();
    registry::forget();
    metrics::reset_waiting();
    native::forget();
}
