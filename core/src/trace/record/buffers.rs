//! The queues of all native threads, and the pool of chunks they consist of.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::queue::{Pool, Queue, Writer};
use crate::fork::{Remade, lock};
use crate::os;

/// Shared between the recording threads and the drain. The child of a fork makes a new one.
pub(super) struct Buffers {
    pub(super) pool: Pool,
    lost: AtomicU64,
    arrived: Mutex<Vec<&'static Queue>>,
    spare: Mutex<Vec<&'static Queue>>,
}

static BUFFERS: Remade<Buffers> = Remade::new();

/// This process's buffers.
pub(super) fn buffers() -> &'static Buffers {
    BUFFERS.get_or_make(|| Buffers {
        pool: Pool::new(),
        lost: AtomicU64::new(0),
        arrived: Mutex::default(),
        spare: Mutex::default(),
    })
}

/// In the child of a fork: the next use makes new buffers.
pub(super) fn forget() {
    BUFFERS.forget();
}

impl Buffers {
    /// Opens a queue for the calling thread.
    pub(super) fn open_queue(&'static self) -> Writer {
        let spare = lock(&self.spare).pop();
        let queue = spare.unwrap_or_else(|| Box::leak(Box::new(Queue::new())));
        queue.open(os::native_thread_id());
        lock(&self.arrived).push(queue);
        Writer::new(&self.pool, queue)
    }

    /// The queues opened since the last call.
    pub(super) fn take_arrived(&self) -> Vec<&'static Queue> {
        std::mem::take(&mut lock(&self.arrived))
    }

    /// Keeps closed, empty queues for later threads.
    pub(super) fn give_back(&self, queues: impl IntoIterator<Item = &'static Queue>) {
        lock(&self.spare).extend(queues);
    }

    /// Counts a record for which there was no memory.
    pub(super) fn lose_one(&self) {
        self.lost.fetch_add(1, Ordering::Relaxed);
    }

    /// The number of records for which there was no memory.
    pub(super) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}
