//! An interpreter thread, as feeds report on it.
//!
//! A feed (Ruby's GVL instrumentation, the hooks in CPython's GIL) keeps one [`Thread`] per interpreter
//! thread and calls its methods from the interpreter's callbacks, on any native thread, including ones that
//! do not hold the lock. Except at a native thread's first event and when its page of records is full, a call
//! takes no lock, allocates nothing and makes no system call.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::counters::{self, ThreadMetrics};
use super::histogram::Waits;
use super::list::List;
use super::mode::{TRACING, is_active, is_tracing, mode};
use super::native::record;
use super::off_lock::Regions;
use super::usage;
use crate::clock::{self, Ticks};
use crate::trace::format::definition::{Lock, Name, Stand};
use crate::trace::format::event::{Event, Kind, Reason, pack_release, pack_size};

/// An interpreter thread. Feeds keep the reference where the interpreter lets them: in its thread storage or,
/// where interpreter threads are native threads, with [`Thread::set_current`].
///
/// Threads are never freed but reused for later threads: drop the reference after [`end`](Thread::end).
///
/// The fields that a hand-over changes come first and together, because the thread's next CPU has to fetch
/// their cache line from the last one.
#[repr(C, align(64))]
pub struct Thread {
    id: AtomicU32,
    /// The lock that it used last, and its relation to it, as [`standing`] packs them.
    standing: AtomicU32,
    /// Since when it has that relation; 0 if that is unknown.
    since: AtomicU64,
    metrics: counters::Local,
    regions: Regions,
    /// How long it has waited for what no thread holds as it holds the lock, in ticks.
    waited: AtomicU64,
}

/// Where the relation to a lock begins, behind the lock's number, in bits.
const STAND: u32 = 24;

/// A lock's number and a thread's relation to it in one word.
const fn standing(lock: u32, stand: Stand) -> u32 {
    lock & ((1 << STAND) - 1) | (stand as u32) << STAND
}

/// All threads ever made; in the child of a fork, including the parent's.
static THREADS: List<Thread> = List::new();

/// All living threads, and others to which nothing happens any more.
pub(super) fn every_thread() -> impl Iterator<Item = &'static Thread> {
    THREADS.iter()
}

thread_local! {
    static CURRENT: Cell<Option<&'static Thread>> = const { Cell::new(None) };
}

impl Thread {
    /// Adds a thread without a history.
    pub(super) fn added() -> &'static Self {
        THREADS.push(Self::new())
    }

    const fn new() -> Self {
        Self {
            id: AtomicU32::new(0),
            standing: AtomicU32::new(0),
            since: AtomicU64::new(0),
            regions: Regions::new(),
            metrics: counters::Local::new(),
            waited: AtomicU64::new(0),
        }
    }

    /// Resets the thread for reuse.
    pub(super) fn clear(&self) {
        self.metrics.leave();
        self.metrics.reset();
        self.assume(Stand::Unknown);
        self.regions.forget();
        self.waited.store(0, Ordering::Relaxed);
    }

    pub(super) fn set_id(&self, id: u32) {
        self.id.store(id, Ordering::Relaxed);
    }

    /// Its number in the records, which no other thread of the process ever has.
    pub fn id(&self) -> u32 {
        self.id.load(Ordering::Relaxed)
    }

    /// Makes [`Thread::current`] return this thread on the calling native thread.
    pub fn set_current(thread: Option<&'static Self>) {
        CURRENT.set(thread);
    }

    /// The thread that was set on the calling native thread.
    #[inline]
    pub fn current() -> Option<&'static Self> {
        CURRENT.get()
    }

    /// Sets the thread's relation to its lock without recording it: for threads that existed before the
    /// recording, above all for the thread that is about to start a trace and so holds the lock.
    pub fn assume(&self, stand: Stand) {
        self.standing.store(standing(self.lock(), stand), Ordering::Relaxed);
        self.since.store(0, Ordering::Relaxed);
    }

    pub(super) fn stand(&self) -> Stand {
        Stand::from_u8((self.standing.load(Ordering::Relaxed) >> STAND) as u8)
    }

    /// The number of the lock that it used last; 0 if it is unknown.
    pub(super) fn lock(&self) -> u32 {
        self.standing.load(Ordering::Relaxed) & ((1 << STAND) - 1)
    }

    /// Since when it has its relation to the lock; `None` if that is unknown.
    pub(super) fn since(&self) -> Option<Ticks> {
        Some(self.since.load(Ordering::Relaxed)).filter(|since| *since != 0)
    }

    /// The thread wants the lock.
    #[inline]
    pub fn wants(&self, at: Ticks, lock: Lock) {
        let mode = mode();
        if mode & counters::ALL != 0 {
            self.metrics.wants(at);
        }
        self.stands(mode, at, (Kind::Wants, lock.0), standing(lock.0, Stand::Wants));
    }

    /// The thread has acquired the lock; stamp this with [`now_holding`](super::mode::now_holding).
    #[inline]
    pub fn acquired(&self, at: Ticks, lock: Lock) {
        let mode = mode();
        if mode & counters::ALL != 0 {
            self.metrics.acquired(at, mode);
        }
        self.stands(mode, at, (Kind::Acquired, lock.0), standing(lock.0, Stand::Holds));
    }

    /// The thread releases the lock. If it [`Yields`](Reason::Yields), it waits from now on.
    #[inline]
    pub fn released(&self, at: Ticks, lock: Lock, reason: Reason) {
        let mode = mode();
        // A trace may have started since the feed decided not to take the time.
        let at = if at == 0 && mode & TRACING != 0 { clock::now() } else { at };
        let stand = if reason == Reason::Yields { Stand::Wants } else { Stand::Off };
        if mode & counters::ALL != 0 {
            self.metrics.released(mode);
            if stand == Stand::Wants {
                self.metrics.wants(at);
            }
        }
        self.stands(mode, at, (Kind::Released, pack_release(lock.0, reason)), standing(lock.0, stand));
    }

    /// Whether the thread has the lock, as far as the feed has reported.
    #[inline]
    pub fn has_lock(&self) -> bool {
        self.stand() == Stand::Holds
    }

    /// The thread has the lock. If its last report was a release, that release did not happen: it has had the
    /// lock since.
    #[inline]
    pub fn holds(&self, lock: Lock) {
        if let Some(since) = self.since()
            && self.stand() == Stand::Off
            && is_active()
        {
            self.acquired(since, lock);
        }
    }

    /// The thread of an interpreter without a lock begins to wait: for the end of a stop-the-world pause, or for the lock
    /// of an object. Live numbers do not count that.
    pub fn wait_begin(&self, at: Ticks, lock: Lock) {
        self.stands(mode(), at, (Kind::Wants, lock.0), standing(lock.0, Stand::Wants));
    }

    /// The thread's wait since `since` is over.
    pub fn wait_end(&self, since: Ticks, at: Ticks, lock: Lock) {
        self.waited.fetch_add(at.saturating_sub(since), Ordering::Relaxed);
        let argument = pack_release(lock.0, Reason::Unheld);
        self.stands(mode(), at, (Kind::Released, argument), standing(lock.0, Stand::Off));
    }

    /// The thread made others wait between two moments, of which the later one is the present.
    pub fn held(&self, from: Ticks, to: Ticks, lock: Lock) {
        self.trace(from, Kind::Acquired, lock.0);
        self.trace(to, Kind::Released, pack_release(lock.0, Reason::Blocks));
    }

    /// How long the waits that [`wait_end`](Self::wait_end) has ended took in all.
    pub fn waited(&self) -> Ticks {
        self.waited.load(Ordering::Relaxed)
    }

    #[inline]
    fn stands(&self, mode: u32, at: Ticks, (kind, argument): (Kind, u32), standing: u32) {
        if mode != 0 {
            self.standing.store(standing, Ordering::Relaxed);
            self.since.store(at, Ordering::Relaxed);
        }
        if mode & TRACING != 0 {
            record(Event { time: at, thread: self.id(), kind, argument });
        }
    }

    /// The calling native thread notes how long it has run on a processor.
    pub(super) fn trace_usage(at: Ticks) {
        if is_tracing() {
            record(usage::own(at));
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

    /// The thread has finished collecting garbage.
    #[inline]
    pub fn gc_exit(&self, at: Ticks) {
        self.trace(at, Kind::GcExit, 0);
    }

    /// The thread begins an operation off the lock. Call this just before the lock is released.
    #[inline]
    pub fn region_begin(&self, at: Ticks, operation: Name) {
        self.regions.enter(at);
        self.trace(at, Kind::RegionBegin, operation.0);
    }

    /// The thread ends its innermost operation, which processed `bytes`. Call this just after the lock was
    /// acquired again.
    #[inline]
    pub fn region_end(&self, at: Ticks, bytes: u64) {
        self.regions.leave(at);
        self.trace(at, Kind::RegionEnd, pack_size(bytes));
    }

    /// How long the thread has been in operations off the lock, including those that are running.
    pub fn off_lock(&self, now: Ticks) -> Ticks {
        self.regions.time(now)
    }

    /// The program marks the beginning of a span.
    pub fn mark_begin(&self, at: Ticks, name: Name) {
        self.trace(at, Kind::MarkBegin, name.0);
    }

    /// The program marks the end of the innermost span, and may give it another name.
    pub fn mark_end(&self, at: Ticks, renamed: Option<Name>) {
        self.trace(at, Kind::MarkEnd, renamed.map_or(0, |name| name.0));
    }

    /// Whether it waits for the lock and began to wait after `from`.
    pub(super) fn waits_since(&self, from: Ticks) -> bool {
        self.metrics.waits_since(from)
    }

    /// The counters of this thread.
    pub fn metrics(&self) -> ThreadMetrics {
        self.metrics.read()
    }

    /// The waits of this thread.
    pub fn waits(&self) -> Waits {
        self.metrics.waits()
    }

    /// Resets this thread's counters to zero.
    pub fn reset_metrics(&self) {
        self.metrics.reset();
    }
}
