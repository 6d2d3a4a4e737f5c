//! Which threads wait for each lock, since when, and when the holder's stack was last taken.
//!
//! Every function here is called while the lock's own mutex is held, except for [`after_fork_in_child`]. So
//! each lock's numbers have one user at a time, and plain loads and stores of atomics are enough.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};

use offlock_core::trace::Ticks;

/// How many locks can be distinguished at the same time.
pub(crate) const MAX_LOCKS: usize = 64;

/// One of the locks the hooks have found, below [`MAX_LOCKS`].
pub(crate) type LockIndex = usize;

/// The most waiting threads of a lock whose times are kept; where more wait, these stand for the others.
const PLACES: usize = 64;

/// The waiting threads of a lock.
struct Waiters {
    /// Since when the thread in each place waits; 0 in free places.
    since: [AtomicU64; PLACES],
    /// All places from this one on are free.
    top: AtomicUsize,
    /// Since when the thread waits that has waited longest; 0 if none waits.
    oldest: AtomicU64,
    /// Whether one of them looks at the holder's stack every now and then.
    has_observer: AtomicBool,
    /// When the holder's stack was last taken.
    taken: AtomicU64,
    /// The number of the thread that acquired the lock last.
    holder: AtomicU32,
}

static WAITERS: [Waiters; MAX_LOCKS] = [const { Waiters::new() }; MAX_LOCKS];

impl Waiters {
    const fn new() -> Self {
        Self {
            since: [const { AtomicU64::new(0) }; PLACES],
            top: AtomicUsize::new(0),
            oldest: AtomicU64::new(0),
            has_observer: AtomicBool::new(false),
            taken: AtomicU64::new(0),
            holder: AtomicU32::new(0),
        }
    }

    fn used(&self) -> &[AtomicU64] {
        &self.since[..self.top.load(Relaxed)]
    }

    fn enter(&self, since: Ticks) -> Option<usize> {
        let free = self.since.iter().position(|place| place.load(Relaxed) == 0)?;
        self.since[free].store(since, Relaxed);
        self.top.fetch_max(free + 1, Relaxed);
        let oldest = self.oldest.load(Relaxed);
        if oldest == 0 || since < oldest {
            self.oldest.store(since, Relaxed);
        }
        Some(free)
    }

    fn leave(&self, place: usize) {
        let since = self.since[place].swap(0, Relaxed);
        let used = self.used().iter().rposition(|place| place.load(Relaxed) != 0);
        self.top.store(used.map_or(0, |last| last + 1), Relaxed);
        if since == self.oldest.load(Relaxed) {
            let waiting = self.used().iter().map(|place| place.load(Relaxed)).filter(|since| *since != 0);
            self.oldest.store(waiting.min().unwrap_or(0), Relaxed);
        }
    }
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
        Self { lock, place: WAITERS[lock].enter(since), is_observer: false }
    }

    /// Whether it is this thread that looks at the holder's stack, because no other one does.
    pub(crate) fn observes(&mut self) -> bool {
        self.is_observer = self.is_observer || !WAITERS[self.lock].has_observer.swap(true, Relaxed);
        self.is_observer
    }

    /// The thread has stopped waiting, at least for a moment.
    pub(crate) fn leave(self) {
        let waiters = &WAITERS[self.lock];
        if self.is_observer {
            waiters.has_observer.store(false, Relaxed);
        }
        if let Some(place) = self.place {
            waiters.leave(place);
        }
    }
}

/// How long the thread that has waited longest for the lock has waited; 0 if none waits.
#[inline]
pub(crate) fn longest_wait(lock: LockIndex, now: Ticks) -> Ticks {
    match WAITERS[lock].oldest.load(Relaxed) {
        0 => 0,
        since => now.saturating_sub(since),
    }
}

/// When the stack of the lock's holder was last taken.
pub(crate) fn last_taken(lock: LockIndex) -> Ticks {
    WAITERS[lock].taken.load(Relaxed)
}

/// The stack of the lock's holder is being taken.
pub(crate) fn take(lock: LockIndex, now: Ticks) {
    WAITERS[lock].taken.store(now, Relaxed);
}

/// The thread has acquired the lock.
#[inline]
pub(crate) fn set_holder(lock: LockIndex, thread: u32) {
    WAITERS[lock].holder.store(thread, Relaxed);
}

/// The thread that acquired the lock last; 0 if that is unknown.
pub(crate) fn holder(lock: LockIndex) -> u32 {
    WAITERS[lock].holder.load(Relaxed)
}

/// The threads that waited in the parent do not exist in the child of a fork.
pub(crate) fn after_fork_in_child() {
    for waiters in &WAITERS {
        waiters.since.iter().for_each(|place| place.store(0, Relaxed));
        waiters.top.store(0, Relaxed);
        waiters.oldest.store(0, Relaxed);
        waiters.has_observer.store(false, Relaxed);
    }
}
