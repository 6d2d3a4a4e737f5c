//! The stacks of CPython's threads, read without calling the interpreter.
//!
//! They are taken at moments when nothing of it may be called: by a thread that is just releasing or
//! acquiring the lock, and by a thread that waits for it, of the thread that holds it. Then the holder runs
//! on, but it cannot release the lock while its mutex is held, so that its thread state stays. What is read
//! in the middle of a change is noticed, as an object of another type or an instruction outside of its code,
//! and read again.
//!
//! [`probe`] verifies the layout: the calling thread's own stack, read in this way, must be the one that
//! `sys._getframe` shows.

use std::sync::atomic::{AtomicBool, Ordering};

use offlock_core::trace::{FrameText, Stack};
use pyo3::ffi;
use pyo3::prelude::*;

use super::code_texts::{CodeHeader, CodeText, own_header, read_headers, read_texts, types};
use super::frame_layout::{
    LAYOUT, OWNER_GENERATOR, OWNER_INTERPRETER, STR_STATE, is_outermost, learn_str_form,
};
use super::known_functions::{Known, StackKey, known};
use super::line_table::line_of;
use super::memory::{Foreign, Memory, Own};
use super::{known_functions, object, tasks};

/// The most frames of a stack that are kept: the innermost ones.
const KEPT: usize = 64;
/// The most frames that are looked at.
const COUNTED: usize = 1 << 11;
/// How often to read a stack again that was changing.
const ATTEMPTS: usize = 4;

/// A frame as it lies in memory: the addresses of its code object and of its instruction, and its owner.
#[derive(Clone, Copy)]
struct RawFrame {
    code: usize,
    instruction: usize,
    owner: u8,
}

/// The innermost frames of a stack, innermost first, and how many there are beyond.
struct RawStack {
    frames: Vec<RawFrame>,
    beyond: usize,
    /// The generators and coroutines that are executed: of how many frames each has to do with the inner ones, and the
    /// addresses of their frames.
    generators: Vec<(usize, usize)>,
}

/// A function in execution.
struct Execution<'a> {
    /// The number of frames that are inner to it.
    depth: usize,
    /// The address of its code, and its header.
    address: usize,
    code: CodeHeader<'a>,
    /// The index of its instruction, `None` before the first one.
    instruction: Option<usize>,
}

/// The stack of the calling thread, whose thread state is at this address; `None` if it runs no Python code.
///
/// # Safety
/// The layout was verified ([`probe`]), the thread state belongs to the calling thread, and the thread
/// executes nothing of the interpreter's but a release or an acquisition of the lock.
pub(super) unsafe fn own_stack(thread_state: usize) -> Option<Stack> {
    // SAFETY: the thread's frames change only if the thread runs, and keep their code objects alive.
    let own = || unsafe { Own::new() };
    // The places where threads release or acquire the lock are few, and are met again.
    known()
        .stack(|key| identify(&mut own(), thread_state, key), |known| read(&mut own(), thread_state, known))
}

/// The stack of another thread, whose thread state is at this address; `None` if it cannot be read, or runs
/// no Python code.
pub(super) fn foreign_stack(thread_state: usize) -> Option<Stack> {
    // Such a thread may be at any instruction: these stacks are too many to remember.
    (0..ATTEMPTS).find_map(|_| read(&mut Foreign::new(), thread_state, &mut known()))
}

/// Makes the key of the calling thread's stack, without memory of its own. `None` if the stack has none: that of a coroutine
/// may have the name of an asyncio task, too.
fn identify(memory: &mut Own, thread_state: usize, key: &mut StackKey) -> Option<()> {
    let mut frames = Frames::of(memory, thread_state)?;
    let mut depth = 0;
    while let Some((frame, _)) = frames.next(memory).ok()? {
        if depth < KEPT {
            let code = own_header(memory, frame.code)?;
            if code.is_of_coroutine() {
                return None;
            }
            if let Some(execution) = frame.execution(depth, code).ok()? {
                key.add(execution.address, code, execution.instruction)?;
            }
        } else if frame.owner == OWNER_GENERATOR {
            return None;
        } else {
            key.leave_out();
        }
        depth += 1;
    }
    Some(())
}

/// Reads the stack of a thread.
fn read(memory: &mut impl Memory, thread_state: usize, known: &mut Known) -> Option<Stack> {
    let stack = walk(memory, thread_state, KEPT)?;
    let mut task = stack.task(thread_state);
    let mut buffer = Vec::new();
    let headers = stack.code_headers(memory, &mut buffer)?;
    let executions = stack.executions(&headers).ok()?;
    let codes: Vec<(usize, CodeHeader<'_>)> =
        executions.iter().map(|execution| (execution.address, execution.code)).collect();
    let functions = known.numbers_of(memory, &codes)?;
    let mut frames = Vec::with_capacity(executions.len() + 1);
    for (execution, number) in executions.iter().zip(functions) {
        frames.push(known.frame(number, execution.instruction));
        if let Some(name) = task.name_at(execution.depth, || known.name(number).to_owned()) {
            frames.push(known.task(&name));
        }
    }
    if let Some(name) = task.name_beyond() {
        frames.push(known.task(&name));
    }
    frames.reverse();
    Stack::of(known.era(), frames, stack.beyond)
}

/// A stack in words: its frames, innermost first, how many outer ones there are beyond, and the asyncio task that runs.
#[derive(Default)]
pub(crate) struct StackText {
    pub(crate) frames: Vec<FrameText>,
    pub(crate) left_out: usize,
    pub(crate) task: Option<String>,
}

/// The stack of another thread in words, with at most `kept` frames; `None` if it cannot be read.
pub(super) fn text(thread_state: usize, kept: usize) -> Option<StackText> {
    (0..ATTEMPTS).find_map(|_| {
        let mut memory = Foreign::new();
        let stack = walk(&mut memory, thread_state, kept)?;
        let mut task = stack.task(thread_state);
        let mut text = StackText { left_out: stack.beyond, ..StackText::default() };
        describe(&memory, &stack, |depth, code, instruction| {
            let line = instruction.map_or(code.first_line(), |index| line(code, index));
            text.frames.push(FrameText { function: code.name(), file: code.file(), line });
            text.task = task.name_at(depth, || code.name()).or(text.task.take());
        })?;
        text.task = text.task.or_else(|| task.name_beyond());
        Some(text)
    })
}

impl RawStack {
    /// What its frames execute; `None` if it cannot be read.
    fn code_headers<'a>(
        &self,
        memory: &'a impl Memory,
        buffer: &'a mut Vec<u8>,
    ) -> Option<Vec<CodeHeader<'a>>> {
        read_headers(memory, self.frames.iter().map(|frame| frame.code), buffer)
    }

    /// Its functions in execution, innermost first, given the headers of its frames' code.
    fn executions<'a>(&self, headers: &[CodeHeader<'a>]) -> Result<Vec<Execution<'a>>, Torn> {
        let frames = self.frames.iter().zip(headers).enumerate();
        frames.filter_map(|(depth, (frame, header))| frame.execution(depth, *header).transpose()).collect()
    }

    /// The asyncio task that runs.
    fn task(&self, thread_state: usize) -> Task {
        Task(tasks::running(thread_state, &self.generators))
    }
}

/// The name of an asyncio task, until it is given out, and how many frames are inner to that of its coroutine.
struct Task(Option<(String, usize)>);

impl Task {
    /// Its name and its coroutine's function, as in `Task-7 (fetch_orders)`, if the frame with so many inner ones is that of
    /// its coroutine.
    fn name_at(&mut self, depth: usize, function: impl FnOnce() -> String) -> Option<String> {
        let (name, _) = self.0.take_if(|(_, inner)| *inner == depth)?;
        Some(format!("{name} ({})", function()))
    }

    /// Its name, if the frame of its coroutine was not met.
    fn name_beyond(self) -> Option<String> {
        self.0.map(|(name, _)| format!("{name} (…)"))
    }
}

/// Passes what the code of each frame says to `each`, innermost frames first, with the number of frames that are inner to
/// it. `None` if some of it cannot be read, or makes no sense.
fn describe(
    memory: &impl Memory,
    stack: &RawStack,
    mut each: impl FnMut(usize, &CodeText<'_>, Option<usize>),
) -> Option<()> {
    let (mut header_bytes, mut text_bytes) = (Vec::new(), Vec::new());
    let headers = stack.code_headers(memory, &mut header_bytes)?;
    let executions = stack.executions(&headers).ok()?;
    let codes: Vec<CodeHeader<'_>> = executions.iter().map(|execution| execution.code).collect();
    let texts = read_texts(memory, types(), &codes, &mut text_bytes)?;
    for (execution, text) in executions.iter().zip(&texts) {
        each(execution.depth, text, execution.instruction);
    }
    Some(())
}

/// The frames of a thread, of which the `kept` innermost are kept; `None` if one cannot be read, or has just been left.
fn walk(memory: &mut impl Memory, thread_state: usize, kept: usize) -> Option<RawStack> {
    let mut frames = Frames::of(memory, thread_state)?;
    let mut stack = RawStack { frames: Vec::new(), beyond: 0, generators: Vec::new() };
    while let Some((frame, address)) = frames.next(memory).ok()? {
        let inner = stack.frames.len() + stack.beyond;
        if frame.owner == OWNER_GENERATOR {
            stack.generators.push((inner, address));
        }
        if inner < kept {
            stack.frames.push(frame);
        } else {
            stack.beyond += 1;
        }
    }
    Some(stack)
}

/// The frames of a thread, one after the other, innermost first.
struct Frames {
    /// The address of the next one; 0 if there is none.
    next: usize,
    /// How many may still be looked at.
    left: usize,
}

impl Frames {
    /// Those of the thread whose thread state is at this address; `None` if that cannot be read.
    fn of(memory: &mut impl Memory, thread_state: usize) -> Option<Self> {
        let at = memory.word(thread_state + LAYOUT.thread_frame)?;
        let next = LAYOUT.indirect.map_or(Some(at), |offset| memory.word(at + offset))?;
        Some(Self { next, left: COUNTED })
    }

    /// The next frame that is not the interpreter's own, and its address; `None` after the last one.
    fn next(&mut self, memory: &mut impl Memory) -> Result<Option<(RawFrame, usize)>, Torn> {
        while self.next != 0 && self.left > 0 {
            let address = self.next;
            let (frame, previous) = RawFrame::read(memory, address).ok_or(Torn)?;
            (self.next, self.left) = (previous, self.left - 1);
            if let Some(frame) = frame {
                return Ok(Some((frame, address)));
            }
        }
        Ok(None)
    }
}

/// The size of the part of a frame that is read.
const FRAME: usize = 80;
/// The bytes of an instruction.
const INSTRUCTION: usize = 2;

/// A frame was read while it was being changed.
struct Torn;

impl RawFrame {
    /// Reads the frame at an address, none if it is the interpreter's own, and the address of its caller.
    /// `None` if it cannot be read, or has lost its caller.
    fn read(memory: &mut impl Memory, address: usize) -> Option<(Option<Self>, usize)> {
        let mut bytes = [0; FRAME];
        memory.read(address, &mut bytes)?;
        let word = |at: usize| bytes.get(at..)?.first_chunk().map(|word| usize::from_ne_bytes(*word));
        // From 3.14 on, the lower bits are flags.
        let frame = Self {
            code: word(LAYOUT.code)? & !3,
            instruction: word(LAYOUT.instruction)?,
            owner: bytes[LAYOUT.owner],
        };
        let previous = word(LAYOUT.previous).filter(|previous| *previous != 0 || is_outermost(&bytes))?;
        Some(((frame.owner < OWNER_INTERPRETER).then_some(frame), previous))
    }

    /// What it executes. Nothing if it executes no Python code, or has only been made.
    fn execution(self, depth: usize, code: CodeHeader<'_>) -> Result<Option<Execution<'_>>, Torn> {
        if !code.is_code(types()) {
            return Ok(None);
        }
        let offset = self.instruction.wrapping_sub(self.code + LAYOUT.instructions) as isize;
        let instruction = usize::try_from(offset).ok().map(|offset| offset / INSTRUCTION);
        if offset < -(INSTRUCTION as isize) || instruction.is_some_and(|index| index >= code.instructions()) {
            return Err(Torn);
        }
        let is_made = instruction.is_none_or(|index| index < code.first_traceable());
        let is_complete = self.owner == OWNER_GENERATOR || !is_made;
        Ok(is_complete.then_some(Execution { depth, address: self.code, code, instruction }))
    }
}

fn line(text: &CodeText<'_>, instruction: usize) -> u32 {
    line_of(text.table(), text.first_line(), instruction).unwrap_or(0)
}

static IS_VERIFIED: AtomicBool = AtomicBool::new(false);

/// Whether [`probe`] has succeeded.
pub(super) fn is_verified() -> bool {
    IS_VERIFIED.load(Ordering::Relaxed)
}

/// Verifies the layout on the calling thread's own stack.
///
/// # Errors
/// A sentence that says what differs.
pub(super) fn probe(py: Python<'_>) -> Result<(), String> {
    if is_verified() {
        return Ok(());
    }
    refuse_what_is_not_known(py)?;
    let sample = object::text(py, "a sample").map_err(|error| error.to_string())?;
    let state = Foreign::new().word(sample.as_ptr() as usize + STR_STATE);
    if !state.is_some_and(|state| learn_str_form(state as u32)) {
        return Err("the form of a str is not where it is expected".into());
    }
    // SAFETY: the interpreter is attached to this thread.
    let thread_state = unsafe { ffi::PyThreadState_Get() } as usize;
    let read = shown_by_memory(thread_state).ok_or("the frames of this interpreter cannot be read")?;
    let expected = shown_by_interpreter(py).map_err(|error| format!("sys._getframe failed: {error}"))?;
    if expected.is_empty() {
        return Err("no Python code runs that could be compared with sys._getframe".into());
    }
    if let Some((own, theirs)) = read.iter().zip(&expected).find(|(own, theirs)| own != theirs) {
        return Err(format!("a frame reads as {own:?}, but is {theirs:?}"));
    }
    if read.len() != expected.len() {
        return Err(format!("{} frames were read, but there are {}", read.len(), expected.len()));
    }
    tasks::prepare(py);
    known_functions::find_versions(py);
    IS_VERIFIED.store(true, Ordering::Relaxed);
    Ok(())
}

/// A stack at rest reads right even where one that runs might not.
fn refuse_what_is_not_known(py: Python<'_>) -> Result<(), String> {
    if cfg!(Py_GIL_DISABLED) {
        return Err("stacks of free-threaded builds are not read".into());
    }
    let jit = py.import("sys").and_then(|sys| sys.getattr("_jit"));
    match jit.and_then(|jit| jit.call_method0("is_enabled")?.is_truthy()) {
        Ok(true) => {
            Err("the interpreter's JIT compiler is on, whose code does not keep the current line".into())
        }
        _ => Ok(()),
    }
}

/// A frame: name, file, line, and the flags of its code.
type Shown = (String, String, u32, u32);

fn shown_by_memory(thread_state: usize) -> Option<Vec<Shown>> {
    let mut memory = Foreign::new();
    let stack = walk(&mut memory, thread_state, KEPT)?;
    let mut shown = Vec::new();
    describe(&memory, &stack, |_, text, instruction| {
        let line = instruction.map_or(text.first_line(), |index| line(text, index));
        shown.push((text.name(), text.file(), line, text.flags()));
    })?;
    Some(shown)
}

fn shown_by_interpreter(py: Python<'_>) -> PyResult<Vec<Shown>> {
    let mut all = Vec::new();
    let mut next = py.import("sys")?.call_method0("_getframe").ok();
    while let Some(frame) = next.filter(|frame| !frame.is_none() && all.len() < KEPT) {
        let code = frame.getattr("f_code")?;
        let text = |name| code.getattr(name)?.extract::<String>();
        let line = frame.getattr("f_lineno")?.extract::<Option<u32>>()?.unwrap_or(0);
        let flags = code.getattr("co_flags")?.extract::<u32>()?;
        all.push((text("co_qualname")?, text("co_filename")?, line, flags));
        next = Some(frame.getattr("f_back")?);
    }
    Ok(all)
}
