//! Bytes that are appended at the end and taken from the front, optionally from or to an IO: the bytes of a
//! packer, an unpacker or a `Buffer`.

use offlock_core::memory::{self, OutOfMemory};
use offlock_core::msgpack::write::Sink;

use super::sink::Rewind;
use crate::cruby::string::{Pieces, Share};
use crate::cruby::{Arguments, Gvl, Hash, Id, Marker, Natives, Object, Str, classes, raise, raise_owned};

/// The number of bytes that are requested from an IO at once, and the most that are kept for it, unless the
/// options set another.
const IO_BUFFER_SIZE: usize = 32 * 1024;

/// The bytes of memory that an empty queue keeps for the next message.
const KEPT: usize = 4096;

/// See the module.
pub(super) struct ByteQueue {
    /// A String that is read in place; without one, the bytes are in `own`.
    whole: Option<Share>,
    own: Vec<u8>,
    /// All bytes before this offset are taken.
    head: usize,
    /// The base of positions: the number of removed bytes, plus a large number for each time that all of them
    /// were removed.
    gone: u64,
    /// An IO, or nil.
    pub(super) io: Object,
    pub(super) io_buffer_size: usize,
    /// While there are readers, offsets must not change.
    pub(super) readers: usize,
}

impl Default for ByteQueue {
    fn default() -> Self {
        Self {
            whole: None,
            own: Vec::new(),
            head: 0,
            gone: 0,
            io: Object::NIL,
            io_buffer_size: IO_BUFFER_SIZE,
            readers: 0,
        }
    }
}

impl ByteQueue {
    pub(super) fn mark(&self, marker: &Marker) {
        self.whole.iter().for_each(|whole| marker.mark(whole.object()));
        marker.mark(self.io);
    }

    pub(super) fn memory(&self) -> usize {
        self.own.capacity()
    }

    /// All bytes, including those taken; they stay in place until bytes are appended or cleared.
    #[inline]
    pub(super) fn all(&self) -> &[u8] {
        match &self.whole {
            Some(whole) => whole.bytes(),
            None => &self.own,
        }
    }

    /// The frozen String that is read in place.
    pub(super) fn whole(&self) -> Option<Object> {
        self.whole.map(Share::object)
    }

    /// The offset of the first byte that is not taken.
    #[inline]
    pub(super) const fn head(&self) -> usize {
        self.head
    }

    /// The bytes that are not taken.
    #[inline]
    pub(super) fn rest(&self) -> &[u8] {
        self.all().get(self.head..).unwrap_or_default()
    }

    /// Takes everything before `head`.
    #[inline]
    pub(super) fn take_to(&mut self, head: usize) {
        self.head = head;
        if head >= self.all().len() && self.readers == 0 {
            self.clear();
        }
    }

    /// Puts back the bytes that were taken last.
    pub(super) fn give_back(&mut self, length: usize) {
        self.head = self.head.saturating_sub(length);
    }

    /// The position of the byte at an offset. It identifies the byte after other code has run.
    pub(super) const fn position_of(&self, offset: usize) -> u64 {
        self.gone.wrapping_add(offset as u64)
    }

    /// The current offset of a position. If the byte was removed, the offset of the first byte that is not
    /// taken.
    pub(super) fn offset_of(&self, position: u64) -> usize {
        let (offset, length) = (position.wrapping_sub(self.gone), self.all().len());
        if offset <= length as u64 { offset as usize } else { self.head.min(length) }
    }

    /// Removes everything, and frees the memory of long messages.
    pub(super) fn clear(&mut self) {
        self.gone = self.gone.wrapping_add(1 << 48);
        self.whole = None;
        self.own.clear();
        if self.own.capacity() > KEPT {
            self.own = Vec::new();
        }
        self.head = 0;
    }

    /// Returns whether the next String is read in place.
    fn takes_whole(&self) -> bool {
        self.readers == 0 && self.rest().is_empty()
    }

    /// Copies the bytes of the String that is read in place.
    fn own_all(&mut self) {
        if let Some(whole) = self.whole {
            let mut own = Vec::new();
            append(&mut own, whole.bytes());
            self.own = own;
            self.whole = None;
        }
        if self.readers == 0 && self.head > 0 {
            self.own.drain(..self.head);
            self.gone = self.gone.wrapping_add(self.head as u64);
            self.head = 0;
        }
    }

    /// The memory to write to.
    #[inline]
    fn sink(&mut self) -> &mut Vec<u8> {
        if self.whole.is_some() {
            self.own_all();
        }
        &mut self.own
    }
}

impl Sink for ByteQueue {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        append(self.sink(), bytes);
    }

    fn expect(&mut self, bytes: usize) {
        memory::reserve(self.sink(), bytes).unwrap_or_else(|none| no_memory(none));
    }
}

impl Rewind for ByteQueue {
    fn mark(&mut self) -> usize {
        self.sink().len()
    }

    fn rewind(&mut self, mark: usize) {
        self.own.truncate(mark);
    }
}

/// Appends `bytes`, or raises `NoMemoryError` when no value remains to be dropped.
#[inline]
fn append(own: &mut Vec<u8>, bytes: &[u8]) {
    memory::append(own, bytes).unwrap_or_else(|none| no_memory(none));
}

#[cold]
fn no_memory(none: OutOfMemory) -> ! {
    raise(classes::no_memory_error(), format_args!("{none}"))
}

/// An object that has a queue.
pub(super) trait HasQueue: Copy {
    fn queue(self, natives: &Natives) -> &ByteQueue;
    fn queue_mut(self, natives: &mut Natives) -> &mut ByteQueue;
}

/// The bytes in an object's queue.
pub(super) struct Rest<Q>(pub(super) Q);

impl<Q: HasQueue> Pieces for Rest<Q> {
    fn length(&self, gvl: &Gvl) -> usize {
        self.0.queue(&gvl.natives).rest().len()
    }

    fn piece<'a>(&'a self, gvl: &'a Gvl, from: usize, to: usize) -> Option<&'a [u8]> {
        let rest = self.0.queue(&gvl.natives).rest();
        rest.get(from..to.min(rest.len()))
    }
}

/// Appends the bytes of a String. Reads the String in place if the queue is empty.
pub(super) fn append_string(gvl: &mut Gvl, queue: impl HasQueue, string: Str) {
    if queue.queue(&gvl.natives).takes_whole() {
        let share = gvl.share(string);
        let queue = queue.queue_mut(&mut gvl.natives);
        queue.clear();
        queue.whole = Some(share);
        return;
    }
    let bytes = gvl.objects.bytes(string);
    let queue = queue.queue_mut(&mut gvl.natives);
    queue.own_all();
    append(&mut queue.own, &bytes);
}

/// All bytes that are not taken, as a new String.
pub(super) fn to_string(gvl: &mut Gvl, queue: impl HasQueue) -> Str {
    gvl.copied(&Rest(queue))
}

/// Reads more from the IO. Returns false if there is no IO; raises `EOFError` at its end.
pub(super) fn fill(gvl: &mut Gvl, queue: impl HasQueue) -> bool {
    let ByteQueue { io, io_buffer_size: size, .. } = *queue.queue(&gvl.natives);
    if io.is_nil() {
        return false;
    }
    let partially = Id::of(c"readpartial");
    let name = if gvl.responds_to(io, partially) { partially } else { Id::of(c"read") };
    let size = gvl.int(size as i64);
    let more = gvl.call(io, name, &[size]);
    let more = if more.is_nil() { None } else { Some(gvl.coerce_str(more)) };
    let Some(more) = more.filter(|more| gvl.objects.bytesize(*more) > 0) else {
        raise(classes::eof_error(), format_args!("IO reached end of file"))
    };
    let bytes = gvl.objects.bytes(more);
    let queue = queue.queue_mut(&mut gvl.natives);
    queue.own_all();
    append(&mut queue.own, &bytes);
    true
}

/// Writes everything to an IO, and empties the queue. Returns the number of bytes.
pub(super) fn write_to(gvl: &mut Gvl, queue: impl HasQueue, io: Object) -> usize {
    let length = queue.queue(&gvl.natives).rest().len();
    if length > 0 {
        let string = to_string(gvl, queue);
        queue.queue_mut(&mut gvl.natives).clear();
        let write = Id::of(c"write");
        let name = if gvl.responds_to(io, write) { write } else { Id::of(c"<<") };
        gvl.call(io, name, &[string.into()]);
    }
    length
}

/// Sets the IO and its options. Other options of msgpack's buffer control copies that do not exist here.
pub(super) fn set_options(gvl: &mut Gvl, queue: impl HasQueue, io: Object, options: Option<Hash>) {
    let size = gvl.objects.option(options, c"io_buffer_size");
    let size = if size.is_nil() { None } else { Some(gvl.coerce_usize(size).max(1024)) };
    let queue = queue.queue_mut(&mut gvl.natives);
    queue.io = io;
    queue.io_buffer_size = size.unwrap_or(queue.io_buffer_size);
}

/// The arguments `(io = nil, options = nil)`, both optional.
pub(super) fn io_and_options(gvl: &Gvl, arguments: &[Object]) -> (Object, Option<Hash>) {
    Arguments::check(arguments, 0, 2);
    let hash = |object| gvl.objects.hash(object);
    match *arguments {
        [options] if hash(options).is_some() => (Object::NIL, hash(options)),
        [io] => (io, None),
        [io, options] if options.is_nil() || hash(options).is_some() => (io, hash(options)),
        [_, options] => raise_owned(
            classes::argument_error(),
            format!("expected Hash but found {}.", gvl.objects.class_name(options)),
        ),
        _ => (Object::NIL, None),
    }
}
