//! The program's code in a trace: files, functions and stacks, each written once.
//!
//! A stack is a frame and the stack of its caller, so that stacks with common callers share them: the frames
//! of a trace are the nodes of a tree, and an event names a stack by the number of its innermost frame.
//!
//! ```text
//! main:3 ─ serve:10 ─┬─ parse:41      stack 3: main, serve, parse
//!   1         2      │     3
//!                    └─ store:77      stack 4: main, serve, store
//!                          4
//! ```
//!
//! A `CODE` frame of the file holds definitions. Each is a tag and numbers, texts last:
//!
//! | tag | content |
//! |---|---|
//! | 1 file | number; path |
//! | 2 function | number; number of its file, 0 if it has none; its first line, 0 if unknown; qualified name |
//! | 3 frame | number; number of the caller's frame, 0 if there is none, otherwise less than its own; number of the function; the line that it executes, 0 if unknown |
//!
//! A frame of function 0 stands for outer frames that were left out; its line is their number.

use super::wire::{Bytes, put_number, put_text};

/// A function of the program, by its number in the records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Function(pub(in crate::trace) u32);

/// A stack, by the number of its innermost frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Stack(pub(in crate::trace) u32);

/// The function that stands for frames that were left out.
pub(in crate::trace) const LEFT_OUT: u32 = 0;

/// What a number in records stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::trace) enum CodeDefinition {
    File { id: u32, path: String },
    Function { id: u32, file: u32, line: u32, name: String },
    Frame { id: u32, caller: u32, function: u32, line: u32 },
}

const FILE: u8 = 1;
const FUNCTION: u8 = 2;
const FRAME: u8 = 3;

/// The body of a `CODE` frame.
pub(in crate::trace) fn definitions(all: &[CodeDefinition]) -> Vec<u8> {
    let mut body = Vec::new();
    for definition in all {
        let (tag, numbers, text): (_, &[u32], _) = match definition {
            CodeDefinition::File { id, path } => (FILE, &[*id], Some(path)),
            CodeDefinition::Function { id, file, line, name } => (FUNCTION, &[*id, *file, *line], Some(name)),
            CodeDefinition::Frame { id, caller, function, line } => {
                (FRAME, &[*id, *caller, *function, *line], None)
            }
        };
        body.push(tag);
        numbers.iter().for_each(|number| put_number(&mut body, u64::from(*number)));
        text.into_iter().for_each(|text| put_text(&mut body, text));
    }
    body
}

/// Reads one definition from the body of a `CODE` frame; `None` if it is invalid.
pub(in crate::trace) fn take_definition(body: &mut Bytes<'_>) -> Option<CodeDefinition> {
    let (tag, id) = (body.byte()?, body.small()?);
    Some(match tag {
        FILE => CodeDefinition::File { id, path: body.text()?.to_owned() },
        FUNCTION => {
            let (file, line) = (body.small()?, body.small()?);
            CodeDefinition::Function { id, file, line, name: body.text()?.to_owned() }
        }
        FRAME => {
            let caller = body.small().filter(|caller| *caller < id)?;
            CodeDefinition::Frame { id, caller, function: body.small()?, line: body.small()? }
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &[u8]) -> (Vec<CodeDefinition>, usize) {
        let mut bytes = Bytes(body);
        let all = std::iter::from_fn(|| take_definition(&mut bytes)).collect();
        (all, bytes.0.len())
    }

    #[test]
    fn definitions_come_back() {
        let all = [
            CodeDefinition::File { id: 1, path: "/srv/äpp.py".into() },
            CodeDefinition::Function { id: 300, file: 1, line: 12, name: "App.<lambda>".into() },
            CodeDefinition::Frame { id: 1, caller: 0, function: LEFT_OUT, line: 900 },
            CodeDefinition::Frame { id: u32::MAX, caller: 1, function: 300, line: 14 },
        ];
        let body = definitions(&all);
        assert_eq!(read(&body), (all.to_vec(), 0));
        for cut in 0..body.len() {
            assert!(read(&body[..cut]).0.len() < all.len());
        }
    }

    #[test]
    fn a_frame_that_calls_itself_is_refused() {
        for caller in [7, 8] {
            let frame = CodeDefinition::Frame { id: 7, caller, function: 1, line: 1 };
            assert_eq!(read(&definitions(&[frame])).0, []);
        }
    }
}
