//! Where CPython keeps what a stack consists of: the frames of a thread, their code, and its names and lines.
//!
//! ```text
//! PyThreadState ─▶ frame ─▶ frame ─▶ …                     a function in execution, and its caller
//!                    │ instruction, owner
//!                    ▼
//!                  code object ─▶ qualified name, file name, first line, table of lines
//! ```
//!
//! The offsets differ between versions. `frames.rs` relies on them only after they have given the same stack
//! as `sys._getframe`.

use std::sync::atomic::{AtomicU32, Ordering};

/// The offsets of one version, in bytes.
pub(super) struct FrameLayout {
    /// In the thread state: the address of the innermost frame, or of a struct that holds it.
    pub(super) thread_frame: usize,
    /// In that struct, if there is one: the address of the innermost frame.
    pub(super) indirect: Option<usize>,
    /// In a frame: its code object, the address of its caller, the address of its instruction, and a byte
    /// that says what owns it.
    pub(super) code: usize,
    pub(super) previous: usize,
    pub(super) instruction: usize,
    pub(super) owner: usize,
    /// In a code object: its first line, and the array of its instructions.
    pub(super) first_line: usize,
    pub(super) instructions: usize,
}

/// In a code object: its flags (`co_flags`).
pub(super) const FLAGS: usize = 48;

/// In a code object: the addresses of the file's name, of the qualified name, and of the table of lines.
pub(super) const FILE_NAME: usize = 112;
pub(super) const QUALIFIED_NAME: usize = 128;
pub(super) const LINE_TABLE: usize = 136;

/// In a code object from 3.12 on: its version, which no other code object of the interpreter has had; 0 if there are
/// no more versions.
pub(super) const VERSION: Option<usize> = if cfg!(Py_3_12) { Some(92) } else { None };

/// In an object: its type, and in one of variable size, the number of its items.
pub(super) const TYPE: usize = 8;
pub(super) const SIZE: usize = 16;

/// In a `bytes`: its first byte.
pub(super) const BYTES_DATA: usize = 32;

/// In a `str`: its length, its state, and behind the header its characters.
pub(super) const STR_LENGTH: usize = 16;
pub(super) const STR_STATE: usize = 32;
pub(super) const STR_DATA: StrData =
    if cfg!(Py_3_12) { StrData { ascii: 40, other: 56 } } else { StrData { ascii: 48, other: 72 } };

pub(super) struct StrData {
    pub(super) ascii: usize,
    pub(super) other: usize,
}

/// In a code object: the offset before `instructions` of the number of the first instruction at which the
/// frame is complete.
pub(super) const FIRST_TRACEABLE_BEFORE: usize = 16;

/// Whether a frame can be one without a caller. From 3.12 on, the interpreter has a frame of its own wherever
/// it begins to execute Python code; before, a flag of the frame says so. Frames that are left by an
/// exception or by a generator lose their callers, too: before 3.12, that of a generator which C code resumes has the
/// flag as well, so a generator's frame without a caller is taken for one that was left. (A thread can begin with
/// one, as with `_thread.start_new_thread(generator.__next__, ())`; there its stack is not read.)
pub(super) fn is_outermost(frame: &[u8]) -> bool {
    let owner = frame[LAYOUT.owner];
    if cfg!(Py_3_12) { owner >= OWNER_INTERPRETER } else { frame[IS_ENTRY] != 0 && owner != OWNER_GENERATOR }
}

/// In a frame of 3.11: whether the interpreter began to execute Python code with it.
const IS_ENTRY: usize = 68;

/// Owners from this one on are the interpreter itself.
pub(super) const OWNER_INTERPRETER: u8 = 3;
/// A generator owns the frame, which is complete from the start.
pub(super) const OWNER_GENERATOR: u8 = 1;

#[cfg(not(Py_3_12))]
pub(super) const LAYOUT: FrameLayout = FrameLayout {
    thread_frame: 56,
    indirect: Some(8),
    code: 32,
    previous: 48,
    instruction: 56,
    owner: 69,
    first_line: 72,
    instructions: 184,
};

#[cfg(all(Py_3_12, not(Py_3_13)))]
pub(super) const LAYOUT: FrameLayout = FrameLayout {
    thread_frame: 56,
    indirect: Some(0),
    code: 0,
    previous: 8,
    instruction: 56,
    owner: 70,
    first_line: 68,
    instructions: 192,
};

#[cfg(all(Py_3_13, not(Py_3_14)))]
pub(super) const LAYOUT: FrameLayout = FrameLayout {
    thread_frame: 72,
    indirect: None,
    code: 0,
    previous: 8,
    instruction: 56,
    owner: 70,
    first_line: 68,
    instructions: 200,
};

#[cfg(Py_3_14)]
pub(super) const LAYOUT: FrameLayout = FrameLayout {
    thread_frame: 72,
    indirect: None,
    code: 0,
    previous: 8,
    instruction: 56,
    owner: 74,
    first_line: 68,
    instructions: 208,
};

/// Where the form begins in a `str`'s state, in bits: behind the field that says whether it is interned, whose
/// size differs between releases of 3.14.
static STR_FORM: AtomicU32 = AtomicU32::new(0);

/// The form of a `str` with one byte for each character, which all are ASCII and follow the header.
const ASCII_FORM: u32 = 0b11001;

/// Learns where the form is from the state of a new `str` that has [`ASCII_FORM`], and is not interned. False
/// if it cannot be there.
pub(super) fn learn_str_form(state: u32) -> bool {
    let at = state.trailing_zeros();
    STR_FORM.store(at, Ordering::Relaxed);
    at < 24 && state >> at & 0b11111 == ASCII_FORM
}

/// In a `str`'s state: how many bytes a character takes, whether the characters follow the header, and
/// whether they are all ASCII.
pub(super) fn str_form(state: u32) -> (u32, bool, bool) {
    let form = state >> STR_FORM.load(Ordering::Relaxed);
    (form & 7, form >> 3 & 1 == 1, form >> 4 & 1 == 1)
}
