//! The methods of the class `Unpacker`.

use offlock_core::Task;
use offlock_core::msgpack::{Error, ErrorKind, Reader, Token};

use super::buffer::{self, Owner};
use super::build::{Builder, check_extra, raise_error};
use super::byte_queue::{self, HasQueue as _, io_and_options};
use super::globals::globals;
use super::input::{Input as _, UnpackerInput};
use super::options::LIMITS;
use super::registry::{Callable, UnpackEntry, changeable, check_changeable, ext_type};
use super::unpacker::{Unpacker, configure, feed};
use crate::cruby::{Arguments, Class, Gvl, Handle, Object, classes, methods, raise};
use crate::region::Yielder;

fn of(this: Object) -> Handle<Unpacker> {
    Handle::of(this)
}

/// Builds the next object. Raises `EOFError` if the message is incomplete.
fn read(gvl: &mut Gvl, unpacker: Handle<Unpacker>) -> Object {
    if unpacker.get(&gvl.natives).must_scan() {
        arrived(gvl, unpacker);
    }
    build_next(gvl, unpacker)
}

/// Builds the next object.
fn build_next(gvl: &mut Gvl, unpacker: Handle<Unpacker>) -> Object {
    let held = unpacker.get_mut(&mut gvl.natives);
    let (depth, options) = (held.depth, held.options);
    // If the message turns out to be incomplete, the next call scans it first.
    held.scanner.get_or_insert_default();
    // SAFETY: the builder is on the stack, and suspends its input, or leaves it, before it runs other code.
    let input = unsafe { UnpackerInput::new(gvl, unpacker) };
    let mut builder = Builder::new(gvl, input, options, Some(unpacker));
    let object = builder.value(depth);
    let Builder { source, gvl, .. } = builder;
    unpacker.get_mut(&mut gvl.natives).scanner = None;
    source.leave(&mut gvl.natives);
    object
}

/// The length of the next message, once it is complete; raises `EOFError` if it is not.
fn arrived(gvl: &mut Gvl, unpacker: Handle<Unpacker>) -> usize {
    loop {
        match scan(gvl, unpacker) {
            Ok(Some(length)) => return length,
            Ok(None) => {}
            Err(error) => {
                let bytes = unpacker.queue_mut(&mut gvl.natives);
                let offset = bytes.head() + error.offset;
                bytes.take_to(offset);
                raise_error(Error { offset, ..error });
            }
        }
        fill(gvl, unpacker);
    }
}

/// Reads more from the IO; raises `EOFError` if there is none.
fn fill(gvl: &mut Gvl, unpacker: Handle<Unpacker>) {
    if !byte_queue::fill(gvl, unpacker) {
        let offset = unpacker.queue(&gvl.natives).head();
        raise_error(Error { kind: ErrorKind::Truncated, offset });
    }
}

/// The number of bytes that are scanned at once.
const WINDOW: usize = 256 << 10;

/// The length of the next message, if it is complete.
fn scan(gvl: &mut Gvl, unpacker: Handle<Unpacker>) -> Result<Option<usize>, Error> {
    let mut yielder = Yielder::new();
    let mut end = WINDOW;
    loop {
        let held = unpacker.get_mut(&mut gvl.natives);
        let rest = held.bytes.rest();
        let window = &rest[..rest.len().min(end)];
        let is_all = window.len() == rest.len();
        let scanner = held.scanner.get_or_insert_default();
        let found = scanner.advance(window, &LIMITS, &Task::new());
        if is_all || !matches!(found, Ok(None)) {
            return found;
        }
        end += WINDOW;
        gvl.tick(&mut yielder, WINDOW);
    }
}

/// Builds the single object that the unpacker has.
pub(super) fn full_unpack(gvl: &mut Gvl, unpacker: Handle<Unpacker>) -> Object {
    let object = read(gvl, unpacker);
    check_extra(unpacker.queue(&gvl.natives).rest().len());
    object
}

/// The first byte of the next value.
fn next_byte(gvl: &mut Gvl, unpacker: Handle<Unpacker>) -> u8 {
    loop {
        if let Some(&byte) = unpacker.queue(&gvl.natives).rest().first() {
            return byte;
        }
        fill(gvl, unpacker);
    }
}

fn header(gvl: &mut Gvl, unpacker: Handle<Unpacker>, wanted: &str, is_header: fn(u8) -> bool) -> Object {
    let head = next_byte(gvl, unpacker);
    if !is_header(head) {
        let class = globals().unexpected_type;
        raise(class, format_args!("unexpected type: 0x{head:02x} begins no {wanted}"));
    }
    loop {
        let held = unpacker.get_mut(&mut gvl.natives);
        let mut reader = Reader::at(held.bytes.all(), held.bytes.head());
        if let Ok(Token::Array(length) | Token::Map(length)) = reader.token() {
            let end = reader.pos();
            held.scanner = None;
            held.bytes.take_to(end);
            return gvl.int(length.into());
        }
        fill(gvl, unpacker);
    }
}

methods! {
    fn initialize(gvl, this, ..arguments) {
        let (io, options) = io_and_options(gvl, arguments);
        configure(gvl, of(this), io, options);
        this
    }

    fn symbolize_keys(gvl, this) {
        Object::bool(of(this).get(&gvl.natives).options.symbolize_keys)
    }

    fn freeze(gvl, this) {
        Object::bool(of(this).get(&gvl.natives).options.freeze)
    }

    fn allow_unknown_ext(gvl, this) {
        Object::bool(of(this).get(&gvl.natives).options.allow_unknown_ext)
    }

    fn buffer_of(gvl, this) {
        if let Some(buffer) = of(this).get(&gvl.natives).buffer {
            return buffer;
        }
        let buffer = buffer::view_of(gvl, Owner::Unpacker(of(this)));
        of(this).get_mut(&mut gvl.natives).buffer = Some(buffer);
        buffer
    }

    small fn read_method(gvl, this) {
        read(gvl, of(this))
    }

    small fn full_unpack_method(gvl, this) {
        full_unpack(gvl, of(this))
    }

    small fn feed_method(gvl, this, data) {
        feed(gvl, of(this), data);
        this
    }

    small fn skip(gvl, this) {
        let length = arrived(gvl, of(this));
        let held = of(this).get_mut(&mut gvl.natives);
        held.scanner = None;
        held.bytes.take_to(held.bytes.head() + length);
        Object::NIL
    }

    small fn skip_nil(gvl, this) {
        Object::bool(next_byte(gvl, of(this)) == 0xc0)
    }

    small fn read_array_header(gvl, this) {
        header(gvl, of(this), "array", |head| matches!(head, 0x90..=0x9f | 0xdc | 0xdd))
    }

    small fn read_map_header(gvl, this) {
        header(gvl, of(this), "map", |head| matches!(head, 0x80..=0x8f | 0xde | 0xdf))
    }

    fn reset(gvl, this) {
        let held = of(this).get_mut(&mut gvl.natives);
        held.bytes.clear();
        held.scanner = None;
        held.depth = 0;
        Object::NIL
    }

    /// Yields one object after another until the bytes end; with an IO, until it raises `EOFError`.
    fn each_message(gvl, this) {
        let unpacker = of(this);
        loop {
            let has_io = !unpacker.queue(&gvl.natives).io.is_nil();
            // An error in the message is raised when the message is built.
            if !has_io && matches!(scan(gvl, unpacker), Ok(None)) {
                return Object::NIL;
            }
            gvl.yield_between_calls();
            let object = if has_io { read(gvl, unpacker) } else { build_next(gvl, unpacker) };
            gvl.yield_value(object);
        }
    }

    /// `register_type(type, class = nil, method_name = nil, &block)`
    fn register_type(gvl, this, ..arguments) {
        Arguments::check(arguments, 1, 3);
        check_changeable(&gvl.objects, this, "Unpacker");
        let kind = ext_type(gvl, arguments[0]);
        let class = arguments.get(1).copied().unwrap_or(Object::NIL);
        let unpacker = unpacker_of(gvl, class, arguments.get(2).copied().unwrap_or(Object::NIL));
        let held = of(this).get_mut(&mut gvl.natives);
        let entry = UnpackEntry { kind, class, unpacker: Some(unpacker), recursive: false };
        changeable(&mut held.registry).add_unpacker(entry);
        held.shown = None;
        Object::NIL
    }

    /// `{type => [class, proc, flags]}`
    fn registered_types_internal(gvl, this) {
        let shown = of(this).get(&gvl.natives).shown;
        let types = match shown.and_then(|shown| gvl.objects.hash(shown)) {
            Some(types) => types,
            None => show_types(gvl, of(this)),
        };
        gvl.hash_dup(types).into()
    }
}

fn show_types(gvl: &mut Gvl, unpacker: Handle<Unpacker>) -> crate::cruby::Hash {
    let types = gvl.hash_with_capacity(0);
    let mut index = 0;
    // Read again for every entry, because Ruby code runs between them.
    while let Some(&entry) = unpacker.get(&gvl.natives).registry.unpackers.get(index) {
        let (kind, shown) = (gvl.int(entry.kind.into()), entry.shown(gvl));
        gvl.insert(types, kind, shown);
        index += 1;
    }
    unpacker.get_mut(&mut gvl.natives).shown = Some(types.into());
    types
}

fn unpacker_of(gvl: &mut Gvl, class: Object, name: Object) -> Callable {
    if !class.is_nil() && !name.is_nil() {
        return Callable::of_class(gvl, class, name);
    }
    match gvl.block() {
        Some(block) => Callable::of_proc(block),
        None => raise(
            classes::argument_error(),
            format_args!("register_type takes either 3 arguments or a block"),
        ),
    }
}

/// Defines the class.
pub(super) fn define(gvl: &Gvl) {
    Class::of::<Unpacker>(gvl, globals().unpacker)
        .define(c"initialize", &initialize())
        .define(c"symbolize_keys?", &symbolize_keys())
        .define(c"freeze?", &freeze())
        .define(c"allow_unknown_ext?", &allow_unknown_ext())
        .define(c"buffer", &buffer_of())
        .define(c"read", &read_method())
        .define(c"skip", &skip())
        .define(c"skip_nil", &skip_nil())
        .define(c"read_array_header", &read_array_header())
        .define(c"read_map_header", &read_map_header())
        .define(c"feed", &feed_method())
        .define(c"each_message", &each_message())
        .define(c"reset", &reset())
        .define(c"register_type", &register_type())
        .define(c"registered_types_internal", &registered_types_internal())
        .define(c"full_unpack", &full_unpack_method())
        .alias(c"unpack", c"read")
        .alias(c"feed_reference", c"feed");
}
