//! Passes the events of the hooks to the recorder, with the thread and the lock that they concern.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use offlock_core::trace::{self, Lock, Reason, Remade, Stack, Stand, Thread, Ticks};

use super::waiters::{self, LockIndex, MAX_LOCKS};

/// The main interpreter's lock.
pub(crate) const MAIN_LOCK: LockIndex = 0;

/// Ids of the recorder's locks.
static LOCKS: [AtomicU32; MAX_LOCKS] = [const { AtomicU32::new(0) }; MAX_LOCKS];

/// Whether a waiting thread has asked the holder to release the lock.
static REQUESTED: [AtomicBool; MAX_LOCKS] = [const { AtomicBool::new(false) }; MAX_LOCKS];

/// A thread that releases the lock on request asks for it again at once: it wants the lock throughout, however
/// long the system lets it wait for a processor in between. A thread that has blocked, or worked for longer
/// than this (in ns), did something else.
const AT_ONCE: i64 = 20_000;

/// The recent actions of a native thread.
struct Recent {
    /// When it last asked for a lock; 0 once that is recorded.
    asked: Cell<Ticks>,
    /// Since when it waits for a lock; 0 if it does not.
    since: Cell<Ticks>,
    /// When it released a lock on request, and its effort up to then.
    given_up: Cell<Option<(Ticks, Effort)>>,
}

thread_local! {
    static RECENT: Recent = const { Recent { asked: Cell::new(0), since: Cell::new(0), given_up: Cell::new(None) } };
    /// The recorder's thread, which is ended when the native thread ends.
    static OWN: OwnThread = const { OwnThread(Cell::new(None)) };
}

/// The recorder's thread of a native thread.
struct OwnThread(Cell<Option<&'static Thread>>);

impl Drop for OwnThread {
    fn drop(&mut self) {
        if let Some(thread) = self.0.take() {
            known().remove(&native_id());
            Thread::set_current(None);
            thread.end(trace::now());
        }
    }
}

/// The recorder's threads by the native id that Python reports too (`threading.Thread.native_id`).
type KnownThreads = HashMap<u32, &'static Thread>;

static KNOWN: Remade<Mutex<KnownThreads>> = Remade::new();

fn known() -> MutexGuard<'static, KnownThreads> {
    KNOWN.get_or_make(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

/// The child has one thread, and the recorder there knows neither it nor the locks yet. Another thread may have
/// held the lock of the parent's table.
pub(crate) fn after_fork_in_child() {
    waiters::after_fork_in_child();
    KNOWN.forget();
    known().extend(Thread::current().map(|thread| (native_id(), thread)));
}

/// The id that `threading.get_native_id` returns.
pub(crate) fn native_id() -> u32 {
    #[cfg(target_os = "linux")]
    // SAFETY: gettid has no preconditions and cannot fail.
    return unsafe { libc::gettid() as u32 };
    #[cfg(target_vendor = "apple")]
    {
        let mut id = 0;
        // SAFETY: a thread id of 0 means the calling thread, and `id` is a valid place to write one to.
        unsafe { libc::pthread_threadid_np(0, &raw mut id) };
        id as u32
    }
    #[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
    return 0;
}

fn lock(index: LockIndex) -> Lock {
    Lock::from_id(LOCKS[index].load(Ordering::Relaxed))
}

/// The recorder's thread for the calling one.
#[inline]
pub(crate) fn current() -> &'static Thread {
    Thread::current().unwrap_or_else(adopt)
}

#[cold]
fn adopt() -> &'static Thread {
    let id = native_id();
    let thread =
        *known().entry(id).or_insert_with(|| Thread::start(trace::now(), &trace::nameless_thread(id)));
    Thread::set_current(Some(thread));
    // Fails only while the native thread is being torn down; its end is then not recorded.
    let _ = OWN.try_with(|own| own.0.set(Some(thread)));
    thread
}

/// Names the thread with a native id, even one that was not seen yet.
pub(crate) fn name_thread(native_id: u32, name: &str) {
    let mut known = known();
    match known.get(&native_id) {
        Some(thread) => thread.rename(name),
        None if trace::is_tracing() => drop(known.insert(native_id, Thread::start(trace::now(), name))),
        None => drop(known.insert(native_id, Thread::present(name))),
    }
}

/// Records the state of the known threads in a new trace: the calling one holds the lock, the others do not.
/// Nothing is known where the lock is not `watched`.
pub(crate) fn announce(names: &[(u32, String)], watched: bool) {
    let own = current();
    for (native_id, name) in names {
        name_thread(*native_id, name);
    }
    for (index, lock) in LOCKS.iter().enumerate().filter(|(_, id)| id.load(Ordering::Relaxed) != 0) {
        Lock::from_id(lock.load(Ordering::Relaxed)).rename(&lock_name(index));
    }
    for thread in known().values() {
        thread.assume(if watched && thread.id() == own.id() { Stand::Holds } else { Stand::Off });
    }
}

/// Registers a lock that the hooks have found, possibly in place of a known one.
pub(crate) fn found_lock(index: LockIndex) {
    LOCKS[index].store(Lock::new(&lock_name(index)).id(), Ordering::Relaxed);
}

/// The main interpreter's lock, whether it was found or not.
pub(crate) fn main_lock() -> Lock {
    if LOCKS[MAIN_LOCK].load(Ordering::Relaxed) == 0 {
        found_lock(MAIN_LOCK);
    }
    lock(MAIN_LOCK)
}

fn lock_name(index: LockIndex) -> String {
    if index == MAIN_LOCK { "GIL".to_owned() } else { format!("GIL {}", index + 1) }
}

/// The system's counters of a thread's activity.
#[derive(Clone, Copy)]
struct Effort {
    /// How often it has blocked.
    blocked: i64,
    /// Nanoseconds on a processor.
    worked: i64,
}

impl Effort {
    fn so_far() -> Self {
        // SAFETY: all-zero bytes are a valid rusage, and a valid place to write one to.
        let usage = unsafe {
            let mut usage = std::mem::zeroed::<libc::rusage>();
            #[cfg(target_os = "linux")]
            libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage);
            usage
        };
        #[allow(clippy::useless_conversion, reason = "microseconds have 32 bits on macOS")]
        let nanoseconds = |time: libc::timeval| time.tv_sec * 1_000_000_000 + i64::from(time.tv_usec) * 1_000;
        let worked = nanoseconds(usage.ru_utime) + nanoseconds(usage.ru_stime);
        Self { blocked: usage.ru_nvcsw, worked }
    }

    fn is_nothing_since(self, before: Self) -> bool {
        self.blocked == before.blocked && self.worked - before.worked < AT_ONCE
    }
}

/// The thread asks for a lock, or is about to release the one that it holds: both begin with the same call.
#[inline]
pub(crate) fn asks() {
    if trace::is_active() && !Thread::current().is_some_and(Thread::has_lock) {
        RECENT.with(|recent| recent.asked.set(recent.given_up_just_now().unwrap_or_else(trace::now)));
    }
}

impl Recent {
    /// When the thread released the lock, if that was on request and it has done nothing since.
    #[inline]
    fn given_up_just_now(&self) -> Option<Ticks> {
        let (at, before) = self.given_up.take()?;
        Effort::so_far().is_nothing_since(before).then_some(at)
    }
}

/// The thread has to wait for the lock that it asked for. Called again after each time slice. If stacks are
/// recorded, returns since when it waits.
#[inline]
pub(crate) fn waits(index: LockIndex) -> Option<Ticks> {
    record_wish(current(), lock(index));
    trace::stacks_after()?;
    Some(RECENT.with(|recent| recent.since.get())).filter(|since| *since != 0)
}

#[inline]
fn record_wish(thread: &Thread, lock: Lock) {
    RECENT.with(|recent| {
        let asked = recent.asked.take();
        if asked != 0 {
            recent.since.set(asked);
            thread.wants(asked, lock);
        }
    });
}

/// The thread has waited for a whole time slice and asks the holder to release the lock.
#[inline]
pub(crate) fn requests(index: LockIndex) {
    REQUESTED[index].store(true, Ordering::Relaxed);
}

/// The thread has acquired the lock. If its stack is to be recorded, returns since when it waited.
#[inline]
#[must_use]
pub(crate) fn acquired(index: LockIndex) -> Option<Ticks> {
    // Written to only if it changes: all threads read the memory beside it.
    if REQUESTED[index].load(Ordering::Relaxed) {
        REQUESTED[index].store(false, Ordering::Relaxed);
    }
    if !trace::is_active() {
        return None;
    }
    let (thread, lock, now) = (current(), lock(index), trace::now_holding());
    record_wish(thread, lock);
    thread.acquired(now, lock);
    let since = RECENT.with(|recent| recent.since.replace(0));
    let after = trace::stacks_after()?;
    waiters::set_holder(index, thread.id());
    (since != 0 && now.saturating_sub(since) >= after).then_some(since)
}

/// The thread, which holds the lock, begins to record stacks.
pub(crate) fn holds(index: LockIndex) {
    (0..MAX_LOCKS).for_each(|other| waiters::set_holder(other, 0));
    waiters::set_holder(index, current().id());
}

/// The holder of the lock had this stack at a time, which another thread has read.
pub(crate) fn held(index: LockIndex, at: Ticks, stack: Stack) {
    let holder = waiters::holder(index);
    if holder != 0 {
        stack.holding(at, holder);
    }
}

/// The thread has this stack as it releases the lock, at the time that [`released`] has returned.
#[cold]
pub(crate) fn stack_at_release(index: LockIndex, at: Ticks, stack: Option<Stack>) {
    waiters::of(index).release(at);
    if let Some(stack) = stack {
        stack.releasing(at, current().id());
    }
}

/// The thread had this stack while it waited for the lock, since the time that [`acquired`] has returned.
#[cold]
pub(crate) fn stack_of_wait(since: Ticks, stack: Option<Stack>) {
    if let Some(stack) = stack {
        stack.waiting(since, current().id());
    }
}

/// The thread releases the lock. If its stack is to be recorded, returns the time.
#[inline]
#[must_use]
pub(crate) fn released(index: LockIndex) -> Option<Ticks> {
    RECENT.with(|recent| {
        recent.asked.set(0);
        recent.since.set(0);
    });
    if !trace::is_active() {
        return None;
    }
    let requested = REQUESTED[index].load(Ordering::Relaxed);
    let now = if requested { trace::now() } else { trace::now_releasing() };
    current().released(now, lock(index), Reason::Blocks);
    if requested {
        RECENT.with(|recent| recent.given_up.set(Some((now, Effort::so_far()))));
    }
    waiters::of(index).wants_release(now).then_some(now)
}

/// The thread has waited for another one to acquire the lock that it released, which does not count as its own
/// activity.
pub(crate) fn handed_over() {
    RECENT.with(|recent| {
        if let Some((at, _)) = recent.given_up.get() {
            recent.given_up.set(Some((at, Effort::so_far())));
        }
    });
}

/// All known threads, by native id.
pub(crate) fn all() -> Vec<(u32, &'static Thread)> {
    known().iter().map(|(id, thread)| (*id, *thread)).collect()
}

/// Ends the thread with a native id, whose end was not reported.
pub(crate) fn lose(native_id: u32) {
    if let Some(thread) = known().remove(&native_id) {
        thread.end(trace::now());
    }
}

/// The thread with a native id, if it has been seen.
pub(crate) fn find(native_id: u32) -> Option<&'static Thread> {
    known().get(&native_id).copied()
}
