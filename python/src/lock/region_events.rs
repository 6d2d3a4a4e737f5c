//! Work without the lock, as a trace shows it.

use offlock_core::trace::{self, Name};

use super::feed;

/// Runs `work`, which runs without the lock, so that a trace shows it as the named operation over `bytes`
/// bytes.
pub(crate) fn record<R>(operation: &str, bytes: usize, work: impl FnOnce() -> R) -> R {
    if !trace::is_tracing() {
        return work();
    }
    let thread = feed::current();
    thread.region_begin(trace::now(), Name::of(operation));
    let result = work();
    thread.region_end(trace::now(), bytes as u64);
    result
}
