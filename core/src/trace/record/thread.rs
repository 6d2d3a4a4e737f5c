//! One thread of an interpreter, and what happens to it.
//!
//! A feed (Ruby's GVL instrumentation, the hooks in CPython's GIL) keeps one [`Thread`] per
//! interpreter thread and calls its methods from the interpreter's own callbacks. They may be called
//! on any native thread, also on one that holds no lock: unless it is a native thread's first event
//! or its page of records is full, a call takes no lock, allocates nothing and makes no system call.

use std::cell::Cell;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use super::counters::{self, ThreadMetrics};
use super::histogram::Waits;
use super::list::List;
use super::mode::{TRACING, is_active, is_tracing, mode};
use super::native::record;
use super::off_lock::Regions;
use crate::clock::{self, Ticks};
use crate::trace::format::definition::{Lock, Name, Stand};
use crate::trace::format::event::{Event, Kind, Reason, pack_release, pack_size};

/// A thread of the interpreter. Feeds keep the reference where the interpreter lets them: in thread
/// storage of its own or, where interpreter threads are native threads, with [`Thread::set_current`].
///
/// Threads are never freed but used again for later ones: after [`end`](Thread::end) let go of it.
///
/// What a hand-over changes comes first and together: the thread's next processor has to fetch it from the last one.
#[repr(C, align(64))]
pub struct Thread {
    id: AtomicU32,
    stand: AtomicU8,
    /// When it gave the lock up that it does not want since; 0 if it did not.
    off_since: AtomicU64,
    metrics: counters::Local,
    regions: Regions,
}

/// All there have ever been; those of the parent, too, in the child of a fork.
static THREADS: List<Thread> = List::new();

/// The threads that live, and others that nothing happens to any more.
pub(super) fn every_thread() -> impl Iterator<Item = &'static Thread> {
    THREADS.iter()
}

thread_local! {
    static CURRENT: Cell<Option<&'static Thread>> = const { Cell::new(None) };
}

impl Thread {
    /// One more, which nothing has happened to.
    pub(super) fn added() -> &'static Self {
        THREADS.push(Self::new())
    }

    const fn new() -> Self {
        Self {
            id: AtomicU32::new(0),
            stand: AtomicU8::new(0),
            off_since: AtomicU64::new(0),
            regions: Regions::new(),
            metrics: counters::Local::new(),
        }
    }

    /// Nothing is known of it any more.
    pub(super) fn clear(&self) {
        self.metrics.leave();
        self.metrics.reset();
        self.assume(Stand::Unknown);
        self.regions.forget();
    }

    pub(super) fn set_id(&self, id: u32) {
        self.id.store(id, Ordering::Relaxed);
    }

    /// Its number in the records; no other thread of the process ever has the same.
    pub fn id(&self) -> u32 {
        self.id.load(Ordering::Relaxed)
    }

    /// Lets [`Thread::current`] find this thread on the calling native thread.
    pub fn set_current(thread: Option<&'static Self>) {
        CURRENT.set(thread);
    }

    /// The thread that was set on the calling native thread.
    #[inline]
    pub fn current() -> Option<&'static Self> {
        CURRENT.get()
    }

    /// Tells how the thread stands to its lock, without recording it: for threads that were there
    /// before anyone recorded, first of all the one that is about to start a trace and so holds the lock.
    pub fn assume(&self, stand: Stand) {
        self.stand.store(stand as u8, Ordering::Relaxed);
        self.off_since.store(0, Ordering::Relaxed);
    }

    pub(super) fn stand(&self) -> Stand {
        Stand::from_u8(self.stand.load(Ordering::Relaxed))
    }

    /// The thread wants the lock.
    #[inline]
    pub fn wants(&self, at: Ticks, lock: Lock) {
        let mode = mode();
        if mode & counters::ALL != 0 {
            self.metrics.wants(at);
        }
        self.stands(mode, at, Kind::Wants, lock.0, Stand::Wants);
    }

    /// The thread has the lock; stamp it with [`now_holding`](super::now_holding).
    #[inline]
    pub fn acquired(&self, at: Ticks, lock: Lock) {
        let mode = mode();
        if mode & counters::ALL != 0 {
            self.metrics.acquired(at, mode);
        }
        self.stands(mode, at, Kind::Acquired, lock.0, Stand::Holds);
    }

    /// The thread gives the lock up. If it [`Yields`](Reason::Yields) it waits from here on.
    #[inline]
    pub fn released(&self, at: Ticks, lock: Lock, reason: Reason) {
        let mode = mode();
        // Somebody may have begun to trace since the time was taken, or not taken.
        let at = if at == 0 && mode & TRACING != 0 { clock::now() } else { at };
        let stand = if reason == Reason::Yields { Stand::Wants } else { Stand::Off };
        if mode & counters::ALL != 0 {
            self.metrics.released(mode);
            if stand == Stand::Wants {
                self.metrics.wants(at);
            }
        }
        self.stands(mode, at, Kind::Released, pack_release(lock.0, reason), stand);
    }

    /// Whether the thread has the lock, as far as was told.
    #[inline]
    pub fn has_lock(&self) -> bool {
        self.stand() == Stand::Holds
    }

    /// The thread has the lock. If it last gave the lock up, as far as was told, then it did not: from that moment
    /// on it has it.
    #[inline]
    pub fn holds(&self, lock: Lock) {
        let since = self.off_since.load(Ordering::Relaxed);
        if since != 0 && is_active() {
            self.acquired(since, lock);
        }
    }

    #[inline]
    fn stands(&self, mode: u32, at: Ticks, kind: Kind, argument: u32, stand: Stand) {
        if mode != 0 {
            self.stand.store(stand as u8, Ordering::Relaxed);
            self.off_since.store(if stand == Stand::Off { at } else { 0 }, Ordering::Relaxed);
        }
        if mode & TRACING != 0 {
            record(Event { time: at, thread: self.id(), kind, argument });
        }
    }

    #[inline]
    pub(super) fn trace(&self, at: Ticks, kind: Kind, argument: u32) {
        if is_tracing() {
            record(Event { time: at, thread: self.id(), kind, argument });
        }
    }

    /// The thread begins to collect garbage.
    #[inline]
    pub fn gc_enter(&self, at: Ticks) {
        self.trace(at, Kind::GcEnter, 0);
    }

    /// The thread has collected garbage.
    #[inline]
    pub fn gc_exit(&self, at: Ticks) {
        self.trace(at, Kind::GcExit, 0);
    }

    /// The thread begins an operation off the lock; call it just before the lock is released.
    #[inline]
    pub fn region_begin(&self, at: Ticks, operation: Name) {
        self.regions.enter(at);
        self.trace(at, Kind::RegionBegin, operation.0);
    }

    /// The thread ends its innermost operation, which worked on `bytes`; call it just after the
    /// lock was acquired again.
    #[inline]
    pub fn region_end(&self, at: Ticks, bytes: u64) {
        self.regions.leave(at);
        self.trace(at, Kind::RegionEnd, pack_size(bytes));
    }

    /// How long the thread has been in operations off the lock up to now, those under way included.
    pub fn off_lock(&self, now: Ticks) -> Ticks {
        self.regions.time(now)
    }

    /// The program marks the beginning of something.
    pub fn mark_begin(&self, at: Ticks, name: Name) {
        self.trace(at, Kind::MarkBegin, name.0);
    }

    /// The thread's innermost mark ends.
    pub fn mark_end(&self, at: Ticks) {
        self.trace(at, Kind::MarkEnd, 0);
    }

    /// Whether it waits for the lock, and has not done so since before `from`.
    pub(super) fn waits_since(&self, from: Ticks) -> bool {
        self.metrics.waits_since(from)
    }

    /// What was measured of this thread.
    pub fn metrics(&self) -> ThreadMetrics {
        self.metrics.read()
    }

    /// How long this thread's waits took.
    pub fn waits(&self) -> Waits {
        self.metrics.waits()
    }

    /// Sets this thread's numbers back to zero.
    pub fn reset_metrics(&self) {
        self.metrics.reset();
    }
}
