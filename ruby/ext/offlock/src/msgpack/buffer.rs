//! The class `Buffer`.

use super::byte_queue::{self, ByteQueue, HasQueue, append_string, io_and_options};
use super::globals::globals;
use super::packer::Packer;
use super::unpacker::Unpacker;
use crate::cruby::{Class, Data, DataType, Gvl, Handle, Marker, Natives, Object, methods};

/// The native data of the class `Buffer`.
#[derive(Default)]
pub(super) struct Buffer {
    own: ByteQueue,
    /// The object whose bytes this one shows, if they are not its own.
    owner: Option<Owner>,
}

/// The object whose bytes a `Buffer` shows.
#[derive(Clone, Copy)]
pub(super) enum Owner {
    Packer(Handle<Packer>),
    Unpacker(Handle<Unpacker>),
}

impl Data for Buffer {
    const DATA_TYPE: &'static DataType = {
        static DATA_TYPE: DataType = DataType::of::<Buffer>(c"Offlock::MessagePack::Buffer");
        &DATA_TYPE
    };

    fn mark(&self, marker: &Marker) {
        self.own.mark(marker);
        match self.owner {
            Some(Owner::Packer(packer)) => marker.mark(packer.object()),
            Some(Owner::Unpacker(unpacker)) => marker.mark(unpacker.object()),
            None => {}
        }
    }

    fn size(&self) -> usize {
        self.own.memory()
    }
}

impl HasQueue for Handle<Buffer> {
    fn queue(self, natives: &Natives) -> &ByteQueue {
        match self.get(natives).owner {
            Some(Owner::Packer(packer)) => packer.queue(natives),
            Some(Owner::Unpacker(unpacker)) => unpacker.queue(natives),
            None => &self.get(natives).own,
        }
    }

    fn queue_mut(self, natives: &mut Natives) -> &mut ByteQueue {
        match self.get(natives).owner {
            Some(Owner::Packer(packer)) => packer.queue_mut(natives),
            Some(Owner::Unpacker(unpacker)) => unpacker.queue_mut(natives),
            None => &mut self.get_mut(natives).own,
        }
    }
}

/// A `Buffer` that shows the bytes of a packer or unpacker.
pub(super) fn view_of(gvl: &mut Gvl, owner: Owner) -> Object {
    let buffer = Handle::<Buffer>::new(gvl, globals().buffer);
    buffer.get_mut(&mut gvl.natives).owner = Some(owner);
    buffer.object()
}

fn of(this: Object) -> Handle<Buffer> {
    Handle::of(this)
}

methods! {
    fn initialize(gvl, this, ..arguments) {
        let (io, options) = io_and_options(gvl, arguments);
        byte_queue::set_options(gvl, of(this), io, options);
        this
    }

    fn clear(gvl, this) {
        of(this).queue_mut(&mut gvl.natives).clear();
        Object::NIL
    }

    fn size(gvl, this) {
        gvl.int(of(this).queue(&gvl.natives).rest().len() as i64)
    }

    fn write(gvl, this, string) {
        let string = gvl.coerce_str(string);
        append_string(gvl, of(this), string);
        gvl.int(gvl.objects.bytesize(string) as i64)
    }

    /// Takes at most `most` of the available bytes.
    fn take(gvl, this, most) {
        let most = gvl.coerce_usize(most);
        let queue = of(this).queue(&gvl.natives);
        let (rest, head) = (queue.rest(), queue.head());
        let length = rest.len().min(most);
        let taken = gvl.binary(&rest[..length]);
        of(this).queue_mut(&mut gvl.natives).take_to(head + length);
        taken.into()
    }

    /// Reads more from the IO.
    fn fill(gvl, this) {
        Object::bool(byte_queue::fill(gvl, of(this)))
    }

    fn to_str(gvl, this) {
        byte_queue::to_string(gvl, of(this)).into()
    }

    fn io(gvl, this) {
        of(this).queue(&gvl.natives).io
    }

    fn write_to(gvl, this, io) {
        let written = byte_queue::write_to(gvl, of(this), io);
        gvl.int(written as i64)
    }
}

/// Defines the class. Methods that read in a loop are written in Ruby.
pub(super) fn define(gvl: &Gvl) {
    Class::of::<Buffer>(gvl, globals().buffer)
        .define(c"initialize", &initialize())
        .define(c"clear", &clear())
        .define(c"size", &size())
        .define(c"write", &write())
        .define(c"take", &take())
        .define(c"fill", &fill())
        .define(c"to_str", &to_str())
        .define(c"io", &io())
        .define(c"write_to", &write_to())
        .alias(c"to_s", c"to_str");
}
