//! The functions and stacks of a recording, by the numbers in its events.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::trace::format::code::{CodeDefinition, LEFT_OUT, take_definition};
use crate::trace::format::wire::Bytes;

/// A function of the program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordedFunction {
    /// Its qualified name.
    pub name: String,
    /// The number of its file in [`Code::files`], 0 if it has none.
    pub file: u32,
    /// Its first line, 0 if that is unknown.
    pub line: u32,
}

/// A function in execution, and its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordedFrame {
    /// The number of the caller's frame, which is less than the frame's own; 0 if there is none.
    pub caller: u32,
    /// The number of the function; 0 if this stands for frames that were left out.
    pub function: u32,
    /// The line that it executes, 0 if that is unknown; or the number of frames that were left out.
    pub line: u32,
}

/// What the stacks of a recording consist of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Code {
    /// The paths of files by number.
    pub files: BTreeMap<u32, String>,
    /// The functions by number.
    pub functions: BTreeMap<u32, RecordedFunction>,
    /// The frames by number.
    pub frames: BTreeMap<u32, RecordedFrame>,
}

/// A frame of a stack in words.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FrameText {
    /// The function's qualified name.
    pub function: String,
    /// The path of its file, empty if it has none.
    pub file: String,
    /// The line that it executes, 0 if that is unknown.
    pub line: u32,
}

impl fmt::Display for FrameText {
    /// As in `App.parse (app.py:41)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { function, file, line } = self;
        match (file.is_empty(), line) {
            (true, _) => f.write_str(function),
            (false, 0) => write!(f, "{function} ({file})"),
            (false, line) => write!(f, "{function} ({file}:{line})"),
        }
    }
}

impl Code {
    /// The function that stands for the asyncio task of a stack, if there is one: the only functions of Python without a
    /// file. What Ruby has without a file lies below code with one.
    pub(super) fn task(&self, stack: u32) -> Option<u32> {
        let stands_for_task = |frame: &RecordedFrame| {
            let function = self.functions.get(&frame.function);
            frame.line == 0
                && function.is_some_and(|function| function.file == 0 && function.name.ends_with(')'))
        };
        self.stack(stack).find(stands_for_task).map(|frame| frame.function)
    }

    /// For each function that has the name and the file of another one, one of these: code that is evaluated again and again
    /// makes a new function each time.
    pub(super) fn same_functions(&self) -> HashMap<u32, u32> {
        let mut first = HashMap::new();
        let same = |(id, function): (&u32, &RecordedFunction)| {
            let one = *first.entry((function.name.clone(), function.file)).or_insert(*id);
            (one != *id).then_some((*id, one))
        };
        self.functions.iter().filter_map(same).collect()
    }

    /// The stacks with a function whose name contains one of some texts.
    pub fn stacks_with(&self, parts: &[String]) -> HashSet<u32> {
        let is_named = |function: u32| {
            let name = self.functions.get(&function).map(|function| function.name.as_str());
            name.is_some_and(|name| parts.iter().any(|part| name.contains(part.as_str())))
        };
        let mut found = HashSet::new();
        // Callers have lesser numbers.
        for (id, frame) in &self.frames {
            if found.contains(&frame.caller) || is_named(frame.function) {
                found.insert(*id);
            }
        }
        found
    }

    /// The frames of a stack, innermost first.
    pub fn stack(&self, stack: u32) -> impl Iterator<Item = RecordedFrame> + '_ {
        self.numbered_stack(stack).map(|(_, frame)| frame)
    }

    /// The frames of a stack with their numbers, innermost first.
    pub(in crate::trace) fn numbered_stack(
        &self,
        stack: u32,
    ) -> impl Iterator<Item = (u32, RecordedFrame)> + '_ {
        let frame = |id: u32| self.frames.get(&id).map(|frame| (id, *frame));
        // Callers have lesser numbers, so this ends.
        std::iter::successors(frame(stack), move |(_, inner)| frame(inner.caller))
    }

    /// What a frame is called, and where it is.
    pub fn text(&self, frame: RecordedFrame) -> FrameText {
        if frame.function == LEFT_OUT {
            let function = format!("… {} frames left out", frame.line);
            return FrameText { function, file: String::new(), line: 0 };
        }
        let generic = || RecordedFunction { name: format!("function {}", frame.function), file: 0, line: 0 };
        let function = self.functions.get(&frame.function).cloned().unwrap_or_else(generic);
        let file = self.files.get(&function.file).cloned().unwrap_or_default();
        FrameText { function: function.name, file, line: frame.line }
    }

    /// The content of a `CODE` frame; what is invalid is left out.
    pub(in crate::trace) fn of_body(body: &[u8]) -> Self {
        let mut code = Self::default();
        let _ = code.take(&mut Bytes(body));
        code
    }

    pub(super) fn take(&mut self, body: &mut Bytes<'_>) -> Option<()> {
        while !body.0.is_empty() {
            match take_definition(body)? {
                CodeDefinition::File { id, path } => drop(self.files.insert(id, path)),
                CodeDefinition::Function { id, file, line, name } => {
                    self.functions.insert(id, RecordedFunction { name, file, line });
                }
                CodeDefinition::Frame { id, caller, function, line } => {
                    self.frames.insert(id, RecordedFrame { caller, function, line });
                }
            }
        }
        Some(())
    }

    pub(super) fn definitions(&self) -> Vec<CodeDefinition> {
        let files = self.files.iter().map(|(id, path)| CodeDefinition::File { id: *id, path: path.clone() });
        let functions = self.functions.iter().map(|(id, function)| {
            let RecordedFunction { name, file, line } = function.clone();
            CodeDefinition::Function { id: *id, file, line, name }
        });
        let frames = self.frames.iter().map(|(id, frame)| {
            let RecordedFrame { caller, function, line } = *frame;
            CodeDefinition::Frame { id: *id, caller, function, line }
        });
        files.chain(functions).chain(frames).collect()
    }
}
