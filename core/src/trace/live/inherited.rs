//! Sockets that a forked child inherits and closes: while it has them open, a client cannot see that its parent is gone.

use std::os::fd::RawFd;
use std::sync::Once;
use std::sync::atomic::{AtomicI32, Ordering};

use crate::{fork, os};

/// The most open sockets: that on which the process listens, and one for each connection.
pub(super) const MOST: usize = 9;

const NONE: RawFd = -1;

/// The open sockets. Without a lock, because a forked child reads them.
static OPEN: [AtomicI32; MOST] = [const { AtomicI32::new(NONE) }; MOST];

/// Registers the fork handler. Call it in the thread that starts to listen, as that does not fork meanwhile: if another thread
/// were in this function at a fork, the child would wait for it for ever as soon as it listens itself.
pub(super) fn watch_forks() {
    static HANDLER: Once = Once::new();
    HANDLER.call_once(|| fork::after_fork_in_child(close_all));
}

/// A socket that forked children close. Drop it before the socket.
pub(super) struct Inherited(&'static AtomicI32);

impl Inherited {
    /// `None` if there are too many.
    pub(super) fn new(socket: RawFd) -> Option<Self> {
        let takes = |place: &&AtomicI32| {
            place.compare_exchange(NONE, socket, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        };
        OPEN.iter().find(takes).map(Self)
    }
}

impl Drop for Inherited {
    fn drop(&mut self) {
        self.0.store(NONE, Ordering::Relaxed);
    }
}

extern "C" fn close_all() {
    for place in &OPEN {
        let socket = place.swap(NONE, Ordering::Relaxed);
        if socket != NONE {
            os::close(socket);
        }
    }
}
