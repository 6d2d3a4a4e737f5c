//! From Ruby's thread instrumentation to the recorder: which thread it is, which lock, and what happened to them.
//!
//! Ruby calls [`on_event`] with its scheduler's mutex held, in the order in which its lock changes hands, and not
//! always on the thread that the event is about. What the recorder knows of a thread hangs on the thread itself, in
//! Ruby's storage for tools, which can be read without the lock.
//!
//! A thread that is interrupted on its way into a wait is said to be suspended, but goes on with its lock, and nothing is
//! said of that. It shows at the next thing that only a thread with the lock can do.

use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::sync::{Mutex, MutexGuard, Once, OnceLock, PoisonError};

use offlock_core::trace::{self, Lock, Reason, Remade, Stand, Thread};
use rb_sys::{
    RUBY_INTERNAL_EVENT_GC_ENTER, RUBY_INTERNAL_EVENT_GC_EXIT, RUBY_INTERNAL_THREAD_EVENT_EXITED as EXITED,
    RUBY_INTERNAL_THREAD_EVENT_READY as READY, RUBY_INTERNAL_THREAD_EVENT_RESUMED as RESUMED,
    RUBY_INTERNAL_THREAD_EVENT_STARTED as STARTED, RUBY_INTERNAL_THREAD_EVENT_SUSPENDED as SUSPENDED, VALUE,
    rb_event_flag_t, rb_internal_thread_event_data_t, rb_internal_thread_event_hook_t,
};

use super::ractors::{self, RactorAddress};

/// Where threads keep their [`Known`].
static KEY: OnceLock<c_int> = OnceLock::new();

/// Reserves the place on threads. Ruby asks for that before there are Ractors, so it happens when the extension loads.
pub(super) fn reserve_key() {
    // SAFETY: the extension is being loaded, so the lock is held.
    KEY.get_or_init(|| unsafe { rb_sys::rb_internal_thread_specific_key_create() });
}

fn key() -> c_int {
    *KEY.get().expect("reserved when the extension was loaded")
}

/// What is known of a thread.
struct Known {
    thread: &'static Thread,
    lock: Lock,
    ractor: RactorAddress,
    /// Whether it is inside `sleep`.
    sleeps: AtomicBool,
}

/// The locks of the Ractors that have threads, with how many of those are known.
#[derive(Default)]
struct Locks(HashMap<RactorAddress, (Lock, usize)>);

static LOCKS: Remade<Mutex<Locks>> = Remade::new();

fn locks() -> MutexGuard<'static, Locks> {
    LOCKS.get_or_make(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

impl Locks {
    fn of(&mut self, ractor: RactorAddress) -> &mut (Lock, usize) {
        let first = self.0.is_empty();
        self.0.entry(ractor).or_insert_with(|| (Lock::new(if first { MAIN } else { OTHER }), 0))
    }

    fn enter(&mut self, ractor: RactorAddress) -> Lock {
        let (lock, threads) = self.of(ractor);
        *threads += 1;
        *lock
    }

    /// The Ractor ends with its last thread; its address may come back as another's.
    fn leave(&mut self, ractor: RactorAddress) {
        if let Some((lock, threads)) = self.0.get_mut(&ractor) {
            *threads -= 1;
            if *threads == 0 {
                lock.remove();
                self.0.remove(&ractor);
            }
        }
    }
}

/// The name of the main Ractor's lock.
const MAIN: &str = "GVL";
/// What another Ractor's lock is called until the Ractor's name is known.
const OTHER: &str = "GVL of a Ractor";

/// The child has one thread, whose lock stays what it was. Another thread may have been in the parent's table.
extern "C" fn after_fork_in_child() {
    LOCKS.forget();
    // SAFETY: asks only for a thread if the native one is a thread of Ruby's; that lives.
    let own = unsafe { (rb_sys::ruby_native_thread_p() != 0).then(|| get(rb_sys::rb_thread_current())) };
    if let Some(known) = own.flatten() {
        locks().0.insert(known.ractor, (known.lock, 1));
    }
}

fn watch_forks() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| trace::after_fork_in_child(after_fork_in_child));
}

/// # Safety
/// `thread` is a live Ruby thread.
unsafe fn get(thread: VALUE) -> Option<&'static Known> {
    // SAFETY: the slot holds null or what `adopt` put there, which lives until `forget` empties the slot.
    unsafe { rb_sys::rb_internal_thread_specific_get(thread, key()).cast::<Known>().as_ref() }
}

/// # Safety
/// `thread` is a live Ruby thread.
unsafe fn known(thread: VALUE) -> &'static Known {
    // SAFETY: passed on.
    unsafe { get(thread).unwrap_or_else(|| adopt(thread, Thread::start(trace::now(), "thread"))) }
}

/// # Safety
/// `thread` is a live Ruby thread that is not known yet.
#[cold]
unsafe fn adopt(thread: VALUE, own: &'static Thread) -> &'static Known {
    // SAFETY: passed on.
    let ractor = unsafe { ractors::of(thread) };
    let lock = locks().enter(ractor);
    let known = Box::leak(Box::new(Known { thread: own, lock, ractor, sleeps: AtomicBool::new(false) }));
    // SAFETY: passed on.
    unsafe { rb_sys::rb_internal_thread_specific_set(thread, key(), ptr::from_mut(known).cast()) };
    known
}

/// The thread ended; nothing happens to it any more.
///
/// # Safety
/// `thread` is a Ruby thread of which no further event comes.
unsafe fn forget(thread: VALUE) {
    // SAFETY: passed on.
    if let Some(known) = unsafe { get(thread) } {
        // SAFETY: passed on.
        unsafe { rb_sys::rb_internal_thread_specific_set(thread, key(), ptr::null_mut()) };
        known.thread.end(trace::now());
        locks().leave(known.ractor);
        // SAFETY: leaked in `adopt`, and the only way to it was just removed.
        drop(unsafe { Box::from_raw(ptr::from_ref(known).cast_mut()) });
    }
}

unsafe extern "C" fn on_event(
    event: rb_event_flag_t,
    data: *const rb_internal_thread_event_data_t,
    _: *mut c_void,
) {
    if !trace::is_active() {
        return;
    }
    // SAFETY: Ruby passes the thread that the event is about; it lives.
    let known = unsafe { known((*data).thread) };
    match event {
        READY => known.thread.wants(trace::now(), known.lock),
        RESUMED => known.thread.acquired(trace::now_holding(), known.lock),
        SUSPENDED => {
            known.thread.holds(known.lock);
            known.thread.released(trace::now_releasing(), known.lock, known.reason());
        }
        _ => {}
    }
}

impl Known {
    #[inline]
    fn reason(&self) -> Reason {
        if self.sleeps.load(Ordering::Relaxed) { Reason::Sleeps } else { Reason::Blocks }
    }
}

unsafe extern "C" fn on_exit(
    _: rb_event_flag_t,
    data: *const rb_internal_thread_event_data_t,
    _: *mut c_void,
) {
    // SAFETY: Ruby passes the thread that ends, at its last event.
    unsafe { forget((*data).thread) };
}

unsafe extern "C" fn on_gc(point: VALUE, _: *mut c_void) {
    if !trace::is_tracing() {
        return;
    }
    let now = trace::now();
    // SAFETY: Ruby passes its own trace point, and calls on the thread that collects, which holds the lock. Neither of
    // these allocates objects.
    let (event, known) = unsafe {
        let event = rb_sys::rb_tracearg_event_flag(rb_sys::rb_tracearg_from_tracepoint(point));
        (event, get(rb_sys::rb_thread_current()))
    };
    let Some(known) = known else { return };
    known.thread.holds(known.lock);
    match event {
        RUBY_INTERNAL_EVENT_GC_ENTER => known.thread.gc_enter(now),
        _ => known.thread.gc_exit(now),
    }
}

/// Ruby's handle of the event hook; null while it is not installed.
static HOOK: AtomicPtr<rb_internal_thread_event_hook_t> = AtomicPtr::new(ptr::null_mut());

/// Asks Ruby to call. Does nothing when it does already. The lock is held.
pub(super) fn watch(thread: VALUE, ractor: VALUE) {
    static FOR_GOOD: Once = Once::new();
    watch_forks();
    // SAFETY: the caller holds the lock and passes the current thread and Ractor.
    unsafe { ractors::learn(thread, ractor) };
    // SAFETY: `on_exit` may be called at any time from here on.
    FOR_GOOD.call_once(|| unsafe {
        rb_sys::rb_internal_thread_add_event_hook(Some(on_exit), EXITED, ptr::null_mut());
    });
    if HOOK.load(Ordering::Acquire).is_null() {
        let events = STARTED | READY | RESUMED | SUSPENDED;
        // SAFETY: as above.
        let hook =
            unsafe { rb_sys::rb_internal_thread_add_event_hook(Some(on_event), events, ptr::null_mut()) };
        let raced =
            HOOK.compare_exchange(ptr::null_mut(), hook, Ordering::AcqRel, Ordering::Acquire).is_err();
        if raced {
            // SAFETY: just added; another Ractor was faster.
            unsafe { rb_sys::rb_internal_thread_remove_event_hook(hook) };
        }
    }
}

/// Asks Ruby to call no more, unless somebody still wants to know.
pub(super) fn unwatch() {
    if trace::is_active() {
        return;
    }
    let hook = HOOK.swap(ptr::null_mut(), Ordering::AcqRel);
    if !hook.is_null() {
        // SAFETY: added by `watch`, removed once.
        unsafe { rb_sys::rb_internal_thread_remove_event_hook(hook) };
    }
}

/// Ruby's trace point for garbage collection, to be enabled while a trace runs. The lock is held.
pub(super) fn gc_point() -> VALUE {
    let events = RUBY_INTERNAL_EVENT_GC_ENTER | RUBY_INTERNAL_EVENT_GC_EXIT;
    // SAFETY: `on_gc` allocates no objects.
    unsafe { rb_sys::rb_tracepoint_new(0, events, Some(on_gc), ptr::null_mut()) }
}

/// Gives a thread the name under which it is shown, and says how it stands if it was there before anyone watched.
///
/// # Safety
/// `thread` is a live Ruby thread, and the lock is held.
pub(super) unsafe fn name_thread(thread: VALUE, name: &str, stand: Option<Stand>) {
    // SAFETY: passed on.
    let known = unsafe { get(thread).unwrap_or_else(|| adopt(thread, Thread::present(name))) };
    if let Some(stand) = stand {
        known.thread.assume(stand);
    }
    known.thread.rename(name);
}

/// Gives a Ractor's lock the Ractor's name.
///
/// # Safety
/// `ractor` is a Ractor.
pub(super) unsafe fn name_ractor(ractor: VALUE, name: &str) {
    // SAFETY: passed on.
    let address = unsafe { ractors::address(ractor) };
    if let Some((lock, _)) = locks().0.get(&address) {
        lock.rename(name);
    }
}

/// The recorder's thread of a Ruby thread, if it is known.
///
/// # Safety
/// `thread` is a live Ruby thread.
pub(super) unsafe fn find(thread: VALUE) -> Option<&'static Thread> {
    // SAFETY: passed on.
    unsafe { get(thread).map(|known| known.thread) }
}

/// The recorder's thread of the current Ruby thread. The lock is held.
pub(super) fn current() -> &'static Thread {
    // SAFETY: the current thread lives.
    let known = unsafe { known(rb_sys::rb_thread_current()) };
    known.thread.holds(known.lock);
    known.thread
}

/// The current thread goes into `sleep` or comes out of it. The lock is held.
pub(super) fn set_sleeps(sleeps: bool) {
    // SAFETY: the current thread lives.
    let known = unsafe { known(rb_sys::rb_thread_current()) };
    known.sleeps.store(sleeps, Ordering::Relaxed);
}
