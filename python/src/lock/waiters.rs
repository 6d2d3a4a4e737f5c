//! The threads that wait for each lock, one of which looks at the holder's stack.
//!
//! Every function here is called while the lock's own mutex is held, except for [`after_fork_in_child`]. So
//! each lock's numbers have one user at a time, and plain loads and stores of atomics are enough.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use offlock_core::trace::{Ticks, Waiters};

/// How many locks can be distinguished at the same time.
pub(crate) const MAX_LOCKS: usize = 64;

/// One of the locks the hooks have found, below [`MAX_LOCKS`].
pub(crate) type LockIndex = usize;

/// The waiting threads of a lock.
struct Waiting {
    waiters: Waiters,
    /// Whether one of them looks at the holder's stack every now and then.
    has_observer: AtomicBool,
    /// The number of the thread that acquired the lock last.
    holder: AtomicU32,
}

static WAITING: [Waiting; MAX_LOCKS] = [const { Waiting::new() }; MAX_LOCKS];

impl Waiting {
    const fn new() -> Self {
        Self { waiters: Waiters::new(), has_observer: AtomicBool::new(false), holder: AtomicU32::new(0) }
    }
}

/// The waiting threads of a lock, and when its holder's stack was last taken.
#[inline]
pub(crate) fn of(lock: LockIndex) -> &'static Waiters {
    &WAITING[lock].waiters
}

/// A thread that waits for a lock.
pub(crate) struct Waiter {
    lock: LockIndex,
    place: Option<usize>,
    is_observer: bool,
}

impl Waiter {
    /// The calling thread waits for the lock, since a time that is not 0.
    pub(crate) fn enter(lock: LockIndex, since: Ticks) -> Self {
        Self { lock, place: of(lock).enter(since), is_observer: false }
    }

    /// Whether it is this thread that looks at the holder's stack, because no other one does.
    pub(crate) fn observes(&mut self) -> bool {
        self.is_observer = self.is_observer || !WAITING[self.lock].has_observer.swap(true, Relaxed);
        self.is_observer
    }

    /// The thread has stopped waiting, at least for a moment.
    pub(crate) fn leave(self) {
        if self.is_observer {
            WAITING[self.lock].has_observer.store(false, Relaxed);
        }
        if let Some(place) = self.place {
            of(self.lock).leave(place);
        }
    }
}

/// The thread has acquired the lock.
#[inline]
pub(crate) fn set_holder(lock: LockIndex, thread: u32) {
    WAITING[lock].holder.store(thread, Relaxed);
}

/// The thread that acquired the lock last; 0 if that is unknown.
pub(crate) fn holder(lock: LockIndex) -> u32 {
    WAITING[lock].holder.load(Relaxed)
}

/// The threads that waited in the parent do not exist in the child of a fork.
pub(crate) fn after_fork_in_child() {
    for waiting in &WAITING {
        waiting.waiters.clear();
        waiting.has_observer.store(false, Relaxed);
    }
}
