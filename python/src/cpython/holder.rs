//! Takes the stacks of the thread that holds the lock, and of threads that wait for it.
//!
//! CPython keeps the thread state of the last holder and whether the lock is held just before the condition
//! (`struct _gil_runtime_state`). Everything here runs while the lock's mutex is held, so both are constant.
//!
//! A hold is watched by one of the threads that wait for its end: it wakes every 2 ms. The holder cannot
//! release the lock meanwhile, so its thread state stays, even if it is in a function in C that takes 200 ms.

use std::ffi::c_int;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::time::Duration;

use libc::timespec;
use offlock_core::trace::{self, Stack, Ticks};
use pyo3::ffi;
use pyo3::prelude::*;

use super::frames;
use crate::lock::feed;
use crate::lock::waiters::{self, LockIndex, Waiter};

/// How far before the condition the address of the last holder's thread state lies, and whether the lock is
/// held.
const LAST_HOLDER: usize = 24;
const IS_LOCKED: usize = 16;

/// The address of the thread state of the thread that acquired the lock last.
fn last_holder(cond: usize) -> usize {
    // SAFETY: the field of a lock whose mutex the caller holds; the offset was verified by `prepare`.
    unsafe { &*((cond - LAST_HOLDER) as *const AtomicUsize) }.load(Ordering::Relaxed)
}

fn is_locked(cond: usize) -> bool {
    // SAFETY: as in `last_holder`.
    unsafe { &*((cond - IS_LOCKED) as *const AtomicI32) }.load(Ordering::Relaxed) == 1
}

/// Verifies all that is needed to take stacks. The calling thread holds the lock of one of these conditions;
/// its index is returned.
///
/// # Errors
/// A sentence that says what is not as expected.
pub(super) fn prepare(py: Python<'_>, conds: &[(LockIndex, usize)]) -> Result<LockIndex, String> {
    // SAFETY: the interpreter is attached to this thread.
    let own = unsafe { ffi::PyThreadState_Get() } as usize;
    let is_own = |cond: usize| is_locked(cond) && last_holder(cond) == own;
    let held = conds.iter().find(|(_, cond)| is_own(*cond));
    let (lock, _) = held.ok_or("the lock's holder is not where it is expected")?;
    frames::probe(py).map(|()| *lock)
}

/// The stack of the calling thread, which is just acquiring or releasing the lock with this condition.
pub(super) fn own_stack(cond: usize) -> Option<Stack> {
    if !frames::is_verified() {
        return None;
    }
    // SAFETY: the layout was verified. A thread sets the last holder to its own state when it acquires the
    // lock, before it signals that, and no other thread can acquire it before the mutex is released.
    unsafe { frames::own_stack(last_holder(cond)) }
}

/// Waits for the lock with this condition as the interpreter asked, by calling `wait` with a time. Looks at
/// the holder's stack meanwhile. The thread has wanted the lock since `since`.
pub(super) fn wait(
    lock: LockIndex,
    since: Ticks,
    cond: usize,
    until: &timespec,
    wait: impl Fn(&timespec) -> c_int,
) -> c_int {
    let mut waiter = Waiter::enter(lock, since);
    let result = loop {
        let clock = if waiter.observes() { Clock::of(until) } else { None };
        let Some(look) = clock.and_then(|clock| clock.before(until, until_next_look(lock, since))) else {
            break wait(until);
        };
        let result = wait(&look);
        if result != libc::ETIMEDOUT {
            break result;
        }
        observe(lock, since, cond);
    };
    if result == libc::ETIMEDOUT {
        observe(lock, since, cond);
    }
    waiter.leave();
    result
}

fn until_next_look(lock: LockIndex, since: Ticks) -> Option<Duration> {
    let due = waiters::of(lock).due(since)?;
    Some(Duration::from_nanos(trace::nanoseconds(due.saturating_sub(trace::now()))))
}

/// Takes the holder's stack if it is due. The thread that calls this waits since `since`.
fn observe(lock: LockIndex, since: Ticks, cond: usize) {
    let now = trace::now();
    if waiters::of(lock).due(since).is_none_or(|due| now < due) || !is_locked(cond) || !frames::is_verified()
    {
        return;
    }
    waiters::of(lock).sample(now);
    if let Some(stack) = frames::foreign_stack(last_holder(cond)) {
        feed::held(lock, now, stack);
    }
}

/// The clock of a deadline. CPython measures time with the monotonic clock where a condition can use it.
struct Clock(libc::clockid_t);

/// The longest time that a thread asks to wait.
const LONGEST_WAIT: i64 = 1_000_000;

impl Clock {
    /// The clock that is close to a deadline.
    fn of(until: &timespec) -> Option<Self> {
        let mut clocks = [libc::CLOCK_MONOTONIC, libc::CLOCK_REALTIME].into_iter().map(Self);
        clocks.find(|clock| (until.tv_sec - clock.now().tv_sec).abs() < LONGEST_WAIT)
    }

    /// The time after a delay, if that is before `until`.
    fn before(&self, until: &timespec, delay: Option<Duration>) -> Option<timespec> {
        let now = self.now();
        let nanoseconds = now.tv_nsec + i64::from(delay?.subsec_nanos());
        let seconds = now.tv_sec + i64::try_from(delay?.as_secs()).ok()? + nanoseconds / 1_000_000_000;
        let nanoseconds = nanoseconds % 1_000_000_000;
        let is_before = (seconds, nanoseconds) < (until.tv_sec, until.tv_nsec);
        is_before.then_some(timespec { tv_sec: seconds, tv_nsec: nanoseconds })
    }

    fn now(&self) -> timespec {
        let mut time = timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: a clock that exists, and a valid place to write the time to.
        unsafe { libc::clock_gettime(self.0, &raw mut time) };
        time
    }
}
