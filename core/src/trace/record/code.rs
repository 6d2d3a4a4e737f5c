//! The functions and stacks that the stack events name.
//!
//! A feed numbers a function when it first meets it, possibly in a callback of the interpreter, and describes
//! it then or later, when the interpreter lets it read names. A stack becomes a path in one tree of frames,
//! so an event needs one number, whatever the depth, and a frame that was seen before costs a look-up in a
//! hash table.
//!
//! Guarded by a mutex: a feed comes here at most about once per millisecond, and only while a thread waits.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard};

use rustc_hash::FxHashMap;

use super::mode::{self, TRACING, is_tracing};
use super::native::record;
use super::registry::cut;
use crate::clock::Ticks;
use crate::fork::{Remade, lock};
use crate::trace::analyze::code::FrameText;
use crate::trace::format::code::{CodeDefinition, Function, LEFT_OUT, Stack};
use crate::trace::format::event::{Event, Kind};

/// The most functions that are known at a time.
const MOST_FUNCTIONS: usize = 1 << 16;
/// The most frames that are known at a time.
const MOST_FRAMES: usize = 1 << 18;

/// What is known of the program's code. The child of a fork makes a new table.
#[derive(Default)]
pub(super) struct CodeTable(Mutex<Known>);

#[derive(Default)]
struct Known {
    files: HashMap<String, u32>,
    functions: HashMap<u32, CodeDefinition>,
    frames: FxHashMap<(u32, Frame), u32>,
    news: Vec<CodeDefinition>,
    /// The last stack of each thread as it held a lock, and when that was.
    last: FxHashMap<u32, (Ticks, u32)>,
}

/// The most threads whose last stacks are known.
const MOST_LAST: usize = 1 << 12;

/// A function in execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Frame {
    /// The function.
    pub function: Function,
    /// The line that it executes, 0 if that is unknown.
    pub line: u32,
}

static TABLE: Remade<CodeTable> = Remade::new();

/// This process's table.
pub(super) fn code_table() -> &'static CodeTable {
    TABLE.get_or_make(CodeTable::default)
}

/// In the child of a fork: the next use makes a new table.
pub(super) fn forget() {
    TABLE.forget();
    ERA.fetch_add(1, Ordering::Relaxed);
}

static NEXT_FILE: AtomicU32 = AtomicU32::new(1);
static NEXT_FUNCTION: AtomicU32 = AtomicU32::new(LEFT_OUT + 1);
static NEXT_FRAME: AtomicU32 = AtomicU32::new(1);
static ERA: AtomicU32 = AtomicU32::new(0);

/// A number that changes whenever the recorder forgets all functions and stacks, and as it begins to trace: a feed that
/// remembers some forgets them, too.
pub fn code_era() -> u32 {
    ERA.load(Ordering::Relaxed)
}

impl CodeTable {
    fn known(&self) -> MutexGuard<'_, Known> {
        lock(&self.0)
    }

    /// The definitions made since the last call.
    pub(super) fn take_news(&self) -> Vec<CodeDefinition> {
        std::mem::take(&mut self.known().news)
    }

    /// All definitions.
    pub(super) fn definitions(&self) -> Vec<CodeDefinition> {
        let known = self.known();
        let files = known.files.iter().map(|(path, id)| CodeDefinition::File { id: *id, path: path.clone() });
        let frames = known.frames.iter().map(|((caller, frame), id)| frame.definition(*id, *caller));
        files.chain(known.functions.values().cloned()).chain(frames).collect()
    }

    /// Turns tracing on. What feeds have numbered while nothing was traced was not described: they number it again.
    pub(super) fn begin(&self) {
        let mut known = self.known();
        if !is_tracing() {
            known.clear();
            mode::set(TRACING);
        }
    }

    /// Forgets everything, once nothing is traced any more.
    pub(super) fn clear(&self) {
        self.known().clear();
    }
}

impl Known {
    /// Forgets what traces have already, or will get with the news. Numbers are never used again.
    fn forget(&mut self) {
        *self = Self { news: std::mem::take(&mut self.news), ..Self::default() };
        ERA.fetch_add(1, Ordering::Relaxed);
    }

    fn clear(&mut self) {
        self.forget();
        self.news.clear();
    }

    /// The number of a file; 0 for no file.
    fn file(&mut self, path: &str) -> u32 {
        if path.is_empty() {
            return 0;
        }
        let path = cut(path);
        if let Some(id) = self.files.get(&path) {
            return *id;
        }
        let id = NEXT_FILE.fetch_add(1, Ordering::Relaxed);
        self.files.insert(path.clone(), id);
        self.news.push(CodeDefinition::File { id, path });
        id
    }

    /// The number of a frame.
    fn frame(&mut self, caller: u32, frame: Frame) -> u32 {
        if let Some(id) = self.frames.get(&(caller, frame)) {
            return *id;
        }
        let id = NEXT_FRAME.fetch_add(1, Ordering::Relaxed);
        self.frames.insert((caller, frame), id);
        self.news.push(frame.definition(id, caller));
        id
    }

    fn set_last(&mut self, thread: u32, at: Ticks, stack: u32) {
        if self.last.len() >= MOST_LAST {
            self.last.clear();
        }
        self.last.insert(thread, (at, stack));
    }

    /// The frames of a stack, innermost first, and how many outer ones were left out.
    fn texts(&self, stack: u32) -> (Vec<FrameText>, usize) {
        let frames: HashMap<u32, &(u32, Frame)> =
            self.frames.iter().map(|(frame, id)| (*id, frame)).collect();
        let files: HashMap<u32, &String> = self.files.iter().map(|(path, id)| (*id, path)).collect();
        let (mut texts, mut left_out, mut next) = (Vec::new(), 0, stack);
        while let Some((caller, Frame { function, line })) = frames.get(&next).copied() {
            let (function, line, caller) = (*function, *line, *caller);
            next = caller;
            if function.0 == LEFT_OUT {
                left_out += line as usize;
                continue;
            }
            let (name, file) = match self.functions.get(&function.0) {
                Some(CodeDefinition::Function { name, file, .. }) => (name.clone(), files.get(file)),
                _ => ("?".to_owned(), None),
            };
            texts.push(FrameText {
                function: name,
                file: file.map(|file| (*file).clone()).unwrap_or_default(),
                line,
            });
        }
        (texts, left_out)
    }
}

/// The last stack that was recorded of a thread as it held a lock: when that was, its frames, innermost first, and how
/// many outer ones were left out. `None` if nothing is recorded.
pub(in crate::trace) fn last_stack(thread: u32) -> Option<(Ticks, Vec<FrameText>, usize)> {
    let known = code_table().known();
    let (at, stack) = *known.last.get(&thread)?;
    let (frames, left_out) = known.texts(stack);
    Some((at, frames, left_out)).filter(|(_, frames, _)| !frames.is_empty())
}

impl Frame {
    fn definition(self, id: u32, caller: u32) -> CodeDefinition {
        CodeDefinition::Frame { id, caller, function: self.function.0, line: self.line }
    }
}

impl Function {
    /// A number for a function that the feed has not met before.
    pub fn numbered() -> Self {
        Self(NEXT_FUNCTION.fetch_add(1, Ordering::Relaxed))
    }

    /// Says what the number stands for: the qualified name, the path of the file (empty if there is none) and
    /// the first line (0 if it is unknown). Ignored unless a trace is recorded.
    pub fn describe(self, name: &str, file: &str, line: u32) {
        let mut known = code_table().known();
        if !is_tracing() {
            return;
        }
        if known.functions.len() >= MOST_FUNCTIONS {
            known.forget();
        }
        let file = known.file(file);
        let definition = CodeDefinition::Function { id: self.0, file, line, name: cut(name) };
        known.functions.insert(self.0, definition.clone());
        known.news.push(definition);
    }
}

impl Stack {
    /// The stack of these frames, outermost first, below `left_out` further ones. That number is rounded down
    /// to a power of two: the stacks of a deep recursion at its different depths have their outermost frame in
    /// common. `None` if no trace is recorded, if there are no frames, or if the [`code_era`] in which the
    /// functions were numbered is over.
    pub fn of(era: u32, frames: impl IntoIterator<Item = Frame>, left_out: usize) -> Option<Self> {
        let mut known = code_table().known();
        if !is_tracing() || era != code_era() {
            return None;
        }
        if known.frames.len() >= MOST_FRAMES {
            known.forget();
        }
        let rounded = left_out.checked_ilog2().map(|log| 1 << log.min(u32::BITS - 1));
        let cut = rounded.map(|line| Frame { function: Function(LEFT_OUT), line });
        let innermost = cut.into_iter().chain(frames).fold(0, |caller, frame| known.frame(caller, frame));
        (innermost != 0).then_some(Self(innermost))
    }

    /// The thread with this [`id`](super::thread::Thread::id) held the lock while it had this stack, and
    /// another thread waited. May be called on any native thread.
    pub fn holding(self, at: Ticks, thread: u32) {
        code_table().known().set_last(thread, at, self.0);
        self.record(at, thread, Kind::StackHolding);
    }

    /// The thread has this stack as it releases a lock for which another one waits. The stamp is that of the
    /// release.
    pub fn releasing(self, at: Ticks, thread: u32) {
        code_table().known().set_last(thread, at, self.0);
        self.record(at, thread, Kind::StackReleasing);
    }

    /// The thread has this stack while it waits for the lock. The stamp is that of the wait's beginning.
    pub fn waiting(self, at: Ticks, thread: u32) {
        self.record(at, thread, Kind::StackWaiting);
    }

    fn record(self, at: Ticks, thread: u32, kind: Kind) {
        if is_tracing() {
            record(Event { time: at, thread, kind, argument: self.0 });
        }
    }
}
