//! Why no strings were made, and which exception that becomes.

use offlock_core::memory::{self, OutOfMemory};
use offlock_core::{Stopped, text};
use pyo3::exceptions::{PyMemoryError, PyOverflowError, PyValueError};
use pyo3::prelude::*;

use crate::cpython::object;
use crate::error::{IntoException, WithMessage, cancelled};

/// Why no strings were made.
pub(crate) enum StringsError {
    Stopped,
    /// The system has no memory, or no addresses.
    NoMemory,
    /// These bytes are not UTF-8.
    NotUtf8 {
        bytes: Box<[u8]>,
        /// The index among many strings.
        note: Option<String>,
    },
    /// Something else is wrong with the input.
    Value(String),
    /// A piece is longer than kind "view" can have.
    TooLong(String),
}

impl StringsError {
    /// An error in a text that could as well have been decoded as a whole.
    pub(super) fn whole(text: &[u8], error: text::Error) -> Self {
        match error {
            text::Error::NotUtf8 { .. } => match memory::copied(text) {
                Ok(bytes) => Self::NotUtf8 { bytes: bytes.into_boxed_slice(), note: None },
                Err(none) => none.into(),
            },
            error => error.into(),
        }
    }

    /// An error in pieces that had to be decoded one by one; `note` names the piece, given its number and
    /// start.
    pub(super) fn piece(error: text::Error, note: impl FnOnce(usize, usize) -> String) -> Self {
        match error {
            text::Error::NotUtf8 { piece, start, bytes, .. } => {
                Self::NotUtf8 { bytes, note: Some(note(piece, start)) }
            }
            error => error.into(),
        }
    }
}

impl From<Stopped> for StringsError {
    fn from(_: Stopped) -> Self {
        Self::Stopped
    }
}

impl From<OutOfMemory> for StringsError {
    fn from(_: OutOfMemory) -> Self {
        Self::NoMemory
    }
}

impl From<text::Error> for StringsError {
    fn from(error: text::Error) -> Self {
        match error {
            text::Error::Stopped => Self::Stopped,
            text::Error::OutOfMemory => Self::NoMemory,
            text::Error::TooLong { .. } => Self::TooLong(error.to_string()),
            error => Self::Value(error.to_string()),
        }
    }
}

impl IntoException for StringsError {
    fn into_exception(self, py: Python<'_>) -> PyErr {
        match self {
            Self::Stopped => cancelled(py),
            Self::NoMemory => PyMemoryError::with_message("no memory for the strings"),
            Self::NotUtf8 { bytes, note } => decode_error(py, &bytes, note),
            Self::Value(message) => PyValueError::with_message(message),
            Self::TooLong(message) => PyOverflowError::with_message(message),
        }
    }
}

/// The error of `bytes.decode`, with CPython's own message.
fn decode_error(py: Python<'_>, bytes: &[u8], note: Option<String>) -> PyErr {
    let decoded = object::utf8(py, bytes, None);
    let Err(error) = decoded else { return PyValueError::with_message("the text is not UTF-8") };
    if let Some(note) = note {
        // The note is optional; the error matters more than a failure to add the note.
        let _ = error.add_note(py, note);
    }
    error
}
