//! The threads, locks and names for which the numbers in records stand.
//!
//! Guarded by mutexes, because definitions are rare: a callback comes here only when a thread starts, ends or
//! is renamed, and operations off the lock when they look up their name.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard};

use super::buffers::buffers;
use super::mode::{self, is_tracing};
use super::thread::Thread;
use crate::clock::Ticks;
use crate::fork::{Remade, lock};
use crate::os;
use crate::trace::format::definition::{Definition, Lock, Name, Stand};
use crate::trace::format::event::Kind;

/// All definitions. The child of a fork makes a new registry.
pub(super) struct Registry {
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

static REGISTRY: Remade<Registry> = Remade::new();

/// This process's registry.
pub(super) fn registry() -> &'static Registry {
    REGISTRY.get_or_make(|| Registry {
        threads: Mutex::default(),
        spare_threads: Mutex::default(),
        locks: Mutex::default(),
        names: Mutex::default(),
        news: Mutex::default(),
    })
}

/// In the child of a fork: the next use makes a new registry.
pub(super) fn forget() {
    REGISTRY.forget();
}

/// A thread's relation to its lock at a moment.
#[derive(Debug, Clone)]
pub struct Standing {
    /// The thread's [`id`](Thread::id).
    pub thread: u32,
    /// Its name.
    pub name: String,
    /// Its relation to the lock.
    pub stand: Stand,
    /// The number of the lock; 0 if it has used none.
    pub lock: u32,
    /// Since when, if that is known.
    pub since: Option<Ticks>,
}

/// The relations of all living threads to their locks. The threads run on meanwhile, unless the caller keeps them from
/// using the lock.
pub fn standings() -> Vec<Standing> {
    let threads = registry().threads();
    let standing = |(id, entry): (&u32, &Entry)| Standing {
        thread: *id,
        name: entry.name.clone(),
        stand: entry.thread.stand(),
        lock: entry.thread.lock(),
        since: entry.thread.since(),
    };
    threads.iter().map(standing).collect()
}

/// Stops recording what `bits` stand for. Once nothing is recorded, the states of the threads are unknown.
pub(in crate::trace) fn switch_off(bits: u32) {
    if mode::clear(bits) {
        registry().threads().values().for_each(|entry| entry.thread.assume(Stand::Unknown));
    }
}

/// The greatest length of a text; longer ones are truncated.
const LONGEST_TEXT: usize = 512;
/// The size at which the table of names is cleared; ids are never reused.
const MOST_NAMES: usize = 1 << 14;
/// The most definitions that are kept between two drains.
const MOST_NEWS: usize = 1 << 16;

/// A text of at most [`LONGEST_TEXT`] bytes.
pub(super) fn cut(text: &str) -> String {
    let mut end = text.len().min(LONGEST_TEXT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

impl Registry {
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
            buffers().lose_one();
        }
    }

    /// The definitions made since the last call.
    pub(super) fn take_news(&self) -> Vec<Definition> {
        std::mem::take(&mut lock(&self.news))
    }

    /// All current definitions.
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
}

impl Entry {
    fn definition(&self, id: u32) -> Definition {
        Definition::Thread { id, name: self.name.clone(), stand: self.thread.stand() }
    }
}

static NEXT_NAME: AtomicU32 = AtomicU32::new(1);

impl Name {
    /// The number of `text`. Call this for each use: numbers are valid for a while, not forever.
    pub fn of(text: &str) -> Self {
        let registry = registry();
        let mut names = lock(&registry.names);
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
        registry.announce(Definition::Name { id, text });
        Self(id)
    }
}

static NEXT_LOCK: AtomicU32 = AtomicU32::new(1);

impl Lock {
    /// A lock that the recorder has not seen before.
    pub fn new(name: &str) -> Self {
        let lock = Self(NEXT_LOCK.fetch_add(1, Ordering::Relaxed));
        lock.rename(name);
        lock
    }

    /// Names the lock. Also makes a lock from before a fork known in the child.
    pub fn rename(self, name: &str) {
        let (registry, name) = (registry(), cut(name));
        lock(&registry.locks).insert(self.0, name.clone());
        registry.announce(Definition::Lock { id: self.0, name });
    }

    /// Names a lock that has been removed already.
    pub fn name_removed(self, name: &str) {
        registry().announce(Definition::Lock { id: self.0, name: cut(name) });
    }

    /// Removes the lock. Nothing may be recorded for it afterwards.
    pub fn remove(self) {
        lock(&registry().locks).remove(&self.0);
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

/// A name for a thread that has none in its interpreter. A library may have given it one that the system shows, as
/// `pool-3`; the system's id is added if that has no number, as in `pool (4711)` and `thread 4711`.
pub fn nameless_thread(native_id: u32) -> String {
    match os::thread_name(native_id) {
        Some(name) if name.contains(|letter: char| letter.is_ascii_digit()) => name,
        Some(name) => format!("{name} ({native_id})"),
        None => format!("thread {native_id}"),
    }
}

static NEXT_THREAD: AtomicU32 = AtomicU32::new(1);

impl Thread {
    /// Adds a thread that begins.
    pub fn start(at: Ticks, name: &str) -> &'static Self {
        let thread = Self::present(name);
        thread.assume(Stand::Off);
        thread.trace(at, Kind::ThreadStart, 0);
        thread
    }

    /// Adds a thread that existed before the recording.
    pub fn present(name: &str) -> &'static Self {
        let spare = lock(&registry().spare_threads).pop();
        let thread = spare.unwrap_or_else(|| Self::added());
        thread.set_id(NEXT_THREAD.fetch_add(1, Ordering::Relaxed));
        thread.rename(name);
        thread
    }

    /// Names the thread. Also makes the thread that forked known in the child.
    pub fn rename(&'static self, name: &str) {
        let (registry, id) = (registry(), self.id());
        let entry = Entry { thread: self, name: cut(name) };
        let definition = entry.definition(id);
        registry.threads().insert(id, entry);
        registry.announce(definition);
    }

    /// Names a thread that has ended already.
    pub fn name_ended(id: u32, name: &str) {
        registry().announce(Definition::Thread { id, name: cut(name), stand: Stand::Unknown });
    }

    /// The thread ended.
    pub fn end(&'static self, at: Ticks) {
        self.trace(at, Kind::ThreadEnd, 0);
        Self::trace_usage(at);
        self.clear();
        let registry = registry();
        if registry.threads().remove(&self.id()).is_some() {
            lock(&registry.spare_threads).push(self);
        }
    }
}
