//! CPython's lock, seen from the calls that the interpreter itself makes.
//!
//! CPython has no hook for its lock. Up to 3.15 it builds the lock from a pthread mutex and a condition, and
//! a second pair ensures that a requested switch happens (`Python/ceval_gil.h`, `take_gil` and `drop_gil`):
//!
//! ```text
//! take_gil:  lock(mutex)  timedwait(cond, mutex)*  lock(switch_mutex) signal(switch_cond) unlock(switch_mutex)
//!            unlock(mutex)
//! drop_gil:  lock(mutex)  signal(cond)  unlock(mutex)    and, when others have asked for the lock,
//!            lock(switch_mutex)  wait(switch_cond, switch_mutex)?  unlock(switch_mutex)
//! ```
//!
//! [`install`] redirects the interpreter's own imports of these functions to the ones below. The addresses of
//! the lock's parts are not read from any structure: they are observed in one release and acquisition by this
//! thread, and the installation fails for every sequence but the known one. Afterwards the address alone
//! identifies a call: `signal(cond)` is a release, `signal(switch_cond)` an acquisition. Both happen while
//! `mutex` is held, so their timestamps are in the order in which the lock passed between threads.

use std::cell::Cell;
use std::ffi::c_int;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use libc::{pthread_cond_t, pthread_mutex_t, pthread_mutexattr_t, timespec};
use pyo3::ffi;
use pyo3::prelude::*;

use super::holder;
use super::plt::Slot;
use super::redirect::{NextHook, Redirection, next, redirect, restore};
use crate::lock::feed;
use crate::lock::waiters::{LockIndex, MAX_LOCKS};

type Lock = unsafe extern "C" fn(*mut pthread_mutex_t) -> c_int;
type Init = unsafe extern "C" fn(*mut pthread_mutex_t, *const pthread_mutexattr_t) -> c_int;
type Signal = unsafe extern "C" fn(*mut pthread_cond_t) -> c_int;
type TimedWait = unsafe extern "C" fn(*mut pthread_cond_t, *mut pthread_mutex_t, *const timespec) -> c_int;
type Wait = unsafe extern "C" fn(*mut pthread_cond_t, *mut pthread_mutex_t) -> c_int;

/// The imports that are redirected, each with the function that replaces it, and with the slot for the
/// function that it calls next.
fn redirections() -> [Redirection; 5] {
    [
        (c"pthread_mutex_lock", mutex_lock as Lock as usize, &MUTEX_LOCK),
        (c"pthread_mutex_init", mutex_init as Init as usize, &MUTEX_INIT),
        (c"pthread_cond_signal", cond_signal as Signal as usize, &COND_SIGNAL),
        (c"pthread_cond_timedwait", cond_timedwait as TimedWait as usize, &COND_TIMEDWAIT),
        (c"pthread_cond_wait", cond_wait as Wait as usize, &COND_WAIT),
    ]
}

static MUTEX_LOCK: NextHook = NextHook::new();
static MUTEX_INIT: NextHook = NextHook::new();
static COND_SIGNAL: NextHook = NextHook::new();
static COND_TIMEDWAIT: NextHook = NextHook::new();
static COND_WAIT: NextHook = NextHook::new();

/// Where the parts of a lock lie, relative to its mutex; the same for every lock of an interpreter's build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LockLayout {
    cond: usize,
    switch_mutex: usize,
    switch_cond: usize,
}

/// The layout once it is known. Distances wrap, so that address = mutex.wrapping_add(distance).
static COND: AtomicUsize = AtomicUsize::new(0);
static SWITCH_MUTEX: AtomicUsize = AtomicUsize::new(0);
static SWITCH_COND: AtomicUsize = AtomicUsize::new(0);

/// Addresses of the known locks' mutexes: the main interpreter's first, then those of interpreters with a
/// lock of their own (3.12+, `Py_NewInterpreterFromConfig`). 0 is a free entry.
static MUTEXES: [AtomicUsize; MAX_LOCKS] = [const { AtomicUsize::new(0) }; MAX_LOCKS];
/// Entries of `MUTEXES` that may be in use.
static MUTEX_COUNT: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The last unknown mutex this thread locked, and how many calls of an acquisition have followed.
    static SUSPECT: Cell<(usize, u8)> = const { Cell::new((0, 0)) };
}

/// The thread (`pthread_self`) whose calls are recorded; 0 when there is none.
static CALIBRATOR: AtomicUsize = AtomicUsize::new(0);

/// The most calls that are recorded; more than a known sequence has.
const MOST_CALLS: usize = 16;

thread_local! {
    /// The calls that it made: how many, and the first of them.
    static CALLS: Cell<(usize, [PthreadCall; MOST_CALLS])> = const { Cell::new((0, [PthreadCall::Wait; MOST_CALLS])) };
}

/// A call seen during calibration, with its address argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PthreadCall {
    Lock(usize),
    Signal(usize),
    Wait,
}

/// Which lock's mutex lies at `address`.
#[inline]
fn lock_at(address: usize) -> Option<LockIndex> {
    let count = MUTEX_COUNT.load(Ordering::Acquire);
    MUTEXES[..count].iter().position(|mutex| mutex.load(Ordering::Relaxed) == address)
}

/// Which lock has its part at `address`, when that part lies `distance` from its mutex.
#[inline]
fn lock_with(distance: &AtomicUsize, address: usize) -> Option<LockIndex> {
    lock_at(address.wrapping_sub(distance.load(Ordering::Relaxed)))
}

unsafe extern "C" fn mutex_lock(mutex: *mut pthread_mutex_t) -> c_int {
    let address = mutex as usize;
    if lock_at(address).is_some() {
        feed::asks();
    } else if lock_with(&SWITCH_MUTEX, address).is_none() {
        on_unknown_lock(address);
    }
    next!(MUTEX_LOCK, Lock, libc::pthread_mutex_lock, mutex)
}

unsafe extern "C" fn cond_signal(cond: *mut pthread_cond_t) -> c_int {
    let address = cond as usize;
    if let Some(lock) = lock_with(&COND, address) {
        if let Some(at) = feed::released(lock) {
            feed::stack_at_release(lock, at, holder::own_stack(address));
        }
    } else if let Some(lock) = lock_with(&SWITCH_COND, address) {
        if let Some(since) = feed::acquired(lock) {
            feed::stack_of_wait(since, holder::own_stack(cond_of(lock)));
        }
    } else {
        on_unknown_signal(address);
    }
    next!(COND_SIGNAL, Signal, libc::pthread_cond_signal, cond)
}

unsafe extern "C" fn cond_timedwait(
    cond: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    until: *const timespec,
) -> c_int {
    let wait = |until: *const timespec| {
        next!(COND_TIMEDWAIT, TimedWait, libc::pthread_cond_timedwait, cond, mutex, until)
    };
    let Some(lock) = lock_at(mutex as usize) else { return wait(until) };
    // SAFETY: the interpreter's own argument.
    let deadline = unsafe { until.as_ref() };
    let result = match (feed::waits(lock), deadline) {
        (Some(since), Some(deadline)) => {
            holder::wait(lock, since, cond as usize, deadline, |until| wait(until))
        }
        _ => wait(until),
    };
    if result == libc::ETIMEDOUT {
        feed::requests(lock);
    }
    result
}

/// The address of a lock's condition.
fn cond_of(lock: LockIndex) -> usize {
    MUTEXES[lock].load(Ordering::Relaxed).wrapping_add(COND.load(Ordering::Relaxed))
}

/// Makes sure that stacks can be taken. The caller holds the lock, and the calls are redirected.
///
/// # Errors
/// A sentence that says why they cannot be taken.
pub(crate) fn prepare_stacks(py: Python<'_>) -> Result<(), String> {
    let known =
        (0..MUTEX_COUNT.load(Ordering::Acquire)).filter(|lock| MUTEXES[*lock].load(Ordering::Relaxed) != 0);
    let conds: Vec<(LockIndex, usize)> = known.map(|lock| (lock, cond_of(lock))).collect();
    feed::holds(holder::prepare(py, &conds)?);
    Ok(())
}

/// The proof that no thread gets or releases the main interpreter's lock.
pub(crate) struct Still(());

/// Runs `look` while no thread gets or releases the main interpreter's lock. `None` if that cannot be achieved `within` a
/// time. The calling thread is none of the interpreter's, and `look` is short: threads wait for it.
pub(crate) fn hold_still<R>(within: Duration, look: impl FnOnce(&Still) -> R) -> Option<R> {
    let mutex = Some(MUTEXES[feed::MAIN_LOCK].load(Ordering::Relaxed)).filter(|mutex| *mutex != 0)?;
    let mutex = mutex as *mut pthread_mutex_t;
    let deadline = deadline(within);
    // SAFETY: the mutex of the main interpreter's lock, which exists as long as the interpreter.
    if unsafe { libc::pthread_mutex_timedlock(mutex, &raw const deadline) } != 0 {
        return None;
    }
    /// Unlocks the mutex, also if `look` panics.
    struct Locked(*mut pthread_mutex_t);
    impl Drop for Locked {
        fn drop(&mut self) {
            // SAFETY: this thread has locked it.
            unsafe { libc::pthread_mutex_unlock(self.0) };
        }
    }
    let _locked = Locked(mutex);
    Some(look(&Still(())))
}

/// The time of the clock by which mutexes are waited for, after a delay.
fn deadline(after: Duration) -> timespec {
    let mut time = timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a clock that exists, and a valid place to write the time to.
    unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &raw mut time) };
    let nanoseconds = time.tv_nsec + i64::from(after.subsec_nanos());
    let seconds = i64::try_from(after.as_secs()).unwrap_or(0) + nanoseconds / 1_000_000_000;
    timespec { tv_sec: time.tv_sec + seconds, tv_nsec: nanoseconds % 1_000_000_000 }
}

/// A thread that released the lock on request waits here until another thread has acquired it.
unsafe extern "C" fn cond_wait(cond: *mut pthread_cond_t, mutex: *mut pthread_mutex_t) -> c_int {
    note(PthreadCall::Wait);
    let result = next!(COND_WAIT, Wait, libc::pthread_cond_wait, cond, mutex);
    if lock_with(&SWITCH_MUTEX, mutex as usize).is_some() {
        feed::handed_over();
    }
    result
}

/// An interpreter's lock is never destroyed, so its memory may be reused for something else.
unsafe extern "C" fn mutex_init(
    mutex: *mut pthread_mutex_t,
    attributes: *const pthread_mutexattr_t,
) -> c_int {
    if let Some(lock) = lock_at(mutex as usize)
        && lock != feed::MAIN_LOCK
    {
        MUTEXES[lock].store(0, Ordering::Release);
    }
    next!(MUTEX_INIT, Init, libc::pthread_mutex_init, mutex, attributes)
}

fn on_unknown_lock(address: usize) {
    note(PthreadCall::Lock(address));
    let (mutex, _) = SUSPECT.get();
    let follows = mutex != 0 && address == mutex.wrapping_add(SWITCH_MUTEX.load(Ordering::Relaxed));
    SUSPECT.set(if follows { (mutex, 1) } else { (address, 0) });
}

/// lock(x), lock(x + SWITCH_MUTEX), signal(x + SWITCH_COND) by one thread is the acquisition of an unknown
/// lock.
fn on_unknown_signal(address: usize) {
    note(PthreadCall::Signal(address));
    let (mutex, calls) = SUSPECT.get();
    if calls == 1
        && address == mutex.wrapping_add(SWITCH_COND.load(Ordering::Relaxed))
        && MUTEX_COUNT.load(Ordering::Relaxed) > 0
        && let Some(lock) = register(mutex)
    {
        SUSPECT.set((0, 0));
        // The stack of this wait, if it was long, is left out.
        let _ = feed::acquired(lock);
    }
}

fn note(call: PthreadCall) {
    let calibrator = CALIBRATOR.load(Ordering::Relaxed);
    if calibrator != 0 && calibrator == this_thread() {
        let (count, mut calls) = CALLS.get();
        if let Some(place) = calls.get_mut(count) {
            *place = call;
        }
        CALLS.set((count + 1, calls));
    }
}

fn this_thread() -> usize {
    // SAFETY: pthread_self has no preconditions.
    unsafe { libc::pthread_self() as usize }
}

/// Locks a guarded value; a panic elsewhere leaves none of these half changed.
fn guard<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds a lock; `None` when the table is full. Never blocks: a fork may happen at any moment, and its child
/// has only the thread that forked.
fn register(mutex: usize) -> Option<LockIndex> {
    let take =
        |entry: &AtomicUsize| entry.compare_exchange(0, mutex, Ordering::Relaxed, Ordering::Relaxed).is_ok();
    let free = MUTEXES.iter().position(take)?;
    MUTEX_COUNT.fetch_max(free + 1, Ordering::Release);
    feed::found_lock(free);
    Some(free)
}

/// The redirected imports, while they are. The thread that holds this keeps the interpreter's lock meanwhile,
/// so that no thread forks.
static INSTALLED: Mutex<Vec<Slot>> = Mutex::new(Vec::new());

/// Redirects the interpreter's calls. The caller holds the lock; a second call changes nothing.
///
/// # Errors
/// A sentence that names the unexpected condition; nothing stays redirected then.
pub(crate) fn install(py: Python<'_>) -> Result<(), String> {
    while CALIBRATOR.load(Ordering::Relaxed) != 0 {
        py.detach(|| std::thread::sleep(A_MOMENT));
    }
    let mut installed = guard(&INSTALLED);
    if installed.is_empty() {
        *installed = redirect(&redirections())?;
    }
    drop(installed);
    if MUTEX_COUNT.load(Ordering::Relaxed) == 0
        && let Err(reason) = calibrate()
    {
        uninstall();
        return Err(reason);
    }
    Ok(())
}

/// How long a calibration may take.
const A_MOMENT: Duration = Duration::from_micros(200);

/// Restores the interpreter's direct calls of the C library, unless a thread is about to find the lock.
/// Threads inside a hook finish there: the code stays loaded.
pub(crate) fn uninstall() {
    if CALIBRATOR.load(Ordering::Relaxed) == 0 {
        restore(&mut guard(&INSTALLED));
    }
}

/// In the child of a fork, the thread that was about to find the lock no longer exists.
pub(crate) fn after_fork_in_child() {
    CALIBRATOR.store(0, Ordering::Relaxed);
}

/// How often to calibrate again when other threads asked for the lock in between.
const ATTEMPTS: usize = 100;

/// Finds the main interpreter's lock by releasing and re-acquiring it once.
fn calibrate() -> Result<(), String> {
    let mut calls = Vec::new();
    for _ in 0..ATTEMPTS {
        calls = calls_of_one_round();
        if let Some((mutex, layout)) = recognise(&calls) {
            COND.store(layout.cond, Ordering::Relaxed);
            SWITCH_MUTEX.store(layout.switch_mutex, Ordering::Relaxed);
            SWITCH_COND.store(layout.switch_cond, Ordering::Relaxed);
            register(mutex);
            return Ok(());
        }
    }
    if calls.is_empty() {
        return Err("this interpreter runs without a lock (a free-threaded build), or does not take it by \
                    pthread_mutex_lock"
            .into());
    }
    Err(format!("a release and an acquisition of the lock made {} unfamiliar calls: {calls:x?}", calls.len()))
}

fn calls_of_one_round() -> Vec<PthreadCall> {
    CALLS.set((0, [PthreadCall::Wait; MOST_CALLS]));
    CALIBRATOR.store(this_thread(), Ordering::Relaxed);
    // SAFETY: the caller of `install` holds the lock and no borrowed reference that another thread could end.
    unsafe { ffi::PyEval_RestoreThread(ffi::PyEval_SaveThread()) };
    CALIBRATOR.store(0, Ordering::Relaxed);
    let (count, calls) = CALLS.get();
    calls[..count.min(MOST_CALLS)].to_vec()
}

/// The mutex and the layout, if the calls are those of a release and an acquisition without another thread's
/// between them.
fn recognise(calls: &[PthreadCall]) -> Option<(usize, LockLayout)> {
    use PthreadCall::{Lock, Signal};
    match *calls {
        [Lock(mutex), Signal(cond), Lock(again), Lock(switch_mutex), Signal(switch_cond)]
            if mutex == again && switch_mutex != mutex && switch_cond != cond =>
        {
            let distance = |part: usize| part.wrapping_sub(mutex);
            let layout = LockLayout {
                cond: distance(cond),
                switch_mutex: distance(switch_mutex),
                switch_cond: distance(switch_cond),
            };
            Some((mutex, layout))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::PthreadCall::{Lock, Signal, Wait};
    use super::*;

    #[test]
    fn an_undisturbed_round_gives_the_layout() {
        let calls = [Lock(100), Signal(60), Lock(100), Lock(190), Signal(150)];
        let layout = LockLayout { cond: 40usize.wrapping_neg(), switch_mutex: 90, switch_cond: 50 };
        assert_eq!(recognise(&calls), Some((100, layout)));
    }

    #[test]
    fn anything_else_is_refused() {
        for calls in [
            &[][..],
            &[Lock(100), Signal(60), Lock(190), Wait, Lock(100), Lock(190), Signal(150)],
            &[Lock(100), Signal(60), Lock(101), Lock(190), Signal(150)],
            &[Lock(100), Signal(60), Lock(100), Lock(100), Signal(150)],
            &[Lock(100), Signal(60), Lock(100), Lock(190), Signal(60)],
        ] {
            assert_eq!(recognise(calls), None, "{calls:?}");
        }
    }
}
