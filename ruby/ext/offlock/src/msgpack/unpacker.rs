//! The class `Unpacker`.

use std::ffi::c_int;
use std::sync::Arc;

use offlock_core::Task;
use offlock_core::msgpack::{Error, ErrorKind, Reader, Scanner, Token};
use rb_sys::*;

use super::buffer::{self, Bytes, Owner};
use super::build::{self, Builder, LIMITS, Options};
use super::globals::globals;
use super::input::{Input as _, UnpackerInput};
use super::key_cache::KeyCache;
use super::packer::check_changeable;
use super::registry::{Callable, Registry, UnpackEntry, changeable, ext_type};
use crate::cruby::raw::{self as rb, DataType, Held, NIL};
use crate::region;
use crate::region::Pace;

/// What an object of the class `Unpacker` holds.
pub(super) struct Unpacker {
    pub(super) bytes: Bytes,
    pub(super) registry: Arc<Registry>,
    pub(super) options: Options,
    /// The containers around the value that such code reads.
    pub(super) depth: usize,
    /// The `Buffer` that shows the bytes, or nil.
    buffer: VALUE,
    /// How far the message that has not arrived as a whole was looked at.
    scanner: Option<Scanner>,
    /// With the option `key_cache`, the keys made so far.
    pub(super) keys: KeyCache,
    /// What `registered_types` has shown: a Hash, or nil. The next time it shows the same Procs.
    shown: VALUE,
}

impl Default for Unpacker {
    fn default() -> Self {
        Self {
            bytes: Bytes::default(),
            registry: Arc::default(),
            options: Options::default(),
            depth: 0,
            buffer: NIL,
            scanner: None,
            keys: KeyCache::default(),
            shown: NIL,
        }
    }
}

impl Held for Unpacker {
    const DATA_TYPE: &'static DataType = {
        static DATA_TYPE: DataType = rb::data_type::<Unpacker>(c"Offlock::MessagePack::Unpacker", false);
        &DATA_TYPE
    };

    fn mark(&self) {
        self.bytes.mark();
        self.registry.mark();
        rb::mark_object(self.buffer);
        rb::mark_object(self.shown);
        self.keys.mark();
    }

    fn size(&self) -> usize {
        self.bytes.memory() + self.keys.size() + self.registry.size() / Arc::strong_count(&self.registry)
    }
}

/// A new unpacker.
pub(super) fn make(io: VALUE, options: VALUE, registry: Arc<Registry>) -> VALUE {
    // SAFETY: the class is one of this kind of objects.
    let object = unsafe { rb::alloc::<Unpacker>(globals().unpacker) };
    // SAFETY: just made.
    unsafe { (*rb::held::<Unpacker>(object)).registry = registry };
    configure(object, io, options);
    object
}

fn configure(object: VALUE, io: VALUE, options: VALUE) {
    let unpacker = rb::held::<Unpacker>(object);
    // SAFETY: what a live object holds.
    unsafe {
        buffer::set_options(&mut (*unpacker).bytes, io, options);
        (*unpacker).options = options_from(options);
        (*unpacker).keys = KeyCache::default();
    }
}

/// Reads the options that say how objects are made.
pub(super) fn options_from(options: VALUE) -> Options {
    if options == NIL {
        return Options::default();
    }
    let is_set = |name| TEST(rb::option(options, name));
    Options {
        symbolize_keys: is_set(c"symbolize_keys"),
        freeze: is_set(c"freeze"),
        allow_unknown_ext: is_set(c"allow_unknown_ext"),
        key_cache: is_set(c"key_cache"),
    }
}

/// Appends a String to what is to be unpacked.
pub(super) fn feed(this: VALUE, data: VALUE) {
    let data = rb::string(data);
    // SAFETY: what a live object holds.
    unsafe { (*rb::held::<Unpacker>(this)).bytes.append_string(data) };
}

/// Makes the next object. Raises `EOFError` when it has not arrived as a whole.
pub(super) fn read(this: VALUE) -> VALUE {
    let unpacker = rb::held::<Unpacker>(this);
    // SAFETY: what a live object holds; no reference is held while Ruby code runs.
    unsafe {
        if (*unpacker).must_scan() {
            arrived(unpacker);
        }
    }
    make_next(this)
}

/// Makes the next object.
fn make_next(this: VALUE) -> VALUE {
    let unpacker = rb::held::<Unpacker>(this);
    // SAFETY: what a live object holds; no reference is held while Ruby code runs, apart from the source, which is
    // refreshed then.
    unsafe {
        let (depth, options) = ((*unpacker).depth, (*unpacker).options);
        // Should the message turn out to be incomplete, this is a reason to look first the next time.
        (*unpacker).scanner.get_or_insert_default();
        let mut builder = Builder::new(UnpackerInput::new(this), options, unpacker);
        let object = builder.value(depth);
        (*unpacker).scanner = None;
        builder.source.leave();
        object
    }
}

impl Unpacker {
    /// Whether the next message has to be looked at before objects are made of it: because it comes from an IO in
    /// pieces, because it was found to be incomplete before, or because making it may run code that must run once.
    fn must_scan(&mut self) -> bool {
        self.bytes.io != NIL || self.scanner.is_some() || !self.registry.unpackers.is_empty()
    }
}

/// The length of the next message, once it is there as a whole; raises `EOFError` when it is not.
///
/// # Safety
/// `unpacker` is what a live object holds.
unsafe fn arrived(unpacker: *mut Unpacker) -> usize {
    // SAFETY: the contract of this function; no reference is held while Ruby code runs.
    unsafe {
        loop {
            match scan(unpacker) {
                Ok(Some(length)) => return length,
                Ok(None) => {}
                Err(error) => {
                    let offset = (*unpacker).bytes.head() + error.offset;
                    (*unpacker).bytes.take_to(offset);
                    build::raise(Error { offset, ..error });
                }
            }
            if !buffer::fill(&raw mut (*unpacker).bytes) {
                let offset = (*unpacker).bytes.head();
                build::raise(Error { kind: ErrorKind::Truncated, offset });
            }
        }
    }
}

/// How many bytes are looked at in one go.
const WINDOW: usize = 256 << 10;

/// The length of the next message, if it is there as a whole.
///
/// # Safety
/// `unpacker` is what a live object holds. Interrupts raise.
unsafe fn scan(unpacker: *mut Unpacker) -> Result<Option<usize>, Error> {
    let mut pace = Pace::new();
    let mut end = WINDOW;
    // SAFETY: the contract of this function; no reference is held while other threads run.
    unsafe {
        loop {
            let rest = (*unpacker).bytes.rest();
            let window = &rest[..rest.len().min(end)];
            let is_all = window.len() == rest.len();
            let scanner = (*unpacker).scanner.get_or_insert_default();
            let found = scanner.advance(window, &LIMITS, &Task::new());
            if is_all || !matches!(found, Ok(None)) {
                return found;
            }
            end += WINDOW;
            if pace.is_due(WINDOW) {
                pace.yield_or_raise();
            }
        }
    }
}

/// Makes the one object that the unpacker has.
pub(super) fn full_unpack(this: VALUE) -> VALUE {
    let object = read(this);
    // SAFETY: what a live object holds.
    let extra = unsafe { (*rb::held::<Unpacker>(this)).bytes.rest().len() };
    check_extra(extra);
    object
}

/// Raises `MalformedFormatError` when bytes follow.
pub(super) fn check_extra(extra: usize) {
    if extra > 0 {
        rb::raise(globals().malformed, format_args!("{extra} extra bytes after the deserialized object"));
    }
}

unsafe extern "C" fn initialize(count: c_int, first: *const VALUE, this: VALUE) -> VALUE {
    rb::method(|| {
        // SAFETY: what Ruby passed.
        let (io, options) = buffer::io_and_options(unsafe { rb::arguments(count, first) });
        configure(this, io, options);
        this
    })
}

/// Makes the function of a method that tells an option.
macro_rules! tells {
    ($name:ident) => {
        unsafe extern "C" fn $name(this: VALUE) -> VALUE {
            // SAFETY: what a live object holds.
            rb::method(|| rb::bool(unsafe { (*rb::held::<Unpacker>(this)).options.$name }))
        }
    };
}

tells!(symbolize_keys);
tells!(freeze);
tells!(allow_unknown_ext);

unsafe extern "C" fn buffer_of(this: VALUE) -> VALUE {
    rb::method(|| {
        let unpacker = rb::held::<Unpacker>(this);
        // SAFETY: what a live object holds, which does not move.
        unsafe {
            if (*unpacker).buffer == NIL {
                (*unpacker).buffer =
                    buffer::view_of(Owner { object: this, bytes: &raw mut (*unpacker).bytes });
            }
            (*unpacker).buffer
        }
    })
}

unsafe extern "C" fn read_method(this: VALUE) -> VALUE {
    rb::small_method(|| read(this))
}

unsafe extern "C" fn full_unpack_method(this: VALUE) -> VALUE {
    rb::small_method(|| full_unpack(this))
}

unsafe extern "C" fn feed_method(this: VALUE, data: VALUE) -> VALUE {
    rb::small_method(|| {
        feed(this, data);
        this
    })
}

unsafe extern "C" fn skip(this: VALUE) -> VALUE {
    rb::small_method(|| {
        let unpacker = rb::held::<Unpacker>(this);
        // SAFETY: what a live object holds; no reference is held while Ruby code runs.
        unsafe {
            let length = arrived(unpacker);
            (*unpacker).scanner = None;
            (*unpacker).bytes.take_to((*unpacker).bytes.head() + length);
        }
        NIL
    })
}

/// The first byte of the next value.
///
/// # Safety
/// `unpacker` is what a live object holds.
unsafe fn next_byte(unpacker: *mut Unpacker) -> u8 {
    // SAFETY: the contract of this function; no reference is held while Ruby code runs.
    unsafe {
        loop {
            if let Some(&byte) = (*unpacker).bytes.rest().first() {
                return byte;
            }
            if !buffer::fill(&raw mut (*unpacker).bytes) {
                let offset = (*unpacker).bytes.head();
                build::raise(Error { kind: ErrorKind::Truncated, offset });
            }
        }
    }
}

unsafe extern "C" fn skip_nil(this: VALUE) -> VALUE {
    // SAFETY: what a live object holds.
    rb::small_method(|| if unsafe { next_byte(rb::held(this)) } == 0xc0 { rb::TRUE } else { rb::FALSE })
}

unsafe extern "C" fn read_array_header(this: VALUE) -> VALUE {
    rb::small_method(|| header(this, "array", |head| matches!(head, 0x90..=0x9f | 0xdc | 0xdd)))
}

unsafe extern "C" fn read_map_header(this: VALUE) -> VALUE {
    rb::small_method(|| header(this, "map", |head| matches!(head, 0x80..=0x8f | 0xde | 0xdf)))
}

fn header(this: VALUE, wanted: &str, is_header: fn(u8) -> bool) -> VALUE {
    let unpacker = rb::held::<Unpacker>(this);
    // SAFETY: what a live object holds; no reference is held while Ruby code runs.
    unsafe {
        let head = next_byte(unpacker);
        if !is_header(head) {
            let class = globals().unexpected_type;
            rb::raise(class, format_args!("unexpected type: 0x{head:02x} begins no {wanted}"));
        }
        loop {
            let start = (*unpacker).bytes.head();
            let mut reader = Reader::at((*unpacker).bytes.all(), start);
            if let Ok(Token::Array(length) | Token::Map(length)) = reader.token() {
                let end = reader.pos();
                (*unpacker).scanner = None;
                (*unpacker).bytes.take_to(end);
                return rb::int(length.into());
            }
            if !buffer::fill(&raw mut (*unpacker).bytes) {
                build::raise(Error { kind: ErrorKind::Truncated, offset: start });
            }
        }
    }
}

unsafe extern "C" fn reset(this: VALUE) -> VALUE {
    rb::method(|| {
        let unpacker = rb::held::<Unpacker>(this);
        // SAFETY: what a live object holds.
        unsafe {
            (*unpacker).bytes.clear();
            (*unpacker).scanner = None;
            (*unpacker).depth = 0;
        }
        NIL
    })
}

/// Yields object after object, until the bytes end; what comes from an IO, until that raises `EOFError`.
unsafe extern "C" fn each_message(this: VALUE) -> VALUE {
    rb::method(|| {
        let unpacker = rb::held::<Unpacker>(this);
        // SAFETY: what a live object holds; no reference is held while Ruby code runs.
        unsafe {
            loop {
                if (*unpacker).bytes.io == NIL && !is_complete(unpacker) {
                    return NIL;
                }
                region::yield_between_calls_or_raise();
                let object = if (*unpacker).bytes.io == NIL { make_next(this) } else { read(this) };
                rb_yield(object);
            }
        }
    })
}

/// Whether a whole message is there, or an error, which making it raises.
///
/// # Safety
/// `unpacker` is what a live object holds. Interrupts raise.
unsafe fn is_complete(unpacker: *mut Unpacker) -> bool {
    // SAFETY: the contract of this function.
    unsafe { !matches!(scan(unpacker), Ok(None)) }
}

/// `register_type(type, class = nil, method_name = nil, &block)`
unsafe extern "C" fn register_type(count: c_int, first: *const VALUE, this: VALUE) -> VALUE {
    rb::method(|| {
        // SAFETY: what Ruby passed.
        let arguments = unsafe { rb::arguments(count, first) };
        rb::check_count(arguments.len(), 1, 3);
        check_changeable(this, "Unpacker");
        let kind = ext_type(arguments[0]);
        let class = arguments.get(1).copied().unwrap_or(NIL);
        let unpacker = unpacker_of(class, arguments.get(2).copied().unwrap_or(NIL));
        let entry = UnpackEntry { kind, class, unpacker: Some(unpacker), recursive: false };
        let held = rb::held::<Unpacker>(this);
        // SAFETY: what a live object holds.
        unsafe {
            changeable(&mut (*held).registry).add_unpacker(entry);
            (*held).shown = NIL;
        }
        NIL
    })
}

fn unpacker_of(class: VALUE, name: VALUE) -> Callable {
    // SAFETY: asks about, and takes, the block of the method that runs; a live class and name.
    unsafe {
        if class != NIL && name != NIL {
            return class_method(class, name);
        }
        if rb_block_given_p() == 0 {
            rb::raise(rb_eArgError, format_args!("register_type takes either 3 arguments or a block"));
        }
        Callable::of_proc(rb_block_proc())
    }
}

/// A method of a class, by name; raises `NameError` when there is none.
pub(super) fn class_method(class: VALUE, name: VALUE) -> Callable {
    // SAFETY: a live class and name.
    unsafe {
        let id = rb_to_id(name);
        if rb_obj_respond_to(class, id, 1) == 0 {
            rb::call(class, rb::id(c"method"), &[name]);
        }
        Callable::Of(class, id)
    }
}

/// `{type => [class, proc, flags]}`
unsafe extern "C" fn registered_types_internal(this: VALUE) -> VALUE {
    rb::method(|| {
        let unpacker = rb::held::<Unpacker>(this);
        // SAFETY: what a live object holds; it is read anew for every entry, because Ruby code runs between them.
        unsafe {
            if (*unpacker).shown != NIL {
                return rb_hash_dup((*unpacker).shown);
            }
            let types = rb_hash_new();
            let mut index = 0;
            while let Some(&entry) = (&*unpacker).registry.unpackers.get(index) {
                rb_hash_aset(types, rb::int(entry.kind.into()), unpack_entry(entry));
                index += 1;
            }
            (*unpacker).shown = types;
            rb_hash_dup(types)
        }
    })
}

/// `[class, proc, flags]`
pub(super) fn unpack_entry(entry: UnpackEntry) -> VALUE {
    let unpacker = entry.unpacker.map_or(NIL, Callable::to_proc);
    let parts = [entry.class, unpacker, rb::int(entry.recursive.into())];
    // SAFETY: live objects, as many as said.
    unsafe { rb_ary_new_from_values(3, parts.as_ptr()) }
}

/// Defines the class.
pub(super) fn define() {
    let class = globals().unpacker;
    // SAFETY: the function makes objects of this class.
    unsafe { rb_define_alloc_func(class, Some(rb::alloc::<Unpacker>)) };
    rb::define(class, c"initialize", initialize as _, -1);
    rb::define(class, c"symbolize_keys?", symbolize_keys as _, 0);
    rb::define(class, c"freeze?", freeze as _, 0);
    rb::define(class, c"allow_unknown_ext?", allow_unknown_ext as _, 0);
    rb::define(class, c"buffer", buffer_of as _, 0);
    rb::define(class, c"read", read_method as _, 0);
    rb::define(class, c"skip", skip as _, 0);
    rb::define(class, c"skip_nil", skip_nil as _, 0);
    rb::define(class, c"read_array_header", read_array_header as _, 0);
    rb::define(class, c"read_map_header", read_map_header as _, 0);
    rb::define(class, c"feed", feed_method as _, 1);
    rb::define(class, c"each_message", each_message as _, 0);
    rb::define(class, c"reset", reset as _, 0);
    rb::define(class, c"register_type", register_type as _, -1);
    rb::define(class, c"registered_types_internal", registered_types_internal as _, 0);
    rb::define(class, c"full_unpack", full_unpack_method as _, 0);
    rb::alias(class, c"unpack", c"read");
    rb::alias(class, c"feed_reference", c"feed");
}
