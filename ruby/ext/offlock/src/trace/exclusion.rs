//! Mutual exclusion that works in trap handlers.
//!
//! Ruby refuses to lock a Mutex in a trap handler: the handler interrupts the main thread, which may hold the Mutex,
//! and would wait for itself. Here the owner is known, so that a handler that interrupted its own thread inside the
//! block gets `:own` and returns.

use std::sync::atomic::{AtomicU64, Ordering};

use magnus::{Error, Ruby, Symbol, Value};
use offlock_core::trace;

/// The number of the thread that is inside a block; 0 if there is none.
static OWNER: AtomicU64 = AtomicU64::new(0);

/// In the child of a fork, the owner may no longer exist.
extern "C" fn after_fork_in_child() {
    OWNER.store(0, Ordering::Relaxed);
}

/// Prepares for forks.
pub(super) fn prepare() {
    trace::after_fork_in_child(after_fork_in_child);
}

/// Calls the block if no thread is inside one. Returns `:done` if it called it, `:busy` if another thread is inside a
/// block, `:own` if the calling thread is.
///
/// `thread`: a number that is unique to the calling thread, its `object_id`.
pub(super) fn exclusively(ruby: &Ruby, thread: u64) -> Result<Symbol, Error> {
    match OWNER.compare_exchange(0, thread, Ordering::Acquire, Ordering::Relaxed) {
        Err(owner) if owner == thread => Ok(ruby.to_symbol("own")),
        Err(_) => Ok(ruby.to_symbol("busy")),
        Ok(_) => {
            let outcome = ruby.yield_value::<_, Value>(());
            OWNER.store(0, Ordering::Release);
            outcome.map(|_| ruby.to_symbol("done"))
        }
    }
}
