//! The native data of the class `Unpacker`.

use std::sync::Arc;

use offlock_core::msgpack::Scanner;

use super::byte_queue::{self, ByteQueue, HasQueue};
use super::globals::globals;
use super::key_cache::KeyCache;
use super::options::Options;
use super::registry::Registry;
use crate::cruby::{Data, DataType, Gvl, Handle, Hash, Marker, Natives, Object};

/// The native data, see the module.
#[derive(Default)]
pub(super) struct Unpacker {
    pub(super) bytes: ByteQueue,
    pub(super) registry: Arc<Registry>,
    pub(super) options: Options,
    /// The number of containers around the value that such code reads.
    pub(super) depth: usize,
    /// The `Buffer` that shows the bytes.
    pub(super) buffer: Option<Object>,
    /// The scan of a message that is not complete yet.
    pub(super) scanner: Option<Scanner>,
    /// With the option `key_cache`, the keys built so far.
    pub(super) keys: KeyCache,
    /// The Hash that `registered_types` has returned, so that the next call returns the same Procs.
    pub(super) shown: Option<Object>,
}

impl Data for Unpacker {
    const DATA_TYPE: &'static DataType = {
        static DATA_TYPE: DataType = DataType::of::<Unpacker>(c"Offlock::MessagePack::Unpacker");
        &DATA_TYPE
    };

    fn mark(&self, marker: &Marker) {
        self.bytes.mark(marker);
        self.registry.mark(marker);
        self.buffer.iter().chain(&self.shown).for_each(|object| marker.mark(*object));
        self.keys.mark(marker);
    }

    fn size(&self) -> usize {
        self.bytes.memory() + self.keys.size() + self.registry.size() / Arc::strong_count(&self.registry)
    }
}

impl HasQueue for Handle<Unpacker> {
    #[inline(always)]
    fn queue(self, natives: &Natives) -> &ByteQueue {
        &self.get(natives).bytes
    }

    #[inline(always)]
    fn queue_mut(self, natives: &mut Natives) -> &mut ByteQueue {
        &mut self.get_mut(natives).bytes
    }
}

/// A new unpacker.
pub(super) fn make(
    gvl: &mut Gvl,
    io: Object,
    options: Option<Hash>,
    registry: Arc<Registry>,
) -> Handle<Unpacker> {
    let unpacker = Handle::<Unpacker>::new(gvl, globals().unpacker);
    unpacker.get_mut(&mut gvl.natives).registry = registry;
    configure(gvl, unpacker, io, options);
    unpacker
}

pub(super) fn configure(gvl: &mut Gvl, unpacker: Handle<Unpacker>, io: Object, options: Option<Hash>) {
    byte_queue::set_options(gvl, unpacker, io, options);
    let options = Options::from(&gvl.objects, options);
    let unpacker = unpacker.get_mut(&mut gvl.natives);
    (unpacker.options, unpacker.keys) = (options, KeyCache::default());
}

/// Appends a String to the bytes to unpack.
pub(super) fn feed(gvl: &mut Gvl, unpacker: Handle<Unpacker>, data: Object) {
    let data = gvl.coerce_str(data);
    byte_queue::append_string(gvl, unpacker, data);
}

impl Unpacker {
    /// Returns whether the next message must be scanned before objects are built from it: because it comes
    /// from an IO in pieces, because it was incomplete before, or because building it may run code that must
    /// run only once.
    pub(super) fn must_scan(&self) -> bool {
        !self.bytes.io.is_nil() || self.scanner.is_some() || !self.registry.unpackers.is_empty()
    }
}
