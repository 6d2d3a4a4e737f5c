//! Which Ractor a thread belongs to: each has a lock of its own.
//!
//! Ruby's instrumentation names the thread of an event, not its Ractor, and may call with no lock held, when
//! nothing can be asked of Ruby. The answer is in the thread's structure, beside the reference to the thread
//! itself (`rb_thread_t`: `self`, `ractor`). Where exactly is found out once, with the main thread and the
//! main Ractor, both of which Ruby hands out; any other picture means that all threads count as the main Ractor's.

use std::sync::OnceLock;

use rb_sys::VALUE;
use rb_sys::macros::RTYPEDDATA_GET_DATA;

/// The address of a Ractor's structure; only compared, never looked into.
pub(crate) type RactorAddress = usize;

/// How many words of a thread's structure are looked through.
const WORDS: usize = 8;

static WORD: OnceLock<Option<usize>> = OnceLock::new();

/// Finds out where threads keep their Ractor.
///
/// # Safety
/// The lock is held; `thread` is the current thread and `ractor` the current Ractor.
pub(crate) unsafe fn learn(thread: VALUE, ractor: VALUE) {
    // SAFETY: both are objects of the core classes, which wrap structures.
    let (structure, wanted) = unsafe { (words(thread), RTYPEDDATA_GET_DATA(ractor) as usize) };
    WORD.get_or_init(|| {
        // SAFETY: `rb_thread_t` is far larger than the words that are read.
        let word = |index: usize| unsafe { *structure.add(index) };
        let known = super::uses_internals();
        (1..WORDS).find(|&index| known && word(index - 1) == thread as usize && word(index) == wanted)
    });
}

/// The Ractor of a thread, or 0 where that cannot be told.
///
/// # Safety
/// `thread` is a live thread of this process. No lock is needed: a thread's Ractor never changes.
pub(crate) unsafe fn of(thread: VALUE) -> RactorAddress {
    match WORD.get() {
        // SAFETY: the word was found in this Ruby's threads.
        Some(Some(word)) => unsafe { *words(thread).add(*word) },
        _ => 0,
    }
}

/// The address of a Ractor, as in its threads.
///
/// # Safety
/// `ractor` is a Ractor.
pub(crate) unsafe fn address(ractor: VALUE) -> RactorAddress {
    // SAFETY: passed on.
    unsafe { RTYPEDDATA_GET_DATA(ractor) as usize }
}

/// # Safety
/// `thread` is a thread.
unsafe fn words(thread: VALUE) -> *const usize {
    // SAFETY: a thread wraps its structure.
    unsafe { RTYPEDDATA_GET_DATA(thread) }.cast()
}
