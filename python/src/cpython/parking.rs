//! Where threads of a free-threaded interpreter wait, seen from the calls that the interpreter itself makes.
//!
//! Without the GIL, a thread that has to wait in the interpreter parks (`Python/parking_lot.c`): it puts an entry for the
//! address of what it waits for on its stack, and waits for the semaphore in that entry, until another thread posts it:
//!
//! ```text
//! struct wait_entry { void *park_arg; uintptr_t addr; _PySemaphore sema; … }
//! ```
//!
//! [`install`] redirects the interpreter's imports of `sem_wait`, `sem_post` and `sched_yield` to the functions below. The
//! word before the semaphore is the address, and the address tells what for:
//!
//! - the field `state` of the thread's own state: another thread has stopped the world. The state is not read, only its
//!   address is compared: a thread makes its state the current one before it waits for permission to run.
//! - the mutex in the header of an object: another thread uses the object.
//! - something else: a `threading.Lock`, a queue, a lock of the interpreter's. Such waits are left alone.
//!
//! Both offsets, and that the thread which ends a wait posts the semaphore, are found by letting the calling thread wait
//! for a mutex of ours. Waits with a timeout, and for semaphores elsewhere than on the thread's own stack, are not these.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};
use std::sync::{Mutex, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

use libc::sem_t;
use offlock_core::trace::{self, Remade};
use pyo3::ffi;
use pyo3::prelude::*;

use super::plt::Slot;
use super::redirect::{NextHook, Redirection, next, redirect, restore};
use super::type_name;
use crate::lock::parked::{self, Wait};

type OfSemaphore = unsafe extern "C" fn(*mut sem_t) -> c_int;

type Yield = unsafe extern "C" fn() -> c_int;

fn redirections() -> [Redirection; 3] {
    [
        (c"sched_yield", sched_yield as Yield as usize, &SCHED_YIELD),
        (c"sem_wait", sem_wait as OfSemaphore as usize, &SEM_WAIT),
        (c"sem_post", sem_post as OfSemaphore as usize, &SEM_POST),
    ]
}

static SCHED_YIELD: NextHook = NextHook::new();
static SEM_WAIT: NextHook = NextHook::new();
static SEM_POST: NextHook = NextHook::new();

/// Where `state` lies in a thread state; 0 until that is known.
static STATE: AtomicUsize = AtomicUsize::new(0);

/// How far above the hook's own frame the entry may lie: only the interpreter's functions for parking are in between.
const NEAR: usize = 4096;

unsafe extern "C" fn sem_wait(semaphore: *mut sem_t) -> c_int {
    let call = || next!(SEM_WAIT, OfSemaphore, libc::sem_wait, semaphore);
    if !trace::is_tracing() && !PROBE.is_on() {
        return call();
    }
    let Some(address) = parked_for(semaphore) else { return call() };
    PROBE.waits(address);
    if parked::is_own_ignored() || is_posted(semaphore) {
        return call();
    }
    let Some(wait) = begin(address, semaphore as usize) else { return call() };
    let result = call();
    keeping_errno(|| wait.end());
    result
}

unsafe extern "C" fn sem_post(semaphore: *mut sem_t) -> c_int {
    parked::wakes(semaphore as usize);
    PROBE.posts();
    next!(SEM_POST, OfSemaphore, libc::sem_post, semaphore)
}

/// A thread that finds a mutex locked lets others run some tens of times before it parks, which takes milliseconds if there
/// are any: its wait begins there.
unsafe extern "C" fn sched_yield() -> c_int {
    let call = || next!(SCHED_YIELD, Yield, libc::sched_yield);
    // SAFETY: needs no thread state, and returns null where there is none.
    let is_attached = trace::is_tracing() && !unsafe { ffi::PyThreadState_GetUnchecked() }.is_null();
    if is_attached { parked::while_spinning(call) } else { call() }
}

/// The address for which the calling thread parks with this semaphore, if that lies in an entry on the thread's stack.
#[inline]
fn parked_for(semaphore: *mut sem_t) -> Option<usize> {
    let frame = 0_usize;
    let (here, at) = (&raw const frame as usize, semaphore as usize);
    let before = at.wrapping_sub(size_of::<usize>());
    let is_on_stack = (here..here + NEAR).contains(&before) && at.is_multiple_of(align_of::<usize>());
    // SAFETY: the word lies in this thread's stack, between this frame and the semaphore, which lies in a caller's.
    is_on_stack.then(|| unsafe { (before as *const usize).read() })
}

/// Whether the other thread was quicker, so that the wait ends at once.
fn is_posted(semaphore: *mut sem_t) -> bool {
    let mut value = 0;
    // SAFETY: the semaphore that the interpreter is about to wait for, and a valid place to write to.
    unsafe { libc::sem_getvalue(semaphore, &raw mut value) == 0 && value > 0 }
}

/// Records that the thread begins to wait, if what for is one of the things that are recorded.
fn begin(address: usize, semaphore: usize) -> Option<Wait> {
    // SAFETY: needs no thread state, and returns null where there is none.
    let state = unsafe { ffi::PyThreadState_GetUnchecked() }.addr();
    let offset = STATE.load(Ordering::Relaxed);
    if offset == 0 {
        return None;
    }
    if state != 0 {
        return (address == state + offset).then(|| parked::paused(semaphore));
    }
    let object = type_name::of_locked(address);
    if object.is_none() {
        parked::forget_spinning();
    }
    object.map(parked::for_object)
}

/// Runs `record` between a call of the C library and the interpreter's look at its outcome.
fn keeping_errno(record: impl FnOnce()) {
    // SAFETY: the place of the calling thread's own `errno`.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let errno = unsafe { place.read() };
    record();
    // SAFETY: as above.
    unsafe { place.write(errno) };
}

/// The redirected imports, while they are. The child of a fork makes this anew if another thread had it.
static INSTALLED: Remade<Mutex<Vec<Slot>>> = Remade::new();

/// How long to wait for another thread that installs.
const A_MOMENT: Duration = Duration::from_micros(200);

/// Redirects the interpreter's calls; a second call changes nothing.
///
/// # Errors
/// A sentence that says what is not as expected; nothing stays redirected then.
pub(crate) fn install(py: Python<'_>) -> Result<(), String> {
    // A thread that waits for the mutex must not keep the world from being stopped: the one that has it may be waiting for
    // the end of a pause.
    let mut installed = loop {
        match INSTALLED.get_or_make(Mutex::default).try_lock() {
            Ok(installed) => break installed,
            Err(TryLockError::Poisoned(poisoned)) => break poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => py.detach(|| thread::sleep(A_MOMENT)),
        }
    };
    if !installed.is_empty() {
        return Ok(());
    }
    *installed = redirect(&redirections())?;
    if STATE.load(Ordering::Relaxed) == 0
        && let Err(reason) = calibrate(py)
    {
        restore(&mut installed);
        return Err(reason);
    }
    Ok(())
}

/// Restores the interpreter's direct calls of the C library. Threads inside a hook finish there: the code stays loaded. If
/// another thread is just installing, it also uninstalls.
pub(crate) fn uninstall() {
    if let Some(installed) = INSTALLED.get()
        && let Ok(mut installed) = installed.try_lock()
    {
        restore(&mut installed);
    }
}

/// If a thread that no longer exists has the list of imports, they stay redirected, to hooks that do nothing.
pub(crate) fn after_fork_in_child() {
    if INSTALLED.get().is_some_and(|installed| matches!(installed.try_lock(), Err(TryLockError::WouldBlock)))
    {
        INSTALLED.forget();
    }
    PROBE.end();
}

/// Finds out where things are: what a wait for a mutex of ours looks like.
fn calibrate(py: Python<'_>) -> Result<(), String> {
    type_name::probe(py)?;
    let mutex = Box::leak(Box::new(ffi::PyMutex::new()));
    let address = &raw mut *mutex as usize;
    // SAFETY: this thread is attached, so its state is alive.
    let state = unsafe { ffi::PyThreadState_Get() }.addr();
    PROBE.begin(state);
    let waited = wait_once(address);
    let seen = PROBE.end();
    waited?;
    if seen.address != address {
        return Err("a thread that waits for a mutex does not park in the known way".into());
    }
    if !seen.posted {
        return Err("the thread that unlocks a mutex does not wake the waiting one in the known way".into());
    }
    let [offset] = seen.states[..] else {
        return Err(format!("{} fields of a thread state look like its state", seen.states.len()));
    };
    STATE.store(offset, Ordering::Relaxed);
    Ok(())
}

/// Locks a mutex that is locked already; another thread unlocks it once this one waits, or after [`PATIENCE`].
fn wait_once(mutex: usize) -> Result<(), String> {
    // SAFETY: the mutex lives for ever, and nobody else knows it.
    unsafe { ffi::PyMutex_Lock(mutex as *mut ffi::PyMutex) };
    let unlock = move || {
        let start = Instant::now();
        while !PROBE.has_seen() && start.elapsed() < PATIENCE {
            thread::sleep(Duration::from_micros(20));
        }
        // SAFETY: the mutex is locked; unlocking one needs no thread state.
        unsafe { ffi::PyMutex_Unlock(mutex as *mut ffi::PyMutex) };
    };
    let helper = thread::Builder::new().name("offlock probe".into()).spawn(unlock);
    let helper = helper.map_err(|error| format!("no thread can be started: {error}"))?;
    // SAFETY: as above. The calling thread is attached, and holds no reference that another thread could end.
    unsafe { ffi::PyMutex_Lock(mutex as *mut ffi::PyMutex) };
    // The helper does nothing more with the interpreter, so this takes no time.
    helper.join().map_err(|_| "the thread that unlocks a mutex failed".to_owned())
}

/// How long the helper waits for the calling thread to wait.
const PATIENCE: Duration = Duration::from_millis(500);

/// What the hooks see of the wait of one thread.
struct Probe {
    /// The thread's state; 0 if no thread probes.
    thread_state: AtomicUsize,
    /// The thread, as `pthread_self` names it.
    thread: AtomicUsize,
    /// The fields of the state before the wait, and whether they looked like its state in it.
    before: [AtomicI32; FIELDS],
    fits: [AtomicBool; FIELDS],
    address: AtomicUsize,
    posted: AtomicBool,
}

/// What a probe has found.
struct Seen {
    address: usize,
    posted: bool,
    /// Where the state may lie in a thread state.
    states: Vec<usize>,
}

/// Pointers come before the fields of a thread state that are looked at.
const FIRST: usize = 32;
const FIELDS: usize = 16;

/// The values of `state`, from `Include/internal/pycore_pystate.h`.
const DETACHED: i32 = 0;
const ATTACHED: i32 = 1;
const SUSPENDED: i32 = 2;

static PROBE: Probe = Probe {
    thread_state: AtomicUsize::new(0),
    thread: AtomicUsize::new(0),
    before: [const { AtomicI32::new(0) }; FIELDS],
    fits: [const { AtomicBool::new(false) }; FIELDS],
    address: AtomicUsize::new(0),
    posted: AtomicBool::new(false),
};

impl Probe {
    fn begin(&self, thread_state: usize) {
        for (place, value) in self.before.iter().zip(fields(thread_state)) {
            place.store(value, Ordering::Relaxed);
        }
        self.fits.iter().for_each(|fits| fits.store(false, Ordering::Relaxed));
        self.address.store(0, Ordering::Relaxed);
        self.posted.store(false, Ordering::Relaxed);
        self.thread.store(this_thread(), Ordering::Relaxed);
        self.thread_state.store(thread_state, Ordering::Release);
    }

    #[inline]
    fn is_on(&self) -> bool {
        self.thread_state.load(Ordering::Relaxed) != 0
    }

    fn has_seen(&self) -> bool {
        self.address.load(Ordering::Acquire) != 0
    }

    /// The calling thread is about to wait.
    fn waits(&self, address: usize) {
        let state = self.thread_state.load(Ordering::Acquire);
        if state == 0 || self.thread.load(Ordering::Relaxed) != this_thread() || self.has_seen() {
            return;
        }
        for ((before, fits), now) in self.before.iter().zip(&self.fits).zip(fields(state)) {
            let fitted = before.load(Ordering::Relaxed) == ATTACHED && [DETACHED, SUSPENDED].contains(&now);
            fits.store(fitted, Ordering::Relaxed);
        }
        self.address.store(address, Ordering::Release);
    }

    #[inline]
    fn posts(&self) {
        if self.is_on() && self.thread.load(Ordering::Relaxed) != this_thread() {
            self.posted.store(true, Ordering::Relaxed);
        }
    }

    fn end(&self) -> Seen {
        self.thread_state.store(0, Ordering::Relaxed);
        let fitting = self.fits.iter().enumerate().filter(|(_, fits)| fits.load(Ordering::Relaxed));
        Seen {
            address: self.address.load(Ordering::Relaxed),
            posted: self.posted.load(Ordering::Relaxed),
            states: fitting.map(|(index, _)| FIRST + index * size_of::<i32>()).collect(),
        }
    }
}

/// The fields of the calling thread's own state.
fn fields(thread_state: usize) -> [i32; FIELDS] {
    let field = |index: usize| (thread_state + FIRST + index * size_of::<i32>()) as *const AtomicI32;
    // SAFETY: the state of the calling thread, which lives as long as that probes; a state is several times as large.
    // Other threads change these fields by atomic operations.
    std::array::from_fn(|index| unsafe { &*field(index) }.load(Ordering::Relaxed))
}

fn this_thread() -> usize {
    // SAFETY: pthread_self has no preconditions.
    unsafe { libc::pthread_self() as usize }
}
