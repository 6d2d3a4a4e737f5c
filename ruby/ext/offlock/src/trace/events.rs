//! Passes the events of Ruby's thread instrumentation to the recorder: the thread, its lock, and what happened to them.
//!
//! Ruby calls [`Recording::on_event`] with its scheduler's mutex held, in the order in which the lock changes
//! owners, and not always on the thread of the event. The recorder's data about a thread is attached to the thread
//! itself, in Ruby's storage for tools, which can be read without the lock.
//!
//! For a thread that is interrupted just before a wait, Ruby reports that the thread is suspended, but the thread
//! continues with its lock, and Ruby does not report that. The recorder corrects this at the next action that only a
//! thread with the lock can do.

use std::collections::{HashMap, VecDeque};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use magnus::Ruby;
use offlock_core::trace::{self, Lock, Reason, Remade, Stand, Thread, Ticks, Waiters};

use super::stacks::{self, Waiting};
use crate::cruby::Object;
use crate::cruby::frames::Work;
use crate::cruby::thread::{
    self, Hook, Ractor, RactorAddress, RubyThread, ThreadEvent, ThreadSlot, add_hook,
};

/// Where threads keep their [`ThreadRecord`].
static RECORDS: ThreadSlot<ThreadRecord> = ThreadSlot::new();

/// The recorder's data about a thread.
struct ThreadRecord {
    thread: &'static Thread,
    lock: Lock,
    ractor: RactorAddress,
    /// Whether the thread is inside `sleep`.
    sleeps: AtomicBool,
    /// When the collection began that runs, and the time of those that are over.
    collects: AtomicU64,
    collected: AtomicU64,
    waiting: Waiting,
}

/// The Ractors that have threads, and the names of those that are about to have threads.
#[derive(Default)]
struct Ractors {
    present: HashMap<RactorAddress, RactorThreads>,
    names: HashMap<RactorAddress, RactorName>,
    /// Ractors that ended before their creator could report their names, the latest first.
    nameless: VecDeque<(RactorAddress, Lock, Vec<u32>)>,
}

/// The maximum number of ended Ractors, and of ended threads of each, that wait for a name.
const MOST_NAMELESS: usize = 64;

/// The recorder's data about a Ractor that has threads.
struct RactorThreads {
    lock: Lock,
    /// The threads that wait for the lock, unless it is the main Ractor's.
    waiters: Option<Arc<Waiters>>,
    /// Threads of the Ractor that were discovered by their events, in that order, and have no name of their own.
    nameless: Vec<&'static Thread>,
    /// Those of them that have ended.
    ended: Vec<u32>,
    /// The number of the Ractor's known threads.
    threads: usize,
    /// The number of its threads that were named after it.
    named: usize,
}

/// The name of a Ractor's lock, and that of its threads without names of their own.
pub(super) struct RactorName {
    pub(super) lock: String,
    pub(super) threads: Option<String>,
}

static RACTORS: Remade<Mutex<Ractors>> = Remade::new();

fn ractors() -> MutexGuard<'static, Ractors> {
    RACTORS.get_or_make(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

impl Ractors {
    /// Records a thread of the Ractor, also as nameless if `nameless` is given.
    fn enter(
        &mut self,
        ractor: RactorAddress,
        nameless: Option<&'static Thread>,
    ) -> (Lock, Option<Arc<Waiters>>) {
        let is_main = self.present.is_empty();
        let unknown = if is_main { MAIN } else { OTHER };
        let name = self.names.get(&ractor);
        let waiters = || (!is_main).then(Arc::default);
        let new = || RactorThreads::new(Lock::new(name.map_or(unknown, |name| &name.lock)), waiters());
        let present = self.present.entry(ractor).or_insert_with(new);
        present.threads += 1;
        present.nameless.extend(nameless);
        present.name_threads(name);
        (present.lock, present.waiters.clone())
    }

    /// Records that the thread has a name of its own.
    fn has_name(&mut self, ractor: RactorAddress, thread: &'static Thread) {
        if let Some(present) = self.present.get_mut(&ractor) {
            present.nameless.retain(|nameless| !ptr::eq(*nameless, thread));
        }
    }

    /// Records the end of a thread. The Ractor ends with its last thread; a new Ractor may get the same address.
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
    /// The first thread gets the Ractor's name, the others that name and a number.
    fn of_thread(&self, number: usize) -> String {
        match (self.threads.as_deref(), number) {
            (None, _) => NAMELESS.to_owned(),
            (Some(name), 1) => name.to_owned(),
            (Some(name), number) => format!("{name}, thread {number}"),
        }
    }
}

impl RactorThreads {
    fn new(lock: Lock, waiters: Option<Arc<Waiters>>) -> Self {
        Self { lock, waiters, nameless: Vec::new(), ended: Vec::new(), threads: 0, named: 0 }
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
/// The name of another Ractor's lock until the Ractor's name is known.
const OTHER: &str = "GVL of a Ractor";
/// The name of a thread until its own name or that of its Ractor is known.
const NAMELESS: &str = "thread";

/// The child has one thread, whose lock stays the same. Another thread may have been changing the parent's table.
extern "C" fn after_fork_in_child() {
    RACTORS.forget();
    stacks::after_fork_in_child();
    let own = RubyThread::current_if_any().map(|thread| RECORDS.get(thread));
    if let Some(known) = own.flatten() {
        ractors()
            .present
            .insert(known.ractor, RactorThreads { threads: 1, ..RactorThreads::new(known.lock, None) });
    }
}

/// Prepares for forks, and reserves the slot on threads, which must happen before there are Ractors. Called while the
/// extension is loaded.
pub(super) fn prepare() {
    trace::watch_forks();
    trace::after_fork_in_child(after_fork_in_child);
    RECORDS.reserve();
}

fn known(thread: RubyThread) -> &'static ThreadRecord {
    RECORDS.get(thread).unwrap_or_else(|| adopt(thread, Thread::start(trace::now(), NAMELESS), true))
}

/// Attaches a record to a thread.
#[cold]
fn adopt(thread: RubyThread, own: &'static Thread, is_nameless: bool) -> &'static ThreadRecord {
    let ractor = thread.ractor();
    let (lock, waiters) = ractors().enter(ractor, is_nameless.then_some(own));
    let (sleeps, waiting) = (AtomicBool::new(false), Waiting::new(waiters));
    let (collects, collected) = (AtomicU64::new(0), AtomicU64::new(0));
    RECORDS.put(thread, ThreadRecord { thread: own, lock, ractor, sleeps, collects, collected, waiting })
}

/// Removes the record of an ended thread, which has no further events.
fn forget(thread: RubyThread) {
    // SAFETY: the thread has no further events.
    if let Some(known) = unsafe { RECORDS.take(thread) } {
        known.waiting.ends();
        ractors().leave(known.ractor, known.thread);
        known.thread.end(trace::now());
    }
}

/// The callbacks for Ruby.
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
            ThreadEvent::Ready => {
                let now = trace::now();
                known.thread.wants(now, known.lock);
                known.waiting.begins(now);
            }
            ThreadEvent::Resumed => {
                let now = trace::now_holding();
                known.thread.acquired(now, known.lock);
                known.waiting.acquired(now, thread, known.thread.id());
            }
            ThreadEvent::Suspended => {
                let now = trace::now_releasing();
                known.thread.holds(known.lock);
                known.waiting.releases(now, thread, known.thread.id());
                known.thread.released(now, known.lock, known.reason());
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
        if begins {
            known.collects.store(now, Ordering::Relaxed);
            known.thread.gc_enter(now);
        } else {
            known.collects_no_more(now);
            known.thread.gc_exit(now);
        }
    }
}

impl ThreadRecord {
    fn collects_no_more(&self, now: Ticks) {
        let since = self.collects.swap(0, Ordering::Relaxed);
        if since != 0 {
            // Only the thread itself writes it.
            let before = self.collected.load(Ordering::Relaxed);
            self.collected.store(before + now.saturating_sub(since), Ordering::Relaxed);
        }
    }

    #[inline]
    fn reason(&self) -> Reason {
        if self.sleeps.load(Ordering::Relaxed) { Reason::Sleeps } else { Reason::Blocks }
    }
}

/// Registers the hook with Ruby, unless it is registered already. The lock is held.
///
/// The hook is never removed, and does nothing while there is no trace and no metric. Ruby calls hooks under a read
/// lock, and changes their list under the same lock for writing. In the child of a fork that lock may still count
/// threads of the parent as readers, so a child that changes the list would wait for them forever. Instead, the child
/// uses the hook that it inherits.
pub(super) fn watch(ractor: Option<Ractor>) {
    static ADDED: AtomicBool = AtomicBool::new(false);
    if let Some(ractor) = ractor {
        thread::learn(RubyThread::current(), ractor);
    }
    if !ADDED.swap(true, Ordering::AcqRel) {
        add_hook::<Recording>();
    }
}

/// Ruby's trace point for garbage collection, to be enabled while a trace is running. The lock is held.
pub(super) fn gc_point() -> Object {
    thread::gc_point::<Recording>()
}

/// Sets the name of a thread, and its state (`stand`) if the thread existed before the trace started. The lock is held.
pub(super) fn name_thread(thread: RubyThread, name: &str, stand: Option<Stand>) {
    let known = RECORDS.get(thread).unwrap_or_else(|| adopt(thread, Thread::present(name), false));
    if let Some(stand) = stand {
        known.thread.assume(stand);
    }
    known.thread.rename(name);
    ractors().has_name(known.ractor, known.thread);
}

/// Names a Ractor's lock and its threads after the Ractor.
pub(super) fn name_ractor(ractor: Ractor, name: RactorName) {
    ractors().rename(ractor.address(), name);
}

/// For how many nanoseconds a thread has collected garbage while a trace was running.
pub(super) fn collected(thread: RubyThread) -> u64 {
    RECORDS.get(thread).map_or(0, |known| trace::nanoseconds(known.collected.load(Ordering::Relaxed)))
}

/// The recorder's thread of a Ruby thread, if it is known.
pub(super) fn find(thread: RubyThread) -> Option<&'static Thread> {
    RECORDS.get(thread).map(|known| known.thread)
}

/// Records the stack of the current thread, which holds the main Ractor's lock, if another one waits for it.
pub(super) struct Sample;

impl Work for Sample {
    fn run(ruby: &Ruby) {
        let thread = RubyThread::current();
        if let Some(known) = RECORDS.get(thread) {
            known.waiting.holds(thread, known.thread.id());
        }
        stacks::name_functions(ruby);
    }
}

/// The recorder's thread of the current Ruby thread. The lock is held.
pub(super) fn current() -> &'static Thread {
    let known = known(RubyThread::current());
    known.thread.holds(known.lock);
    known.thread
}

/// Records that the current thread enters or leaves `sleep`. The lock is held.
pub(super) fn set_sleeps(sleeps: bool) {
    known(RubyThread::current()).sleeps.store(sleeps, Ordering::Relaxed);
}
