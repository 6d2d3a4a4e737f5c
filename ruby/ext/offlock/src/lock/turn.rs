//! One at a time, in trap handlers, too.
//!
//! Ruby refuses to lock a Mutex in a trap handler, because the handler runs on the main thread, on top of whatever that
//! was doing: it would wait for itself. So a turn tells who has it, and a handler that finds its own thread in it
//! leaves.

use std::sync::atomic::{AtomicU64, Ordering};

use magnus::{Error, Ruby, Symbol, Value};
use offlock_core::trace;

/// The thread that has the turn, by a number other than 0.
static OWNER: AtomicU64 = AtomicU64::new(0);

/// In the child of a fork, the thread that had the turn may be gone.
extern "C" fn after_fork_in_child() {
    OWNER.store(0, Ordering::Relaxed);
}

/// Prepares for forks.
pub(super) fn prepare() {
    trace::after_fork_in_child(after_fork_in_child);
}

/// Calls the block if nobody has the turn. Returns `:taken` when it did, `:busy` when another thread has the turn,
/// `:own` when the calling one has.
///
/// `thread`: a number of the calling thread's own, its `object_id`.
pub(super) fn take(ruby: &Ruby, thread: u64) -> Result<Symbol, Error> {
    match OWNER.compare_exchange(0, thread, Ordering::Acquire, Ordering::Relaxed) {
        Err(owner) if owner == thread => Ok(ruby.to_symbol("own")),
        Err(_) => Ok(ruby.to_symbol("busy")),
        Ok(_) => {
            let outcome = ruby.yield_value::<_, Value>(());
            OWNER.store(0, Ordering::Release);
            outcome.map(|_| ruby.to_symbol("taken"))
        }
    }
}
