//! The exception of each failure.

use magnus::{Error, Ruby};
use offlock_core::Stopped;
use offlock_core::zstd::{self, ErrorKind};

use crate::error::{IntoException, exception, no_memory};

impl IntoException for zstd::Error {
    fn into_exception(self, ruby: &Ruby) -> Error {
        match self.kind {
            ErrorKind::Stopped => Stopped.into_exception(ruby),
            ErrorKind::OutOfMemory => no_memory(ruby),
            ErrorKind::Limit => exception(ruby, "Offlock::Zstd::OutputLimitError", self.to_string()),
            _ => exception(ruby, "Offlock::Zstd::Error", self.to_string()),
        }
    }
}

/// Whether work that ended so can be continued.
pub(super) fn is_stopped<T>(ended: &Result<T, zstd::Error>) -> bool {
    ended.as_ref().is_err_and(|error| error.kind == ErrorKind::Stopped)
}
