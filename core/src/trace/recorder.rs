//! The feeds' side of the recorder: threads, locks and what happens to them.
//!
//! A feed (Ruby's GVL instrumentation, the hooks in CPython's GIL) keeps one [`Thread`] per
//! interpreter thread and calls its methods from the interpreter's own callbacks. They may be called
//! on any native thread, also on one that holds no lock: unless it is a native thread's first event
//! or its page of records is full, a call takes no lock, allocates nothing and makes no system call.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use super::clock::{self, Ticks};
use super::drain::Drain;
use super::event::{Event, Kind, Reason, pack_release, pack_size};
use super::histogram::Waits;
use super::metrics::{self, ThreadMetrics};
use super::queue::{Pool, Queue, Writer};
use super::sys::{self, Grown, Remade};

/// The mode bit that says a trace is being recorded.
pub(super) const TRACING: u32 = 1;

static MODE: AtomicU32 = AtomicU32::new(0);

#[inline]
pub(super) fn mode() -> u32 {
    MODE.load(Ordering::Relaxed)
}

pub(super) fn switch_on(bits: u32) {
    clock::start();
    MODE.fetch_or(bits, Ordering::Relaxed);
}

/// Once nothing is recorded, nobody knows any more how the threads stand.
pub(super) fn switch_off(bits: u32) {
    let before = MODE.fetch_and(!bits, Ordering::Relaxed);
    if before != 0 && before & !bits == 0 {
        state().threads().values().for_each(|entry| entry.thread.assume(Stand::Unknown));
    }
}

/// Whether anything is recorded or measured. A feed that sees false need not even read the clock.
#[inline]
pub fn is_active() -> bool {
    mode() != 0
}

/// Whether a trace is being recorded.
#[inline]
pub fn is_tracing() -> bool {
    mode() & TRACING != 0
}

/// Everything shared between the threads that record and the drain; a fork makes it anew.
pub(super) struct State {
    pub(super) pool: Pool,
    pub(super) drain: Mutex<Drain>,
    pub(super) lost: AtomicU64,
    arrived: Mutex<Vec<&'static Queue>>,
    spare_queues: Mutex<Vec<&'static Queue>>,
    threads: Mutex<BTreeMap<u32, Entry>>,
    spare_threads: Mutex<Vec<&'static Thread>>,
    locks: Mutex<BTreeMap<u32, String>>,
    names: Mutex<HashMap<Box<str>, u32>>,
    news: Mutex<Vec<Definition>>,
}

struct Entry {
    thread: &'static Thread,
    name: String,
}

/// What stands behind a number in the records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Definition {
    Name { id: u32, text: String },
    Thread { id: u32, name: String, stand: Stand },
    Lock { id: u32, name: String },
}

/// How a thread stands to its lock, as far as the recorder has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum Stand {
    /// Nothing is known yet.
    #[default]
    Unknown = 0,
    /// It neither has nor wants the lock.
    Off = 1,
    /// It wants the lock.
    Wants = 2,
    /// It has the lock.
    Holds = 3,
}

impl Stand {
    pub(super) fn from_u8(number: u8) -> Self {
        match number {
            1 => Self::Off,
            2 => Self::Wants,
            3 => Self::Holds,
            _ => Self::Unknown,
        }
    }
}

static STATE: Remade<State> = Remade::new();

/// The state of this process.
pub(super) fn state() -> &'static State {
    watch_forks();
    STATE.get_or_make(State::new)
}

/// Prepares for forks. Call it when the library is loaded: a fork that comes while another thread is in here leaves the
/// child's recorder unusable.
pub fn watch_forks() {
    static FORK_HANDLER: Once = Once::new();
    FORK_HANDLER.call_once(|| sys::after_fork_in_child(forget_the_parent));
}

/// In the child of a fork: nothing of the parent's recording goes on. The metrics do, from here.
///
/// The parent's threads may have held the state's locks, so it is not touched.
extern "C" fn forget_the_parent() {
    MODE.fetch_and(!TRACING, Ordering::Relaxed);
    STATE.forget();
    metrics::reset_waiting();
    let _ = LOCAL.try_with(|local| {
        local.writer.set(None);
        local.lost.set(0);
    });
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Texts longer than this are cut.
const LONGEST_TEXT: usize = 512;
/// The table of names starts anew when it holds this many; ids are never used twice.
const MOST_NAMES: usize = 1 << 14;
/// The most definitions kept between two drains.
const MOST_NEWS: usize = 1 << 16;

fn cut(text: &str) -> String {
    let mut end = text.len().min(LONGEST_TEXT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

impl State {
    fn new() -> Self {
        Self {
            pool: Pool::new(),
            drain: Mutex::new(Drain::new()),
            lost: AtomicU64::new(0),
            arrived: Mutex::default(),
            spare_queues: Mutex::default(),
            threads: Mutex::default(),
            spare_threads: Mutex::default(),
            locks: Mutex::default(),
            names: Mutex::default(),
            news: Mutex::default(),
        }
    }

    fn threads(&self) -> MutexGuard<'_, BTreeMap<u32, Entry>> {
        lock(&self.threads)
    }

    fn announce(&self, definition: Definition) {
        if !is_tracing() {
            return;
        }
        let mut news = lock(&self.news);
        if news.len() < MOST_NEWS {
            news.push(definition);
        } else {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// What was defined since the last call.
    pub(super) fn take_news(&self) -> Vec<Definition> {
        std::mem::take(&mut lock(&self.news))
    }

    /// All that is defined at the moment.
    pub(super) fn definitions(&self) -> Vec<Definition> {
        let names = lock(&self.names)
            .iter()
            .map(|(text, id)| Definition::Name { id: *id, text: text.to_string() })
            .collect::<Vec<_>>();
        let locks = lock(&self.locks)
            .iter()
            .map(|(id, name)| Definition::Lock { id: *id, name: name.clone() })
            .collect::<Vec<_>>();
        let threads = self.threads().iter().map(|(id, entry)| entry.definition(*id)).collect::<Vec<_>>();
        [names, locks, threads].concat()
    }

    fn open_queue(&self) -> &'static Queue {
        let spare = lock(&self.spare_queues).pop();
        let queue = spare.unwrap_or_else(|| Box::leak(Box::new(Queue::new())));
        queue.open(sys::native_thread_id());
        lock(&self.arrived).push(queue);
        queue
    }

    /// The queues that were opened since the last call.
    pub(super) fn take_arrived(&self) -> Vec<&'static Queue> {
        std::mem::take(&mut lock(&self.arrived))
    }

    /// Keeps queues that are closed and empty for later threads.
    pub(super) fn give_back(&self, queues: impl IntoIterator<Item = &'static Queue>) {
        lock(&self.spare_queues).extend(queues);
    }
}

impl Entry {
    fn definition(&self, id: u32) -> Definition {
        Definition::Thread { id, name: self.name.clone(), stand: self.thread.stand() }
    }
}

/// What a native thread keeps for itself. Has no destructor, so that reaching it is one load.
struct Local {
    writer: Cell<Option<Writer>>,
    lost: Cell<u32>,
    thread: Cell<Option<&'static Thread>>,
}

/// Closes the native thread's queue when the thread ends.
struct Closer;

thread_local! {
    static LOCAL: Local =
        const { Local { writer: Cell::new(None), lost: Cell::new(0), thread: Cell::new(None) } };
    static CLOSER: Closer = const { Closer };
}

impl Drop for Closer {
    fn drop(&mut self) {
        LOCAL.with(|local| {
            if let Some(writer) = local.writer.take() {
                writer.close();
            }
        });
    }
}

#[inline]
fn record(event: Event) {
    LOCAL.with(|local| {
        let record = event.pack();
        if !local.writer.get().is_some_and(|writer| writer.push(record)) {
            local.record_slowly(event.time, record);
        }
    });
}

impl Local {
    /// The first event of a native thread, and every 256th.
    #[cold]
    fn record_slowly(&self, time: Ticks, record: [u64; 2]) {
        if !self.extend() {
            self.lost.set(self.lost.get().saturating_add(1));
            state().lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let Some(writer) = self.writer.get() else { return };
        let lost = self.lost.take();
        if lost > 0 {
            writer.push(Event { time, thread: 0, kind: Kind::Lost, argument: lost }.pack());
        }
        writer.push(record);
    }

    /// Gets a fresh chunk; false when there is none, or when the thread is all but gone.
    fn extend(&self) -> bool {
        if CLOSER.try_with(|_| ()).is_err() {
            return false;
        }
        let state = state();
        let mut writer = self.writer.get().unwrap_or_else(|| Writer::new(&state.pool, state.open_queue()));
        let extended = writer.extend();
        self.writer.set(Some(writer));
        extended
    }
}

/// The number of a text in the records, for operations and marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Name(u32);

static NEXT_NAME: AtomicU32 = AtomicU32::new(1);

impl Name {
    /// The number of `text`. Ask anew for each use: a number is good for a while, not for ever.
    pub fn of(text: &str) -> Self {
        let state = state();
        let mut names = lock(&state.names);
        if let Some(id) = names.get(text) {
            return Self(*id);
        }
        if names.len() >= MOST_NAMES {
            names.clear();
        }
        let id = NEXT_NAME.fetch_add(1, Ordering::Relaxed);
        let text = cut(text);
        names.insert(text.clone().into_boxed_str(), id);
        drop(names);
        state.announce(Definition::Name { id, text });
        Self(id)
    }
}

/// An interpreter lock: the GIL, a subinterpreter's own, Ruby's GVL, a Ractor's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Lock(u32);

static NEXT_LOCK: AtomicU32 = AtomicU32::new(1);

impl Lock {
    /// A lock that the recorder has not seen before.
    pub fn new(name: &str) -> Self {
        let lock = Self(NEXT_LOCK.fetch_add(1, Ordering::Relaxed));
        lock.rename(name);
        lock
    }

    /// Gives the lock a name. Also makes a lock from before a fork known in the child.
    pub fn rename(self, name: &str) {
        let (state, name) = (state(), cut(name));
        lock(&state.locks).insert(self.0, name.clone());
        state.announce(Definition::Lock { id: self.0, name });
    }

    /// Gives a lock a name that is gone already.
    pub fn name_removed(self, name: &str) {
        state().announce(Definition::Lock { id: self.0, name: cut(name) });
    }

    /// The lock is gone; nothing may be recorded for it any more.
    pub fn remove(self) {
        lock(&state().locks).remove(&self.0);
    }

    /// Its number in the records.
    pub const fn id(self) -> u32 {
        self.0
    }

    /// The lock with this [`id`](Self::id).
    pub const fn from_id(id: u32) -> Self {
        Self(id)
    }
}

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
    metrics: metrics::Local,
    regions: Regions,
}

/// All there have ever been; those of the parent, too, in the child of a fork.
static THREADS: Grown<Thread> = Grown::new();

/// The threads that live, and others that nothing happens to any more.
pub(super) fn every_thread() -> impl Iterator<Item = &'static Thread> {
    THREADS.iter()
}

static NEXT_THREAD: AtomicU32 = AtomicU32::new(1);

/// A thread's time in operations off the lock, written by that thread.
struct Regions {
    depth: AtomicU32,
    since: AtomicU64,
    before: AtomicU64,
}

impl Regions {
    const fn new() -> Self {
        Self { depth: AtomicU32::new(0), since: AtomicU64::new(0), before: AtomicU64::new(0) }
    }

    fn enter(&self, at: Ticks) {
        if self.depth.fetch_add(1, Ordering::Relaxed) == 0 {
            self.since.store(at, Ordering::Relaxed);
        }
    }

    fn leave(&self, at: Ticks) {
        if self.depth.fetch_sub(1, Ordering::Relaxed) == 1 {
            let since = self.since.swap(0, Ordering::Relaxed);
            self.before.fetch_add(at.saturating_sub(since), Ordering::Relaxed);
        }
    }

    fn time(&self, now: Ticks) -> Ticks {
        let since = self.since.load(Ordering::Relaxed);
        let present = if since == 0 { 0 } else { now.saturating_sub(since) };
        self.before.load(Ordering::Relaxed) + present
    }

    fn forget(&self) {
        [&self.since, &self.before].iter().for_each(|number| number.store(0, Ordering::Relaxed));
        self.depth.store(0, Ordering::Relaxed);
    }
}

impl Thread {
    /// A thread that begins.
    pub fn start(at: Ticks, name: &str) -> &'static Self {
        let thread = Self::present(name);
        thread.assume(Stand::Off);
        thread.trace(at, Kind::ThreadStart, 0);
        thread
    }

    /// A thread that was there before anyone recorded.
    pub fn present(name: &str) -> &'static Self {
        let spare = lock(&state().spare_threads).pop();
        let thread = spare.unwrap_or_else(|| THREADS.push(Self::new()));
        thread.id.store(NEXT_THREAD.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        thread.rename(name);
        thread
    }

    const fn new() -> Self {
        Self {
            id: AtomicU32::new(0),
            stand: AtomicU8::new(0),
            off_since: AtomicU64::new(0),
            regions: Regions::new(),
            metrics: metrics::Local::new(),
        }
    }

    /// Gives the thread a name. Also makes the thread that forked known in the child.
    pub fn rename(&'static self, name: &str) {
        let (state, id) = (state(), self.id());
        let entry = Entry { thread: self, name: cut(name) };
        let definition = entry.definition(id);
        state.threads().insert(id, entry);
        state.announce(definition);
    }

    /// Gives a thread a name that has ended already.
    pub fn name_ended(id: u32, name: &str) {
        state().announce(Definition::Thread { id, name: cut(name), stand: Stand::Unknown });
    }

    /// The thread ended.
    pub fn end(&'static self, at: Ticks) {
        self.trace(at, Kind::ThreadEnd, 0);
        self.metrics.leave();
        self.metrics.reset();
        self.assume(Stand::Unknown);
        self.regions.forget();
        let state = state();
        if state.threads().remove(&self.id()).is_some() {
            lock(&state.spare_threads).push(self);
        }
    }

    /// Its number in the records; no other thread of the process ever has the same.
    pub fn id(&self) -> u32 {
        self.id.load(Ordering::Relaxed)
    }

    /// Lets [`Thread::current`] find this thread on the calling native thread.
    pub fn set_current(thread: Option<&'static Self>) {
        LOCAL.with(|local| local.thread.set(thread));
    }

    /// The thread that was set on the calling native thread.
    #[inline]
    pub fn current() -> Option<&'static Self> {
        LOCAL.with(|local| local.thread.get())
    }

    /// Tells how the thread stands to its lock, without recording it: for threads that were there
    /// before anyone recorded, first of all the one that is about to start a trace and so holds the lock.
    pub fn assume(&self, stand: Stand) {
        self.stand.store(stand as u8, Ordering::Relaxed);
        self.off_since.store(0, Ordering::Relaxed);
    }

    fn stand(&self) -> Stand {
        Stand::from_u8(self.stand.load(Ordering::Relaxed))
    }

    /// The thread wants the lock.
    #[inline]
    pub fn wants(&self, at: Ticks, lock: Lock) {
        let mode = mode();
        if mode & metrics::ALL != 0 {
            self.metrics.wants(at);
        }
        self.stands(mode, at, Kind::Wants, lock.0, Stand::Wants);
    }

    /// The thread has the lock; stamp it with [`now_holding`](super::now_holding).
    #[inline]
    pub fn acquired(&self, at: Ticks, lock: Lock) {
        let mode = mode();
        if mode & metrics::ALL != 0 {
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
        if mode & metrics::ALL != 0 {
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
    fn trace(&self, at: Ticks, kind: Kind, argument: u32) {
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
