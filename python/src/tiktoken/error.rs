//! The reasons why a text was not encoded.

use offlock_core::tokens;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::cpython::object;
use crate::error::{IntoException, WithMessage};

/// The reason why a text was not encoded.
pub(crate) enum EncodeError {
    /// An error of the core.
    Core(tokens::Error),
    /// The text contains a disallowed special token.
    Disallowed {
        /// The token's text.
        token: String,
        /// The position of the token in the text, in characters.
        at: usize,
        /// The index of the text among many.
        index: Option<usize>,
    },
}

impl From<tokens::Error> for EncodeError {
    fn from(error: tokens::Error) -> Self {
        Self::Core(error)
    }
}

impl IntoException for EncodeError {
    fn into_exception(self, py: Python<'_>) -> PyErr {
        match self {
            Self::Core(error) => error.into_exception(py),
            Self::Disallowed { token, at, index } => {
                disallowed(py, &token, at, index).unwrap_or_else(|error| error)
            }
        }
    }
}

fn disallowed(py: Python<'_>, token: &str, at: usize, index: Option<usize>) -> PyResult<PyErr> {
    let token = object::text(py, token)?.repr()?;
    let place = match index {
        Some(index) => format!("at index {at} of text {index}"),
        None => format!("at index {at}"),
    };
    Ok(PyValueError::with_message(format!(
        "Encountered text corresponding to disallowed special token {token} ({place}).\n\
         To have it encoded as a special token, pass it to `allowed_special`, e.g. `allowed_special={{{token}, ...}}`.\n\
         To have it encoded as normal text, leave it out of `disallowed_special`, e.g. \
         `disallowed_special=(enc.special_tokens_set - {{{token}}})`.\n\
         To have all special tokens encoded as normal text, pass `disallowed_special=()`.\n"
    )))
}
