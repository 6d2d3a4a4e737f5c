//! From Ruby's thread instrumentation to the recorder: which thread it is, which lock, and what happened to them.
//!
//! Ruby calls [`Recording::on_event`] with its scheduler's mutex held, in the order in which its lock changes hands, and not
//! always on the thread that the event is about. What the recorder knows of a thread hangs on the thread itself, in
//! Ruby's storage for tools, which can be read without the lock.
//!
//! A thread that is interrupted on its way into a wait is said to be suspended, but goes on with its lock, and nothing is
//! said of that. It shows at the next thing that only a thread with the lock can do.

use std::collections::{HashMap, VecDeque};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use offlock_core::trace::{self, Lock, Reason, Remade, Stand, Thread};

use crate::cruby::Object;
use crate::cruby::thread::{
    self, Hook, Ractor, RactorAddress, RubyThread, ThreadEvent, ThreadSlot, add_hook,
};

/// Where threads keep their [`ThreadRecord`].
static RECORDS: ThreadSlot<ThreadRecord> = ThreadSlot::new();

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
    let own = RubyThread::current_if_any().map(|thread| RECORDS.get(thread));
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
    RECORDS.reserve();
}

fn known(thread: RubyThread) -> &'static ThreadRecord {
    RECORDS.get(thread).unwrap_or_else(|| adopt(thread, Thread::start(trace::now(), NAMELESS), true))
}

/// Begins to know a thread.
#[cold]
fn adopt(thread: RubyThread, own: &'static Thread, is_nameless: bool) -> &'static ThreadRecord {
    let ractor = thread.ractor();
    let lock = ractors().enter(ractor, is_nameless.then_some(own));
    RECORDS.put(thread, ThreadRecord { thread: own, lock, ractor, sleeps: AtomicBool::new(false) })
}

/// The thread ended; nothing happens to it any more.
fn forget(thread: RubyThread) {
    // SAFETY: no further event of the thread comes.
    if let Some(known) = unsafe { RECORDS.take(thread) } {
        ractors().leave(known.ractor, known.thread);
        known.thread.end(trace::now());
    }
}

/// What Ruby calls.
struct Recording;

impl Hook for Recording {
    #[inline]
    fn on_event(event: ThreadEvent, thread: RubyThread) {
        if matches!(event, ThreadEvent::Exited) {
            forget(thread);
            return;
        }
        if !trace::is_active() {
            return;
        }
        let known = known(thread);
        match event {
            ThreadEvent::Ready => known.thread.wants(trace::now(), known.lock),
            ThreadEvent::Resumed => known.thread.acquired(trace::now_holding(), known.lock),
            ThreadEvent::Suspended => {
                known.thread.holds(known.lock);
                known.thread.released(trace::now_releasing(), known.lock, known.reason());
            }
            ThreadEvent::Started | ThreadEvent::Exited => {}
        }
    }

    fn on_gc(begins: bool, thread: RubyThread) {
        if !trace::is_tracing() {
            return;
        }
        let now = trace::now();
        let Some(known) = RECORDS.get(thread) else { return };
        known.thread.holds(known.lock);
        if begins { known.thread.gc_enter(now) } else { known.thread.gc_exit(now) }
    }
}

impl ThreadRecord {
    #[inline]
    fn reason(&self) -> Reason {
        if self.sleeps.load(Ordering::Relaxed) { Reason::Sleeps } else { Reason::Blocks }
    }
}

/// Asks Ruby to call. Does nothing when it does already. The lock is held.
///
/// The hook is never removed, and does nothing while there is no trace and no metric. Ruby calls hooks under a lock for reading, and
/// changes their list under the same one for writing. In the child of a fork that lock may still count threads of the
/// parent as readers, so that a child which changes the list waits for them for ever. It uses the hook that it
/// inherits.
pub(super) fn watch(ractor: Option<Ractor>) {
    static ADDED: AtomicBool = AtomicBool::new(false);
    if let Some(ractor) = ractor {
        thread::learn(RubyThread::current(), ractor);
    }
    if !ADDED.swap(true, Ordering::AcqRel) {
        add_hook::<Recording>();
    }
}

/// Ruby's trace point for garbage collection, to be enabled while a trace runs. The lock is held.
pub(super) fn gc_point() -> Object {
    thread::gc_point::<Recording>()
}

/// Gives a thread the name under which it is shown, and says how it stands if it was there before anyone watched. The lock is
/// held.
pub(super) fn name_thread(thread: RubyThread, name: &str, stand: Option<Stand>) {
    let known = RECORDS.get(thread).unwrap_or_else(|| adopt(thread, Thread::present(name), false));
    if let Some(stand) = stand {
        known.thread.assume(stand);
    }
    known.thread.rename(name);
    ractors().has_name(known.ractor, known.thread);
}

/// Gives a Ractor's lock and its threads the Ractor's name.
pub(super) fn name_ractor(ractor: Ractor, name: RactorName) {
    ractors().rename(ractor.address(), name);
}

/// The recorder's thread of a Ruby thread, if it is known.
pub(super) fn find(thread: RubyThread) -> Option<&'static Thread> {
    RECORDS.get(thread).map(|known| known.thread)
}

/// The recorder's thread of the current Ruby thread. The lock is held.
pub(super) fn current() -> &'static Thread {
    let known = known(RubyThread::current());
    known.thread.holds(known.lock);
    known.thread
}

/// The current thread goes into `sleep` or comes out of it. The lock is held.
pub(super) fn set_sleeps(sleeps: bool) {
    known(RubyThread::current()).sleeps.store(sleeps, Ordering::Relaxed);
}
