//! The asyncio task that a thread runs, and its name.
//!
//! asyncio's tasks are objects of an extension module. Each has, one after the other, its coroutine and its name (a `str`,
//! or the number of a `Task-7` that nobody has asked for yet). Up to 3.13 a dict of that module has the running task of
//! each event loop; from 3.14 on the thread state has it. No event loop is asked, so those of other projects, such as uvloop,
//! are no exception.
//!
//! Nothing is assumed of a task's layout: it is one if it has a coroutine of the stack, and a name behind that. Everything is
//! read by the system, so a wrong address is no crash.

#![cfg_attr(Py_3_14, allow(dead_code, reason = "the thread state has the running task"))]

use std::borrow::Cow;
use std::sync::atomic::{AtomicUsize, Ordering};

use pyo3::ffi;
use pyo3::prelude::*;

use super::code_texts::{read_text, types};
#[cfg(not(Py_3_14))]
use super::dict_lookup::values;
use super::dict_lookup::{find, type_of};
use super::memory::{Foreign, Memory};
use super::object;

/// In a module: the address of its dict.
const MODULE_DICT: usize = 16;
/// In a type: the size of its objects.
const BASIC_SIZE: usize = 32;
/// The sizes that a task may have.
const TASK_SIZES: std::ops::RangeInclusive<usize> = 64..=512;

/// In an int: where its size and its first digit are.
const INT_SIZE: usize = 16;
const INT_DIGIT: usize = 24;
/// How many bits of an int's size say something else.
const INT_FLAGS: u32 = if cfg!(Py_3_12) { 3 } else { 0 };
/// The bits of a digit.
const DIGIT: u32 = 30;

/// How the names begin that asyncio gives.
const NUMBERED: &str = "Task-";

const MODULE: &str = "_asyncio";
const CURRENT_TASKS: &str = "_current_tasks";

/// The dict of the imported modules, which lives as long as the interpreter, and the hashes of the names to look up.
static MODULES: AtomicUsize = AtomicUsize::new(0);
static MODULE_HASH: AtomicUsize = AtomicUsize::new(0);
static CURRENT_TASKS_HASH: AtomicUsize = AtomicUsize::new(0);
/// Where the running tasks are, once it is known: a dict or, from 3.14 on, an offset in thread states.
static CURRENT: AtomicUsize = AtomicUsize::new(0);

/// Finds out what [`running`] needs.
pub(super) fn prepare(py: Python<'_>) {
    let hash = |text| object::text(py, text).and_then(|text| text.hash());
    if let (Ok(module), Ok(tasks)) = (hash(MODULE), hash(CURRENT_TASKS)) {
        MODULE_HASH.store(module as usize, Ordering::Relaxed);
        CURRENT_TASKS_HASH.store(tasks as usize, Ordering::Relaxed);
        // SAFETY: the interpreter is attached to this thread. The address is only read from.
        MODULES.store(unsafe { ffi::PyImport_GetModuleDict() } as usize, Ordering::Relaxed);
    }
}

/// The name of the task that a thread runs, and how many frames of its stack are inner to that of the task's coroutine.
/// `generators` has the generators and coroutines of its stack: for each the number of inner frames, and the address of its
/// frame.
pub(super) fn running(thread_state: usize, generators: &[(usize, usize)]) -> Option<(String, usize)> {
    if generators.is_empty() {
        return None;
    }
    let mut memory = Foreign::new();
    let with_coroutine = |(inner, frame): &(usize, usize)| Some((*inner, coroutine_of(&mut memory, *frame)?));
    let coroutines: Vec<(usize, usize)> = generators.iter().filter_map(with_coroutine).collect();
    if coroutines.is_empty() { None } else { current(&mut memory, thread_state, &coroutines) }
}

/// How far behind the beginning of a coroutine its frame may lie; versions differ.
const FRAME_WITHIN: std::ops::RangeInclusive<usize> = 48..=96;

/// The address of the coroutine that contains a frame; `None` if it is a generator's.
fn coroutine_of(memory: &mut Foreign, frame: usize) -> Option<usize> {
    let kind = &raw const ffi::PyCoro_Type as usize;
    let mut addresses = FRAME_WITHIN.step_by(size_of::<usize>()).map(|offset| frame.wrapping_sub(offset));
    addresses.find(|address| type_of(memory, *address) == Some(kind))
}

#[cfg(not(Py_3_14))]
fn current(memory: &mut Foreign, _: usize, coroutines: &[(usize, usize)]) -> Option<(String, usize)> {
    let known = Some(CURRENT.load(Ordering::Relaxed)).filter(|dict| *dict != 0);
    let dict = known.or_else(|| find_current(memory))?;
    values(memory, dict).into_iter().find_map(|task| name_of(memory, task, coroutines))
}

/// The dict of the running tasks; `None` if asyncio is not imported.
#[cfg(not(Py_3_14))]
fn find_current(memory: &mut Foreign) -> Option<usize> {
    let module = module(memory)?;
    let names = memory.word(module + MODULE_DICT)?;
    let dict = find(memory, types(), names, CURRENT_TASKS, CURRENT_TASKS_HASH.load(Ordering::Relaxed))?;
    if type_of(memory, dict)? != &raw const ffi::PyDict_Type as usize {
        return None;
    }
    CURRENT.store(dict, Ordering::Relaxed);
    Some(dict)
}

/// The thread state has the task, at the offset [`CURRENT`] once that is known.
#[cfg(Py_3_14)]
fn current(
    memory: &mut Foreign,
    thread_state: usize,
    coroutines: &[(usize, usize)],
) -> Option<(String, usize)> {
    let mut at = |offset: usize| {
        let task = memory.word(thread_state + offset).filter(|task| *task != 0 && task % 8 == 0)?;
        name_of(memory, task, coroutines)
    };
    match CURRENT.load(Ordering::Relaxed) {
        0 => {}
        offset => return at(offset),
    }
    let is_searched =
        module(&mut Foreign::new()).is_some() && SEARCHES.fetch_add(1, Ordering::Relaxed) < MOST_SEARCHES;
    let mut offsets = THREAD_STATE.filter(|offset| offset % 8 == 0 && is_searched);
    offsets.find_map(|offset| at(offset).inspect(|_| CURRENT.store(offset, Ordering::Relaxed)))
}

/// Where in a thread state the running task may be: behind what all versions have.
#[cfg(Py_3_14)]
const THREAD_STATE: std::ops::Range<usize> = 192..4096;
/// How often it is searched for, and has been.
#[cfg(Py_3_14)]
const MOST_SEARCHES: usize = 256;
#[cfg(Py_3_14)]
static SEARCHES: AtomicUsize = AtomicUsize::new(0);

/// The module of asyncio's tasks, if it is imported.
fn module(memory: &mut Foreign) -> Option<usize> {
    let modules = Some(MODULES.load(Ordering::Relaxed)).filter(|modules| *modules != 0)?;
    find(memory, types(), modules, MODULE, MODULE_HASH.load(Ordering::Relaxed))
}

/// The name of a task whose coroutine is one of these, and how many frames are inner to that.
fn name_of(memory: &mut Foreign, task: usize, coroutines: &[(usize, usize)]) -> Option<(String, usize)> {
    let kind = type_of(memory, task)?;
    let size = memory.word(kind + BASIC_SIZE).filter(|size| TASK_SIZES.contains(size))?;
    let mut bytes = vec![0; size];
    memory.read(task, &mut bytes)?;
    let words = bytes.chunks_exact(8).map(|word| usize::from_ne_bytes(word.try_into().expect("8 bytes")));
    let words: Vec<usize> = words.collect();
    words.windows(2).find_map(|pair| {
        let (inner, _) = coroutines.iter().find(|(_, coroutine)| *coroutine == pair[0])?;
        Some((text_of(memory, pair[1])?, *inner))
    })
}

/// The name of a task, with `*` in place of the number that asyncio has given it: a server with a task for each request
/// would fill recordings with names that say nothing.
pub(super) fn grouped(name: &str) -> Cow<'_, str> {
    let rest = name.strip_prefix(NUMBERED).map(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()));
    match rest {
        Some(rest)
            if rest.len() + NUMBERED.len() < name.len() && (rest.is_empty() || rest.starts_with(' ')) =>
        {
            Cow::Owned(format!("{NUMBERED}*{rest}"))
        }
        _ => Cow::Borrowed(name),
    }
}

/// The name that a `str`, or the number of a task, stands for.
fn text_of(memory: &mut Foreign, name: usize) -> Option<String> {
    if type_of(memory, name)? != &raw const ffi::PyLong_Type as usize {
        return read_text(memory, types(), name);
    }
    let digits = memory.word(name + INT_SIZE)? >> INT_FLAGS;
    let bits = memory.word(name + INT_DIGIT)? as u64;
    let digit = |index: usize| (bits >> (32 * index)) & ((1 << DIGIT) - 1);
    match digits {
        1 => Some(format!("{NUMBERED}{}", digit(0))),
        2 => Some(format!("{NUMBERED}{}", digit(0) | digit(1) << DIGIT)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::grouped;

    #[test]
    fn tasks_that_nobody_has_named_are_one() {
        for (name, expected) in [
            ("Task-7 (fetch)", "Task-* (fetch)"),
            ("Task-12345", "Task-*"),
            ("Task-7b (fetch)", "Task-7b (fetch)"),
            ("Task- (fetch)", "Task- (fetch)"),
            ("orders-7 (fetch)", "orders-7 (fetch)"),
        ] {
            assert_eq!(grouped(name), expected);
        }
    }
}
