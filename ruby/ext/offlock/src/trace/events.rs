//! From Ruby's thread instrumentation to the recorder: which thread it is, which lock, and what happened to them.
//!
//! Ruby calls [`on_event`] with its scheduler's mutex held, in the order in which its lock changes hands, and not
//! always on the thread that the event is about. What the recorder knows of a thread hangs on the thread itself, in
//! Ruby's storage for tools, which can be read without the lock.
//!
//! A thread that is interrupted on its way into a wait is said to be suspended, but goes on with its lock, and nothing is
//! said of that. It shows at the next thing that only a thread with the lock can do.

use std::collections::{HashMap, VecDeque};
use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use offlock_core::trace::{self, Lock, Reason, Remade, Stand, Thread};
use rb_sys::{
    RUBY_INTERNAL_EVENT_GC_ENTER, RUBY_INTERNAL_EVENT_GC_EXIT, RUBY_INTERNAL_THREAD_EVENT_EXITED as EXITED,
    RUBY_INTERNAL_THREAD_EVENT_READY as READY, RUBY_INTERNAL_THREAD_EVENT_RESUMED as RESUMED,
    RUBY_INTERNAL_THREAD_EVENT_STARTED as STARTED, RUBY_INTERNAL_THREAD_EVENT_SUSPENDED as SUSPENDED, VALUE,
    rb_event_flag_t, rb_internal_thread_event_data_t,
};

use crate::cruby::thread::{self, RactorAddress};

/// Where threads keep their [`ThreadRecord`].
static KEY: OnceLock<c_int> = OnceLock::new();

fn key() -> c_int {
    *KEY.get().expect("reserved when the extension was loaded")
}

/// What is known of a thread.
struct ThreadRecord {
    thread: &'static Thread,
    lock: Lock,
    ractor: RactorAddress,
    /// Whether it is inside `sleep`.
    sleeps: AtomicBool,
}

/// The Ractors that have threads, and the names of those that are about to have one.
#[derive(Default)]
struct Ractors {
    present: HashMap<RactorAddress, RactorThreads>,
    names: HashMap<RactorAddress, RactorName>,
    /// Those that ended before their creator could tell their names, the latest last.
    nameless: VecDeque<(RactorAddress, Lock, Vec<u32>)>,
}

/// How many Ractors, and threads of each, may end at a time before their names are known.
const MOST_NAMELESS: usize = 64;

/// What is known of a Ractor that has threads.
struct RactorThreads {
    lock: Lock,
    /// Its threads that were found by what they do, in that order; none knows a name of theirs.
    nameless: Vec<&'static Thread>,
    /// Those of them that have ended.
    ended: Vec<u32>,
    /// All of its threads that are known.
    threads: usize,
    /// How many of its threads were called by its name.
    named: usize,
}

/// What a Ractor's lock is called, and its threads, unless they have names of their own.
pub(super) struct RactorName {
    pub(super) lock: String,
    pub(super) threads: Option<String>,
}

static RACTORS: Remade<Mutex<Ractors>> = Remade::new();

fn ractors() -> MutexGuard<'static, Ractors> {
    RACTORS.get_or_make(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

impl Ractors {
    /// One of the Ractor's threads becomes known, a nameless one if it is given.
    fn enter(&mut self, ractor: RactorAddress, nameless: Option<&'static Thread>) -> Lock {
        let unknown = if self.present.is_empty() { MAIN } else { OTHER };
        let name = self.names.get(&ractor);
        let new = || RactorThreads::new(Lock::new(name.map_or(unknown, |name| &name.lock)));
        let present = self.present.entry(ractor).or_insert_with(new);
        present.threads += 1;
        present.nameless.extend(nameless);
        present.name_threads(name);
        present.lock
    }

    /// The thread has a name of its own.
    fn has_name(&mut self, ractor: RactorAddress, thread: &'static Thread) {
        if let Some(present) = self.present.get_mut(&ractor) {
            present.nameless.retain(|nameless| !ptr::eq(*nameless, thread));
        }
    }

    /// The Ractor ends with its last thread; its address may come back as another's.
    fn leave(&mut self, ractor: RactorAddress, thread: &'static Thread) {
        let Some(present) = self.present.get_mut(&ractor) else { return };
        if let Some(index) = present.nameless.iter().position(|nameless| ptr::eq(*nameless, thread)) {
            present.nameless.remove(index);
            if trace::is_tracing() && present.ended.len() < MOST_NAMELESS {
                present.ended.push(thread.id());
            }
        }
        present.threads -= 1;
        if present.threads > 0 {
            return;
        }
        let Some(RactorThreads { lock, ended, .. }) = self.present.remove(&ractor) else { return };
        lock.remove();
        if self.names.remove(&ractor).is_none() {
            self.nameless.truncate(MOST_NAMELESS - 1);
            self.nameless.push_front((ractor, lock, ended));
        }
    }

    fn rename(&mut self, ractor: RactorAddress, name: RactorName) {
        if let Some(present) = self.present.get_mut(&ractor) {
            present.lock.rename(&name.lock);
            present.name_threads(Some(&name));
        } else if let Some(index) = self.nameless.iter().position(|(address, ..)| *address == ractor)
            && let Some((_, lock, threads)) = self.nameless.remove(index)
        {
            lock.name_removed(&name.lock);
            threads.iter().zip(1..).for_each(|(id, number)| Thread::name_ended(*id, &name.of_thread(number)));
            return;
        }
        self.names.insert(ractor, name);
    }
}

impl RactorName {
    /// The first thread is called by the Ractor's name, the others by that and a number.
    fn of_thread(&self, number: usize) -> String {
        match (self.threads.as_deref(), number) {
            (None, _) => NAMELESS.to_owned(),
            (Some(name), 1) => name.to_owned(),
            (Some(name), number) => format!("{name}, thread {number}"),
        }
    }
}

impl RactorThreads {
    fn new(lock: Lock) -> Self {
        Self { lock, nameless: Vec::new(), ended: Vec::new(), threads: 0, named: 0 }
    }

    fn name_threads(&mut self, name: Option<&RactorName>) {
        let Some(name) = name.filter(|name| name.threads.is_some()) else { return };
        for id in self.ended.drain(..) {
            self.named += 1;
            Thread::name_ended(id, &name.of_thread(self.named));
        }
        for thread in self.nameless.drain(..) {
            self.named += 1;
            thread.rename(&name.of_thread(self.named));
        }
    }
}

/// The name of the main Ractor's lock.
const MAIN: &str = "GVL";
/// What another Ractor's lock is called until the Ractor's name is known.
const OTHER: &str = "GVL of a Ractor";
/// What a thread is called until its name or that of its Ractor is known.
const NAMELESS: &str = "thread";

/// The child has one thread, whose lock stays what it was. Another thread may have been in the parent's table.
extern "C" fn after_fork_in_child() {
    RACTORS.forget();
    // SAFETY: asks only for a thread if the native one is a thread of Ruby's; that lives.
    let own = unsafe { (rb_sys::ruby_native_thread_p() != 0).then(|| get(rb_sys::rb_thread_current())) };
    if let Some(known) = own.flatten() {
        ractors()
            .present
            .insert(known.ractor, RactorThreads { threads: 1, ..RactorThreads::new(known.lock) });
    }
}

/// Prepares for what comes later: a fork, and a place on threads, for which Ruby has to be asked before there are
/// Ractors. The extension is being loaded.
pub(super) fn prepare() {
    trace::watch_forks();
    trace::after_fork_in_child(after_fork_in_child);
    // SAFETY: the lock is held.
    KEY.get_or_init(|| unsafe { rb_sys::rb_internal_thread_specific_key_create() });
}

/// # Safety
/// `thread` is a live Ruby thread.
unsafe fn get(thread: VALUE) -> Option<&'static ThreadRecord> {
    // SAFETY: the slot holds null or what `adopt` put there, which lives until `forget` empties the slot.
    unsafe { rb_sys::rb_internal_thread_specific_get(thread, key()).cast::<ThreadRecord>().as_ref() }
}

/// # Safety
/// `thread` is a live Ruby thread.
unsafe fn known(thread: VALUE) -> &'static ThreadRecord {
    // SAFETY: passed on.
    unsafe { get(thread).unwrap_or_else(|| adopt(thread, Thread::start(trace::now(), NAMELESS), true)) }
}

/// # Safety
/// `thread` is a live Ruby thread that is not known yet.
#[cold]
unsafe fn adopt(thread: VALUE, own: &'static Thread, is_nameless: bool) -> &'static ThreadRecord {
    // SAFETY: passed on.
    let ractor = unsafe { thread::of(thread) };
    let lock = ractors().enter(ractor, is_nameless.then_some(own));
    let known =
        Box::leak(Box::new(ThreadRecord { thread: own, lock, ractor, sleeps: AtomicBool::new(false) }));
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
        ractors().leave(known.ractor, known.thread);
        known.thread.end(trace::now());
        // SAFETY: leaked in `adopt`, and the only way to it was just removed.
        drop(unsafe { Box::from_raw(ptr::from_ref(known).cast_mut()) });
    }
}

unsafe extern "C" fn on_event(
    event: rb_event_flag_t,
    data: *const rb_internal_thread_event_data_t,
    _: *mut c_void,
) {
    if event == EXITED {
        // SAFETY: Ruby passes the thread that ends, at its last event.
        unsafe { forget((*data).thread) };
        return;
    }
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

impl ThreadRecord {
    #[inline]
    fn reason(&self) -> Reason {
        if self.sleeps.load(Ordering::Relaxed) { Reason::Sleeps } else { Reason::Blocks }
    }
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

/// Asks Ruby to call. Does nothing when it does already. The lock is held.
///
/// The hook stays for good, and does nothing while nobody wants to know. Ruby calls hooks under a lock for reading, and
/// changes their list under the same one for writing. In the child of a fork that lock may still count threads of the
/// parent as readers, so that a child which changes the list waits for them for ever. It uses the hook that it
/// inherits.
pub(super) fn watch(thread: VALUE, ractor: VALUE) {
    static ADDED: AtomicBool = AtomicBool::new(false);
    // SAFETY: the caller holds the lock and passes the current thread and Ractor.
    unsafe { thread::learn(thread, ractor) };
    if !ADDED.swap(true, Ordering::AcqRel) {
        let events = STARTED | READY | RESUMED | SUSPENDED | EXITED;
        // SAFETY: `on_event` may be called at any time from here on, and is never unloaded.
        unsafe { rb_sys::rb_internal_thread_add_event_hook(Some(on_event), events, ptr::null_mut()) };
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
    let known = unsafe { get(thread).unwrap_or_else(|| adopt(thread, Thread::present(name), false)) };
    if let Some(stand) = stand {
        known.thread.assume(stand);
    }
    known.thread.rename(name);
    ractors().has_name(known.ractor, known.thread);
}

/// Gives a Ractor's lock and its threads the Ractor's name.
///
/// # Safety
/// `ractor` is a Ractor.
pub(super) unsafe fn name_ractor(ractor: VALUE, name: RactorName) {
    // SAFETY: passed on.
    let address = unsafe { thread::address(ractor) };
    ractors().rename(address, name);
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
