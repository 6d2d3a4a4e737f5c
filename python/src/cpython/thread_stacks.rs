//! The stacks of all threads of the main interpreter, read on a thread that is none of them.
//!
//! While the mutex of the lock is held ([`gil_hooks::hold_still`]), no thread gets or releases the lock. So the stacks of
//! threads without it stay as they are, and so does the list of thread states, but for threads that begin. The holder runs
//! on; what is read of it in the middle of a change is noticed ([`frames`]), and so is a thread state that has been freed.
//! Nothing of the interpreter is called, and it makes no difference what the holder does: the stacks of a process that
//! hangs are read, too.

use std::sync::atomic::{AtomicUsize, Ordering};

use pyo3::ffi;
use pyo3::prelude::*;

use super::frames::{self, StackText};
use super::gil_hooks;
use super::memory::{Foreign, Memory};
use crate::lock::feed;

/// In a thread state: the address of the next one, and of its interpreter.
const NEXT: usize = 8;
const INTERPRETER: usize = 16;

/// The most threads.
const MOST: usize = 1 << 16;
/// The most frames of a stack: the innermost ones.
const KEPT: usize = 256;

/// The size of the part of a thread state in which its ids are searched.
const SEARCHED: usize = 512;

/// In a thread state: where the system's id of the thread is, behind the C library's; 0 until it is known.
static NATIVE_ID: AtomicUsize = AtomicUsize::new(0);
/// The thread that has prepared last, by the C library's id, and the system's id of it: in the child of a fork, its state may
/// still have that of the parent.
static OWN: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

/// Finds out where thread states have the ids of threads. Called by a thread that has one.
pub(crate) fn prepare(_: Python<'_>) {
    // SAFETY: the interpreter is attached to this thread; pthread_self has no preconditions.
    let (state, own) = unsafe { (ffi::PyThreadState_Get() as usize, libc::pthread_self() as usize) };
    let native_id = feed::native_id() as usize;
    OWN[0].store(own, Ordering::Relaxed);
    OWN[1].store(native_id, Ordering::Relaxed);
    let mut memory = Foreign::new();
    let mut has_ids =
        |at: &usize| memory.word(state + at - 8) == Some(own) && memory.word(state + at) == Some(native_id);
    if NATIVE_ID.load(Ordering::Relaxed) == 0
        && let Some(found) = (32..SEARCHED).step_by(8).find(|at| has_ids(at))
    {
        NATIVE_ID.store(found, Ordering::Relaxed);
    }
}

/// A thread of the interpreter.
#[derive(Clone, Copy)]
pub(crate) struct ThreadState {
    address: usize,
    /// The system's id of it.
    pub(crate) native_id: u32,
}

/// The threads; `None` if their ids are not where they are expected. Called while no thread gets or releases the lock.
pub(crate) fn states(_: &gil_hooks::Still) -> Option<Vec<ThreadState>> {
    let native_id_at = Some(NATIVE_ID.load(Ordering::Relaxed)).filter(|at| *at != 0)?;
    // SAFETY: the main interpreter lives as long as threads of this extension are published; the function reads a field.
    let (interpreter, mut next) = unsafe {
        let interpreter = ffi::PyInterpreterState_Main();
        (interpreter as usize, ffi::PyInterpreterState_ThreadHead(interpreter) as usize)
    };
    let (mut memory, mut all) = (Foreign::new(), Vec::new());
    while next != 0 && all.len() < MOST {
        if memory.word(next + INTERPRETER) != Some(interpreter) {
            break;
        }
        let (thread, native_id) = (memory.word(next + native_id_at - 8), memory.word(next + native_id_at));
        if let (Some(thread), Some(native_id)) = (thread, native_id.and_then(|id| u32::try_from(id).ok())) {
            let is_own = thread == OWN[0].load(Ordering::Relaxed);
            let native_id = if is_own { OWN[1].load(Ordering::Relaxed) as u32 } else { native_id };
            // A state that has only been made belongs to no thread yet.
            if thread != 0 {
                all.push(ThreadState { address: next, native_id });
            }
        }
        next = memory.word(next + NEXT).unwrap_or(0);
    }
    Some(all)
}

impl ThreadState {
    /// The thread's stack; empty if it executes no Python code, or has ended. Called while no thread gets or releases the
    /// lock.
    pub(crate) fn stack(self, _: &gil_hooks::Still) -> StackText {
        frames::text(self.address, KEPT).unwrap_or_default()
    }
}
