//! A frame of a trace with what a ring asks of it.

use std::sync::Arc;

use crate::trace::format::event::{Event, Kind};
use crate::trace::format::wire::{self, Bytes, FRAME_HEADER};

/// A frame with events, or one that says that all events were written.
pub(super) struct Frame {
    pub(super) bytes: Arc<[u8]>,
    pub(super) earliest: u64,
    pub(super) latest: u64,
    pub(super) events: u64,
    pub(super) lost: u64,
}

/// The body of a frame, without its header.
pub(super) fn body(frame: &[u8]) -> &[u8] {
    frame.get(FRAME_HEADER..).unwrap_or_default()
}

impl Frame {
    pub(super) fn of_events(bytes: &[u8], mut each: impl FnMut(Event)) -> Self {
        let (mut earliest, mut latest, mut events, mut lost) = (u64::MAX, 0, 0, 0);
        wire::take_events(body(bytes), |_, event| {
            earliest = earliest.min(event.time);
            latest = latest.max(event.time);
            events += u64::from(event.kind.is_event());
            if event.kind == Kind::Lost {
                lost += u64::from(event.argument);
            }
            each(event);
        });
        Self { bytes: bytes.into(), earliest, latest, events, lost }
    }

    pub(super) fn of_flush(bytes: &[u8]) -> Self {
        let time = Bytes(body(bytes)).number().unwrap_or_default();
        Self { bytes: bytes.into(), earliest: time, latest: time, events: 0, lost: 0 }
    }
}
