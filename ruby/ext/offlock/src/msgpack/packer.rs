//! The native data of the class `Packer`.

use std::sync::Arc;

use super::byte_queue::{self, ByteQueue, HasQueue};
use super::globals::globals;
use super::registry::{PackEntry, Registry};
use crate::cruby::{Data, DataType, Gvl, Handle, Hash, Marker, Natives, Object};

/// The native data, see the module.
#[derive(Default)]
pub(super) struct Packer {
    pub(super) bytes: ByteQueue,
    pub(super) registry: Arc<Registry>,
    /// Whether to write Strings in the format's first version.
    pub(super) compatible: bool,
    /// The `Buffer` that shows the bytes.
    pub(super) buffer: Option<Object>,
    /// The output before the payload of a recursive extension, one for each that is being written.
    outer: Vec<ByteQueue>,
    /// The entries that were found for classes that are not registered themselves.
    pub(super) found: Vec<(Object, Option<PackEntry>)>,
}

impl Data for Packer {
    const DATA_TYPE: &'static DataType = {
        static DATA_TYPE: DataType = DataType::of::<Packer>(c"Offlock::MessagePack::Packer");
        &DATA_TYPE
    };

    fn mark(&self, marker: &Marker) {
        self.bytes.mark(marker);
        self.registry.mark(marker);
        self.buffer.iter().for_each(|buffer| marker.mark(*buffer));
        self.outer.iter().for_each(|bytes| bytes.mark(marker));
        self.found.iter().for_each(|&(class, _)| marker.mark(class));
    }

    fn size(&self) -> usize {
        self.bytes.memory() + self.registry.size() / Arc::strong_count(&self.registry)
    }
}

impl HasQueue for Handle<Packer> {
    #[inline(always)]
    fn queue(self, natives: &Natives) -> &ByteQueue {
        &self.get(natives).bytes
    }

    #[inline(always)]
    fn queue_mut(self, natives: &mut Natives) -> &mut ByteQueue {
        &mut self.get_mut(natives).bytes
    }
}

/// The maximum number of classes whose entry a packer caches.
const REMEMBERED: usize = 64;

/// A new packer.
pub(super) fn make(
    gvl: &mut Gvl,
    io: Object,
    options: Option<Hash>,
    registry: Arc<Registry>,
) -> Handle<Packer> {
    let packer = Handle::<Packer>::new(gvl, globals().packer);
    packer.get_mut(&mut gvl.natives).registry = registry;
    configure(gvl, packer, io, options);
    packer
}

pub(super) fn configure(gvl: &mut Gvl, packer: Handle<Packer>, io: Object, options: Option<Hash>) {
    byte_queue::set_options(gvl, packer, io, options);
    packer.get_mut(&mut gvl.natives).compatible =
        gvl.objects.option(options, c"compatibility_mode").is_true();
}

/// The entry with which an object is packed.
pub(super) fn entry_for(gvl: &mut Gvl, packer: Handle<Packer>, object: Object) -> Option<PackEntry> {
    let packer = packer.get_mut(&mut gvl.natives);
    if packer.registry.packers.is_empty() {
        return None;
    }
    let class = gvl.objects.class_of(object);
    if let Some(&(_, entry)) = packer.found.iter().find(|(known, _)| *known == class) {
        return entry;
    }
    let entry = packer.registry.packer(&gvl.objects, object);
    if packer.found.len() < REMEMBERED {
        packer.found.push((class, entry));
    }
    entry
}

impl Packer {
    /// Begins the payload of a recursive extension and sets the earlier output aside. Returns how many
    /// outputs were set aside before.
    pub(super) fn begin_payload(&mut self) -> usize {
        let outer = std::mem::take(&mut self.bytes);
        self.outer.push(outer);
        self.outer.len() - 1
    }

    /// Ends the payload of a recursive extension, and any payloads inside it that an exception left open.
    pub(super) fn end_payload(&mut self, outer: usize) {
        self.outer.truncate(outer + 1);
        if let Some(bytes) = self.outer.pop() {
            self.bytes = bytes;
        }
    }

    /// Removes payloads that an exception left open.
    pub(super) fn recover(&mut self) {
        if !self.outer.is_empty() {
            self.end_payload(0);
        }
    }
}
