//! The errors of operations on tokens as Ruby's exceptions.

use magnus::{Error, Ruby};
use offlock_core::tokens::{self, ErrorKind};

use crate::borrow::TextError;
use crate::error::{IntoException, exception, no_memory};

/// The errors of the core and of Ruby.
pub(crate) enum TokensError {
    Text(TextError),
    Decoded(TextError),
    Tokens(tokens::Error),
}

impl From<TextError> for TokensError {
    fn from(error: TextError) -> Self {
        Self::Text(error)
    }
}

impl From<tokens::Error> for TokensError {
    fn from(error: tokens::Error) -> Self {
        Self::Tokens(error)
    }
}

impl IntoException for TokensError {
    fn into_exception(self, ruby: &Ruby) -> Error {
        match self {
            Self::Text(error) => error.into_exception(ruby),
            Self::Decoded(TextError::Invalid { offset, byte, .. }) => {
                unicode_error(ruby, format!("the tokens are no valid UTF-8: 0x{byte:02X} at byte {offset}"))
            }
            Self::Decoded(TextError::Stopped) => TextError::Stopped.into_exception(ruby),
            Self::Tokens(error) => match error.kind {
                ErrorKind::OutOfMemory => no_memory(ruby),
                ErrorKind::InvalidUtf8 { .. } => {
                    Error::new(ruby.exception_encoding_error(), error.to_string())
                }
                ErrorKind::UnknownToken { .. } => unicode_error(ruby, error.to_string()),
                ErrorKind::BadPattern { .. }
                | ErrorKind::BadVocabulary { .. }
                | ErrorKind::CannotStream { .. }
                | ErrorKind::LimitTooSmall { .. }
                | ErrorKind::Unsupported { .. } => Error::new(ruby.exception_arg_error(), error.to_string()),
                _ => Error::new(ruby.exception_runtime_error(), error.to_string()),
            },
        }
    }
}

fn unicode_error(ruby: &Ruby, message: String) -> Error {
    exception(ruby, "Offlock::Tiktoken::UnicodeError", message)
}
