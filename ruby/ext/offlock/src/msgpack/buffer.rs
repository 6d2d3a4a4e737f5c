//! `Buffer`: bytes that come in at the end and go out at the front, perhaps from or to an IO.

use std::ffi::c_int;

use offlock_core::memory;
use offlock_core::msgpack::write::Sink;
use rb_sys::*;

use super::globals::globals;
use super::sink::Rewind;
use crate::borrow::frozen;
use crate::build::copied;
use crate::cruby::raw::{self as rb, DataType, Held, NIL};

/// How much is asked of an IO at once, and kept for it at most, unless the options say otherwise.
const IO_BUFFER_SIZE: usize = 32 * 1024;

/// How much memory an empty buffer keeps for the next message.
const KEPT: usize = 4096;

/// The bytes of a packer, an unpacker or a `Buffer`.
pub(super) struct Bytes {
    /// A frozen String that is read as it is, or nil; then the bytes are in `own`.
    whole: VALUE,
    own: Vec<u8>,
    /// Everything before is taken.
    head: usize,
    /// What a place is counted from: how many bytes are gone, and a lot for each time that all of them went.
    gone: u64,
    /// An IO, or nil.
    pub(super) io: VALUE,
    pub(super) io_buffer_size: usize,
    /// While somebody reads, offsets have to stay what they are.
    pub(super) readers: usize,
}

impl Default for Bytes {
    fn default() -> Self {
        Self {
            whole: NIL,
            own: Vec::new(),
            head: 0,
            gone: 0,
            io: NIL,
            io_buffer_size: IO_BUFFER_SIZE,
            readers: 0,
        }
    }
}

impl Bytes {
    pub(super) fn mark(&self) {
        rb::mark_object(self.whole);
        rb::mark_object(self.io);
    }

    pub(super) fn memory(&self) -> usize {
        self.own.capacity()
    }

    /// All bytes, those taken too; they stay where they are until something is appended or cleared.
    #[inline]
    pub(super) fn all(&self) -> &[u8] {
        if self.whole == NIL {
            return &self.own;
        }
        // SAFETY: a frozen String, kept alive and in place by `mark`.
        unsafe { rb::bytes(self.whole) }
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

    /// Gives back the bytes taken last.
    pub(super) fn rewind(&mut self, length: usize) {
        self.head = self.head.saturating_sub(length);
    }

    /// A byte, by its offset, that is to be found again after other code has run.
    pub(super) const fn place_of(&self, offset: usize) -> u64 {
        self.gone.wrapping_add(offset as u64)
    }

    /// The offset that a place has now. Where the byte is gone, that of the first which is not taken.
    pub(super) fn offset_of(&self, place: u64) -> usize {
        let (offset, length) = (place.wrapping_sub(self.gone), self.all().len());
        if offset <= length as u64 { offset as usize } else { self.head.min(length) }
    }

    /// Forgets everything; memory for long messages is given back.
    pub(super) fn clear(&mut self) {
        self.gone = self.gone.wrapping_add(1 << 48);
        self.whole = NIL;
        self.own.clear();
        if self.own.capacity() > KEPT {
            self.own = Vec::new();
        }
        self.head = 0;
    }

    /// Appends the bytes of a String; reads it as it is when it comes first.
    pub(super) fn append_string(&mut self, string: VALUE) {
        if self.readers == 0 && self.rest().is_empty() {
            self.clear();
            // SAFETY: a String; the frozen share is marked from now on.
            self.whole = unsafe { frozen(string) };
            return;
        }
        self.own_all();
        // SAFETY: no Ruby code runs while the bytes are copied.
        append(&mut self.own, unsafe { rb::bytes(string) });
    }

    /// Takes the bytes over from the String that is read as it is.
    fn own_all(&mut self) {
        if self.whole != NIL {
            let mut own = Vec::new();
            append(&mut own, self.all());
            self.own = own;
            self.whole = NIL;
        }
        if self.readers == 0 && self.head > 0 {
            self.own.drain(..self.head);
            self.gone = self.gone.wrapping_add(self.head as u64);
            self.head = 0;
        }
    }

    /// Something to write to.
    #[inline]
    pub(super) fn sink(&mut self) -> &mut Vec<u8> {
        if self.whole != NIL {
            self.own_all();
        }
        &mut self.own
    }
}

impl Sink for Bytes {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        append(self.sink(), bytes);
    }
}

impl Rewind for Bytes {
    fn mark(&mut self) -> usize {
        self.sink().len()
    }

    fn rewind(&mut self, mark: usize) {
        self.own.truncate(mark);
    }
}

/// Appends `bytes`, or raises `NoMemoryError`, when there is nothing that would have to be dropped.
#[inline]
fn append(own: &mut Vec<u8>, bytes: &[u8]) {
    if let Err(none) = memory::append(own, bytes) {
        // SAFETY: reads a class that lives for ever.
        rb::raise(unsafe { rb_eNoMemError }, format_args!("{none}"))
    }
}

/// All bytes that are not taken, as a new String.
///
/// # Safety
/// `bytes` belongs to a live object.
pub(super) unsafe fn to_string(bytes: *const Bytes) -> VALUE {
    // SAFETY: the contract of this function. What is copied is asked for anew each time, as other threads run in between.
    unsafe {
        let length = (*bytes).rest().len();
        copied(length, |from, to| {
            let rest = (*bytes).rest();
            rest.get(from..to.min(rest.len()))
        })
    }
}

/// Reads more from the IO. False when there is none; raises `EOFError` at its end.
///
/// # Safety
/// `bytes` belongs to a live object.
pub(super) unsafe fn fill(bytes: *mut Bytes) -> bool {
    // SAFETY: the contract of this function; no reference is held while Ruby code runs.
    unsafe {
        let (io, size) = ((*bytes).io, (*bytes).io_buffer_size);
        if io == NIL {
            return false;
        }
        let partially = rb::id(c"readpartial");
        let name = if rb_respond_to(io, partially) != 0 { partially } else { rb::id(c"read") };
        let more = rb::call(io, name, &[rb::int(size as i64)]);
        if more == NIL || RSTRING_LEN(rb::string(more)) == 0 {
            rb::raise(rb_eEOFError, format_args!("IO reached end of file"));
        }
        let more = rb::string(more);
        let target = &mut *bytes;
        target.own_all();
        append(&mut target.own, rb::bytes(more));
        true
    }
}

/// Writes everything to an IO, and empties the buffer. Returns the number of bytes.
///
/// # Safety
/// `bytes` belongs to a live object.
pub(super) unsafe fn write_to(bytes: *mut Bytes, io: VALUE) -> usize {
    // SAFETY: the contract of this function; no reference is held while Ruby code runs.
    unsafe {
        let length = (*bytes).rest().len();
        if length > 0 {
            let string = to_string(bytes);
            (*bytes).clear();
            let write = rb::id(c"write");
            let name = if rb_respond_to(io, write) != 0 { write } else { rb::id(c"<<") };
            rb::call(io, name, &[string]);
        }
        length
    }
}

/// Sets the IO, and the options that are about it. Other options of msgpack's buffer steer copies that are not made here.
pub(super) fn set_options(bytes: &mut Bytes, io: VALUE, options: VALUE) {
    bytes.io = io;
    let size = rb::option(options, c"io_buffer_size");
    if size != NIL {
        // SAFETY: converts any object, or raises.
        bytes.io_buffer_size = (unsafe { rb_num2ulong(size) } as usize).max(1024);
    }
}

/// The arguments `(io = nil, options = nil)`, of which either may be left out.
pub(super) fn io_and_options(arguments: &[VALUE]) -> (VALUE, VALUE) {
    rb::check_count(arguments.len(), 0, 2);
    let is_hash = |object| rb::is(object, ruby_value_type::RUBY_T_HASH);
    match *arguments {
        [options] if is_hash(options) => (NIL, options),
        [io] => (io, NIL),
        [io, options] if options == NIL || is_hash(options) => (io, options),
        // SAFETY: reads a class that lives for ever.
        [_, options] => rb::raise_text(
            unsafe { rb_eArgError },
            format!("expected Hash but found {}.", class_name(options)),
        ),
        _ => (NIL, NIL),
    }
}

/// The name of an object's class.
pub(super) fn class_name(object: VALUE) -> String {
    // SAFETY: the name is a C string that lives as long as the class.
    unsafe { std::ffi::CStr::from_ptr(rb_obj_classname(object)) }.to_string_lossy().into_owned()
}

/// What an object of the class `Buffer` holds.
#[derive(Default)]
pub(super) struct Buffer {
    own: Bytes,
    /// The packer or unpacker whose bytes this object shows; `None`: its own.
    of: Option<Owner>,
}

/// Whose bytes a `Buffer` shows.
#[derive(Clone, Copy)]
pub(super) struct Owner {
    pub(super) object: VALUE,
    /// Inside of what `object` holds.
    pub(super) bytes: *mut Bytes,
}

impl Held for Buffer {
    const DATA_TYPE: &'static DataType = {
        static DATA_TYPE: DataType = rb::data_type::<Buffer>(c"Offlock::MessagePack::Buffer", false);
        &DATA_TYPE
    };

    fn mark(&self) {
        self.own.mark();
        if let Some(owner) = &self.of {
            rb::mark_object(owner.object);
        }
    }

    fn size(&self) -> usize {
        self.own.memory()
    }
}

/// A `Buffer` that shows the bytes of a packer or unpacker.
pub(super) fn view_of(owner: Owner) -> VALUE {
    // SAFETY: the class is one of this kind of objects.
    let object = unsafe { rb::alloc::<Buffer>(globals().buffer) };
    // SAFETY: just made.
    unsafe { (*rb::held::<Buffer>(object)).of = Some(owner) };
    object
}

fn bytes_of(object: VALUE) -> *mut Bytes {
    let buffer = rb::held::<Buffer>(object);
    // SAFETY: what a live object holds; the owner is kept alive by it.
    unsafe {
        match (*buffer).of {
            Some(owner) => owner.bytes,
            None => &raw mut (*buffer).own,
        }
    }
}

unsafe extern "C" fn initialize(count: c_int, first: *const VALUE, this: VALUE) -> VALUE {
    rb::method(|| {
        // SAFETY: what Ruby passed.
        let (io, options) = io_and_options(unsafe { rb::arguments(count, first) });
        // SAFETY: what a live object holds.
        set_options(unsafe { &mut *bytes_of(this) }, io, options);
        this
    })
}

unsafe extern "C" fn clear(this: VALUE) -> VALUE {
    rb::method(|| {
        // SAFETY: what a live object holds.
        unsafe { (*bytes_of(this)).clear() };
        NIL
    })
}

unsafe extern "C" fn size(this: VALUE) -> VALUE {
    // SAFETY: what a live object holds.
    rb::method(|| rb::int(unsafe { (*bytes_of(this)).rest().len() } as i64))
}

unsafe extern "C" fn write(this: VALUE, string: VALUE) -> VALUE {
    rb::method(|| {
        let string = rb::string(string);
        // SAFETY: what a live object holds, and a String.
        unsafe {
            (*bytes_of(this)).append_string(string);
            rb::int(RSTRING_LEN(string))
        }
    })
}

/// Takes at most so many of the bytes that are there.
unsafe extern "C" fn take(this: VALUE, most: VALUE) -> VALUE {
    rb::method(|| {
        // SAFETY: converts any object, or raises; then what a live object holds.
        unsafe {
            let most = rb_num2ulong(most) as usize;
            let bytes = bytes_of(this);
            let rest = (*bytes).rest();
            let length = rest.len().min(most);
            let taken = rb::binary(&rest[..length]);
            (*bytes).take_to((*bytes).head() + length);
            taken
        }
    })
}

/// Reads more from the IO.
unsafe extern "C" fn fill_more(this: VALUE) -> VALUE {
    // SAFETY: what a live object holds.
    rb::method(|| if unsafe { fill(bytes_of(this)) } { rb::TRUE } else { rb::FALSE })
}

unsafe extern "C" fn to_str(this: VALUE) -> VALUE {
    // SAFETY: what a live object holds.
    rb::method(|| unsafe { to_string(bytes_of(this)) })
}

unsafe extern "C" fn io(this: VALUE) -> VALUE {
    // SAFETY: what a live object holds.
    rb::method(|| unsafe { (*bytes_of(this)).io })
}

unsafe extern "C" fn write_to_io(this: VALUE, io: VALUE) -> VALUE {
    // SAFETY: what a live object holds.
    rb::method(|| rb::int(unsafe { write_to(bytes_of(this), io) } as i64))
}

/// Defines the class. What reads in a loop is written in Ruby.
pub(super) fn define() {
    let class = globals().buffer;
    // SAFETY: the function makes objects of this class.
    unsafe { rb_define_alloc_func(class, Some(rb::alloc::<Buffer>)) };
    rb::define(class, c"initialize", initialize as _, -1);
    rb::define(class, c"clear", clear as _, 0);
    rb::define(class, c"size", size as _, 0);
    rb::define(class, c"write", write as _, 1);
    rb::define(class, c"take", take as _, 1);
    rb::define(class, c"fill", fill_more as _, 0);
    rb::define(class, c"to_str", to_str as _, 0);
    rb::define(class, c"io", io as _, 0);
    rb::define(class, c"write_to", write_to_io as _, 1);
    rb::alias(class, c"to_s", c"to_str");
}
