//! Why the command failed.

use std::fmt::Display;
use std::path::Path;

/// Why the command failed: the message and the exit status.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) message: String,
    pub(crate) status: u8,
}

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), status: 1 }
    }

    /// A failure that concerns a file.
    pub(crate) fn with_file(path: &Path, problem: &dyn Display) -> Self {
        Self::new(format!("{}: {problem}", path.display()))
    }
}
