//! Whether the environment lets the interpreter's calls be redirected.

use crate::cpython::assumptions::{Assumption, VARIABLE};

/// The environment variable that requests samples even where the lock could be watched: `samples`.
const FEED_VARIABLE: &str = "OFFLOCK_FEED";

/// The error says why not.
pub(super) fn given() -> Result<(), String> {
    match std::env::var(FEED_VARIABLE) {
        Ok(feed) if feed == "samples" => Err(format!("{FEED_VARIABLE} asks for samples")),
        _ if !Assumption::ImportSlots.holds() => {
            Err(format!("{VARIABLE}=0 forbids redirecting the interpreter's calls"))
        }
        _ => Ok(()),
    }
}
