//! What a thread was doing when the first frame of a ring begins.

use crate::trace::format::definition::Stand;
use crate::trace::format::event::{Event, Kind, Reason, unpack_release};

/// What a thread was doing when the first frame begins.
#[derive(Default)]
pub(super) struct Standing {
    pub(super) native: u32,
    pub(super) stand: Stand,
    /// The beginnings of collections, operations and marks that had not ended.
    pub(super) open: Vec<Event>,
}

impl Standing {
    pub(super) fn step(&mut self, native: u32, event: Event) {
        self.native = native;
        match event.kind {
            Kind::Wants => self.stand = Stand::Wants,
            Kind::Acquired => self.stand = Stand::Holds,
            Kind::Released if unpack_release(event.argument).1 == Reason::Yields => {
                self.stand = Stand::Wants;
            }
            Kind::Released | Kind::ThreadStart => self.stand = Stand::Off,
            Kind::GcEnter | Kind::RegionBegin | Kind::MarkBegin => self.open.push(event),
            Kind::GcExit => self.close(Kind::GcEnter),
            Kind::RegionEnd => self.close(Kind::RegionBegin),
            Kind::MarkEnd => self.close(Kind::MarkBegin),
            _ => {}
        }
    }

    fn close(&mut self, begin: Kind) {
        if let Some(innermost) = self.open.iter().rposition(|event| event.kind == begin) {
            self.open.remove(innermost);
        }
    }
}
