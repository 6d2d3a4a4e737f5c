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

/// A socket that forked children close. Drop it before the socket.
pub(super) struct Inherited(&'static AtomicI32);

impl Inherited {
    /// `None` if there are too many.
    pub(super) fn new(socket: RawFd) -> Option<Self> {
        static HANDLER: Once = Once::new();
        HANDLER.call_once(|| fork::after_fork_in_child(close_all));
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
