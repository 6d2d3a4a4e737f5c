//! Mutual exclusion that trap handlers can take part in.
//!
//! Ruby refuses to lock a Mutex in a trap handler: the handler runs on the main thread, on top of whatever that was doing, and
//! would wait for itself. Here the owner is known, so that a handler which interrupted its own thread inside the block is told
//! so and leaves.

use std::sync::atomic::{AtomicU64, Ordering};

use magnus::{Error, Ruby, Symbol, Value};
use offlock_core::trace;

/// The thread that is inside a block, by a number other than 0.
static OWNER: AtomicU64 = AtomicU64::new(0);

/// In the child of a fork, the owner may be gone.
extern "C" fn after_fork_in_child() {
    OWNER.store(0, Ordering::Relaxed);
}

/// Prepares for forks.
pub(super) fn prepare() {
    trace::after_fork_in_child(after_fork_in_child);
}

/// Calls the block if no thread is inside one. Returns `:done` if it called it, `:busy` if another thread is inside a block,
/// `:own` if the calling thread is.
///
/// `thread`: a number of the calling thread's own, its `object_id`.
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
