//! A native thread's end of its queue: packs an event into a record and appends it.

use std::cell::Cell;

use super::buffers::buffers;
use super::mode::is_tracing;
use super::queue::Writer;
use super::usage;
use crate::clock::{self, Ticks};
use crate::trace::format::event::{Event, Kind};

/// A native thread's own state. It has no destructor, so that accessing it is a single load.
struct Local {
    writer: Cell<Option<Writer>>,
    lost: Cell<u32>,
}

/// Closes the native thread's queue when the thread ends.
struct Closer;

thread_local! {
    static LOCAL: Local = const { Local { writer: Cell::new(None), lost: Cell::new(0) } };
    static CLOSER: Closer = const { Closer };
}

impl Drop for Closer {
    fn drop(&mut self) {
        LOCAL.with(|local| {
            if let Some(writer) = local.writer.take() {
                if is_tracing() {
                    writer.push(usage::own(clock::now()).pack());
                }
                writer.close();
            }
        });
    }
}

/// Adds an event to the calling thread's queue.
#[inline]
pub(super) fn record(event: Event) {
    LOCAL.with(|local| {
        let record = event.pack();
        if !local.writer.get().is_some_and(|writer| writer.push(record)) {
            local.record_slowly(event.time, record);
        }
    });
}

/// In the child of a fork: the thread's queue is the parent's.
pub(super) fn forget() {
    let _ = LOCAL.try_with(|local| {
        local.writer.set(None);
        local.lost.set(0);
    });
}

impl Local {
    /// Called for a native thread's first event and for every 256th.
    #[cold]
    fn record_slowly(&self, time: Ticks, record: [u64; 2]) {
        let is_first = self.writer.get().is_none();
        if !self.extend() {
            self.lost.set(self.lost.get().saturating_add(1));
            buffers().lose_one();
            return;
        }
        let Some(writer) = self.writer.get() else { return };
        if is_first {
            writer.push(usage::own(time).pack());
        }
        let lost = self.lost.take();
        if lost > 0 {
            writer.push(Event { time, thread: 0, kind: Kind::Lost, argument: lost }.pack());
        }
        writer.push(record);
        if CLOSER.try_with(|_| ()).is_err() {
            // The thread is ending: other destructors of its own record events, and nothing would close the queue later.
            writer.close();
            self.writer.set(None);
        }
    }

    /// Gets a new chunk; false if there is none.
    fn extend(&self) -> bool {
        let mut writer = self.writer.get().unwrap_or_else(|| buffers().open_queue());
        let extended = writer.extend();
        self.writer.set(Some(writer));
        extended
    }
}
