//! What threads of a free-threaded interpreter wait for, as the recorder hears of it: stop-the-world pauses, and locks of
//! objects.
//!
//! A pause is a lock that the thread which stopped the others has until it wakes them. Which thread that is, is known when it
//! posts the semaphores for which they wait, so these are kept in a table meanwhile. It is made of atomics, because the
//! thread that wakes another one may hold any lock of the interpreter's.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use offlock_core::trace::{self, Lock, Remade, Ticks};

use super::feed;
use crate::cpython::type_name::Type;

thread_local! {
    /// Whether the waits of the calling thread are left out.
    static IS_IGNORED: Cell<bool> = const { Cell::new(false) };
}

/// Leaves out the waits of the calling thread from now on.
pub(crate) fn ignore_own() {
    IS_IGNORED.set(true);
}

pub(crate) fn is_own_ignored() -> bool {
    IS_IGNORED.get()
}

/// The calls by which a thread lets others run until it gets a lock or parks.
struct Spin {
    /// When the first of them began, and when the last one ended; 0 if they are recorded.
    first: Cell<Ticks>,
    last: Cell<Ticks>,
    count: Cell<u32>,
    /// The end of what was recorded last of this thread: as it is recorded afterwards, it must not overlap.
    recorded: Cell<Ticks>,
}

thread_local! {
    static SPIN: Spin = const { Spin { first: Cell::new(0), last: Cell::new(0), count: Cell::new(0), recorded: Cell::new(0) } };
}

/// The longest time, in nanoseconds, between two such calls, and from the last one to the wait.
const AT_ONCE: u64 = 20_000;

impl Spin {
    fn goes_on(&self, now: Ticks) -> bool {
        trace::nanoseconds(now.saturating_sub(self.last.get())) < AT_ONCE
    }

    fn forget(&self) {
        self.last.set(0);
        self.count.set(0);
    }

    /// Records calls after which the thread has got its lock: it is not known which.
    fn record(&self) {
        let (first, last) = (self.not_recorded(self.first.get()), self.last.get());
        if self.count.get() > 1 && first < last && trace::is_tracing() && !is_own_ignored() {
            let (thread, lock) = (feed::current(), known(&SPINNING, Lock::SPINNING));
            thread.wait_begin(first, lock);
            thread.wait_end(first, last, lock);
            self.recorded.set(last);
        }
        self.forget();
    }

    /// A time, or the end of what is recorded if that is later.
    fn not_recorded(&self, time: Ticks) -> Ticks {
        time.max(self.recorded.get())
    }
}

/// Lets other threads run by `call`, because a lock is not free. Calls that have led to a lock are recorded when the
/// next ones begin.
pub(crate) fn while_spinning<R>(call: impl FnOnce() -> R) -> R {
    let now = trace::now();
    SPIN.with(|spin| {
        if !spin.goes_on(now) {
            spin.record();
            spin.first.set(now);
        }
    });
    let result = call();
    SPIN.with(|spin| {
        spin.count.set(spin.count.get() + 1);
        spin.last.set(trace::now());
    });
    result
}

/// Since when the calling thread, which is about to park, has found the lock taken.
fn since_spinning() -> Ticks {
    let now = trace::now();
    SPIN.with(|spin| {
        if !spin.goes_on(now) {
            spin.record();
            return now;
        }
        spin.forget();
        spin.not_recorded(spin.first.get())
    })
}

/// The calling thread parks for something that is not recorded.
pub(crate) fn forget_spinning() {
    SPIN.with(|spin| if spin.goes_on(trace::now()) { spin.forget() } else { spin.record() });
}

/// A wait that is being recorded.
#[must_use]
pub(crate) struct Wait {
    lock: Lock,
    since: Ticks,
    /// Its place in the table, if the world is stopped.
    place: Option<&'static Paused>,
}

impl Wait {
    fn begin(lock: Lock, since: Ticks, place: Option<&'static Paused>) -> Self {
        feed::current().wait_begin(since, lock);
        Self { lock, since, place }
    }

    /// The thread does not wait any more.
    pub(crate) fn end(self) {
        if let Some(place) = self.place {
            place.leave();
        }
        let now = trace::now();
        feed::current().wait_end(self.since, now, self.lock);
        SPIN.with(|spin| spin.recorded.set(now));
    }
}

/// The calling thread waits for the end of a pause, with this semaphore.
pub(crate) fn paused(semaphore: usize) -> Wait {
    let since = trace::now();
    Wait::begin(pause(), since, Paused::enter(semaphore, since))
}

/// The calling thread waits for the lock of an object of this type.
pub(crate) fn for_object(type_: Type) -> Wait {
    Wait::begin(of_objects(type_), since_spinning(), None)
}

/// The calling thread is about to post a semaphore: if another one waits with it for the end of a pause, the calling thread
/// has made the pause, which ends.
#[inline]
pub(crate) fn wakes(semaphore: usize) {
    if PRESENT.load(Ordering::Relaxed) > 0 && trace::is_tracing() {
        end_pause(semaphore);
    }
}

#[cold]
fn end_pause(semaphore: usize) {
    let is_this = |paused: &&Paused| paused.semaphore.load(Ordering::Acquire) == semaphore;
    let is_new = |paused: &Paused| paused.since.load(Ordering::Relaxed) != 0;
    if PAUSED.iter().find(is_this).is_none_or(|paused| !is_new(paused)) {
        return;
    }
    // The pause began when the first of them began to wait. They all wait for this thread.
    let begins =
        PAUSED.iter().map(|paused| paused.since.swap(0, Ordering::Relaxed)).filter(|since| *since != 0);
    if let Some(since) = begins.min() {
        SPIN.with(|spin| {
            let now = trace::now();
            feed::current().held(spin.not_recorded(since), now, pause());
            spin.recorded.set(now);
        });
    }
}

/// A thread that waits for the end of a pause.
struct Paused {
    /// Its semaphore; 0 in a free place.
    semaphore: AtomicUsize,
    /// Since when it waits; 0 once the pause is known to end.
    since: AtomicU64,
}

/// Of the threads beyond these, it is not known which one stopped them, unless it stopped one of these as well.
static PAUSED: [Paused; 256] =
    [const { Paused { semaphore: AtomicUsize::new(0), since: AtomicU64::new(0) } }; 256];
/// How many of them wait.
static PRESENT: AtomicUsize = AtomicUsize::new(0);

impl Paused {
    fn enter(semaphore: usize, since: Ticks) -> Option<&'static Self> {
        let free = |place: &&Self| {
            let taken = place.semaphore.compare_exchange(0, semaphore, Ordering::Relaxed, Ordering::Relaxed);
            taken.is_ok()
        };
        let place = PAUSED.iter().find(free)?;
        place.since.store(since, Ordering::Release);
        PRESENT.fetch_add(1, Ordering::Relaxed);
        Some(place)
    }

    fn leave(&self) {
        PRESENT.fetch_sub(1, Ordering::Relaxed);
        self.since.store(0, Ordering::Relaxed);
        self.semaphore.store(0, Ordering::Release);
    }
}

/// The numbers of the locks that stand for pauses and for spinning; 0 until there was one.
static PAUSE: AtomicU32 = AtomicU32::new(0);
static SPINNING: AtomicU32 = AtomicU32::new(0);

fn pause() -> Lock {
    known(&PAUSE, Lock::STOP_THE_WORLD)
}

/// The lock with this number, which is made with a name if there is none.
fn known(number: &AtomicU32, name: &str) -> Lock {
    let known = number.load(Ordering::Relaxed);
    if known != 0 {
        return Lock::from_id(known);
    }
    let made = Lock::new(name);
    match number.compare_exchange(0, made.id(), Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => made,
        Err(first) => Lock::from_id(first),
    }
}

/// The locks that stand for those of all objects of a type.
static OBJECTS: Remade<Mutex<Objects>> = Remade::new();

#[derive(Default)]
struct Objects {
    by_type: HashMap<Type, Lock>,
    by_name: HashMap<String, Lock>,
}

/// The most types that are distinguished.
const MOST_TYPES: usize = 100;
/// The name of the others.
const OTHERS: &str = "(other)";

fn of_objects(type_: Type) -> Lock {
    // Nothing of the interpreter is called while this is locked.
    let mut objects = OBJECTS.get_or_make(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(lock) = objects.by_type.get(&type_) {
        return *lock;
    }
    let is_full = objects.by_type.len() >= MOST_TYPES;
    let name = type_.name().filter(|_| !is_full).unwrap_or_else(|| OTHERS.to_owned());
    let lock = Lock::of_objects(&name);
    let lock = *objects.by_name.entry(name).or_insert_with(|| Lock::new(&lock));
    if !is_full {
        objects.by_type.insert(type_, lock);
    }
    lock
}

/// The child has one thread, and its recorder knows no locks.
pub(crate) fn after_fork_in_child() {
    PAUSED.iter().for_each(|paused| {
        paused.since.store(0, Ordering::Relaxed);
        paused.semaphore.store(0, Ordering::Relaxed);
    });
    PRESENT.store(0, Ordering::Relaxed);
    PAUSE.store(0, Ordering::Relaxed);
    SPINNING.store(0, Ordering::Relaxed);
    OBJECTS.forget();
}
