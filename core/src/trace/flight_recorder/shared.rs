//! What a flight recorder shares with the threads that write dumps or watch.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use crate::fork::lock;
use crate::trace::files;
use crate::trace::record::ring::{Dump, Ring};
use crate::trace::record::session::catch_up;

/// The ring, whether the recorder has stopped, and what it has written by itself.
pub(super) struct Shared {
    pub(super) ring: Ring,
    pid: u32,
    stopped: Mutex<bool>,
    stops: Condvar,
    pub(super) written: AtomicU32,
    pub(super) has_failed: AtomicBool,
}

impl Shared {
    pub(super) fn new(ring: Ring) -> Self {
        Self {
            ring,
            pid: std::process::id(),
            stopped: Mutex::new(false),
            stops: Condvar::new(),
            written: AtomicU32::new(0),
            has_failed: AtomicBool::new(false),
        }
    }

    /// Ends all sleeps, now and later.
    pub(super) fn stop(&self) {
        *lock(&self.stopped) = true;
        self.stops.notify_all();
    }

    pub(super) fn has_stopped(&self) -> bool {
        *lock(&self.stopped)
    }

    /// Sleeps until the next look; false once the recorder has stopped.
    pub(super) fn sleep(&self, time: Duration) -> bool {
        let stopped = lock(&self.stopped);
        let waited = self.stops.wait_timeout_while(stopped, time, |stopped| !*stopped);
        !*waited.unwrap_or_else(std::sync::PoisonError::into_inner).0
    }

    pub(super) fn is_ours(&self) -> bool {
        self.pid == std::process::id()
    }

    /// What is kept of everything recorded so far.
    pub(super) fn last_seconds(&self) -> Dump {
        self.ring.dump(catch_up())
    }

    pub(super) fn dump_beside(&self, path: &Path) -> io::Result<PathBuf> {
        let dump = self.last_seconds();
        let extension = path.extension().and_then(|name| name.to_str()).unwrap_or("offlock");
        files::write_beside(path, extension, |out| dump.write(out))
    }
}
