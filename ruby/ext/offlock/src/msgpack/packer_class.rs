//! The methods of the class `Packer`.

use offlock_core::msgpack::write;

use super::buffer::{self, Owner};
use super::byte_queue::{self, HasQueue as _, io_and_options};
use super::globals::globals;
use super::pack::Writer;
use super::packer::{Packer, configure};
use super::registry::{Callable, PackEntry, changeable, check_changeable, ext_type};
use crate::cruby::{
    Arguments, Class, Gvl, Handle, Id, Kind, Locked as _, Object, classes, encodings, methods, raise,
    raise_owned,
};

fn of(this: Object) -> Handle<Packer> {
    Handle::of(this)
}

/// Runs `body` with a writer. If there is an IO and enough output, writes the output to the IO.
#[inline(always)]
pub(super) fn with_writer(
    gvl: &mut Gvl,
    packer: Handle<Packer>,
    body: impl FnOnce(&mut Writer<'_, Handle<Packer>>),
) {
    body(&mut Writer::of(gvl, packer));
    let bytes = packer.queue(&gvl.natives);
    if !bytes.io.is_nil() && bytes.rest().len() >= bytes.io_buffer_size {
        byte_queue::write_to(gvl, packer, packer.queue(&gvl.natives).io);
    }
}

/// Writes all packed bytes to the IO, or returns them as a String if there is none.
pub(super) fn full_pack(gvl: &mut Gvl, packer: Handle<Packer>) -> Object {
    packer.get_mut(&mut gvl.natives).recover();
    let io = packer.queue(&gvl.natives).io;
    if !io.is_nil() {
        byte_queue::write_to(gvl, packer, io);
        return Object::NIL;
    }
    let string = byte_queue::to_string(gvl, packer);
    packer.queue_mut(&mut gvl.natives).clear();
    string.into()
}

/// Raises `TypeError` for an object of another type.
fn wrong_type(gvl: &mut Gvl, object: Object, expected: &str) -> ! {
    let shown = match gvl.objects.kind(object) {
        Kind::Nil => "nil".to_owned(),
        Kind::True => "true".to_owned(),
        Kind::False => "false".to_owned(),
        _ => gvl.objects.class_name(object),
    };
    raise_owned(classes::type_error(), format!("wrong argument type {shown} (expected {expected})"))
}

/// Makes a method that writes objects of one type.
macro_rules! writes {
    ($($name:ident: |$writer:ident, $kind:pat, $expected:literal| $body:expr;)+) => {
        methods! {
            $(
                small fn $name(gvl, this, object) {
                    let kind = gvl.objects.kind(object);
                    #[allow(irrefutable_let_patterns, reason = "one of the methods takes any type")]
                    let $kind = kind else { wrong_type(gvl, object, $expected) };
                    with_writer(gvl, of(this), |$writer| { $body; });
                    this
                }
            )+
        }
    };
}

writes! {
    write_string: |writer, Kind::Str(string), "String"| writer.string(string);
    write_array: |writer, Kind::Array(array), "Array"| writer.array(array);
    write_hash: |writer, Kind::Hash(hash), "Hash"| writer.hash(hash);
    write_symbol: |writer, Kind::Symbol(symbol), "Symbol"| writer.symbol(symbol);
    write_bin: |writer, Kind::Str(string), "String"| {
        let binary = writer.gvl().encode(string, encodings::binary());
        writer.string(binary)
    };
}

methods! {
    fn initialize(gvl, this, ..arguments) {
        let (io, options) = io_and_options(gvl, arguments);
        configure(gvl, of(this), io, options);
        this
    }

    fn compatibility_mode(gvl, this) {
        Object::bool(of(this).get(&gvl.natives).compatible)
    }

    fn buffer_of(gvl, this) {
        if let Some(buffer) = of(this).get(&gvl.natives).buffer {
            return buffer;
        }
        let buffer = buffer::view_of(gvl, Owner::Packer(of(this)));
        of(this).get_mut(&mut gvl.natives).buffer = Some(buffer);
        buffer
    }

    small fn write_value(gvl, this, object) {
        with_writer(gvl, of(this), |writer| { writer.value(object); });
        this
    }

    small fn write_nil(gvl, this) {
        with_writer(gvl, of(this), |writer| write::nil(writer.out()));
        this
    }

    small fn write_true(gvl, this) {
        with_writer(gvl, of(this), |writer| write::bool(writer.out(), true));
        this
    }

    small fn write_false(gvl, this) {
        with_writer(gvl, of(this), |writer| write::bool(writer.out(), false));
        this
    }

    small fn write_float(gvl, this, object) {
        with_writer(gvl, of(this), |writer| writer.float(object));
        this
    }

    small fn write_int(gvl, this, object) {
        if !matches!(gvl.objects.kind(object), Kind::Fixnum(_) | Kind::Bignum(_)) {
            wrong_type(gvl, object, "Integer");
        }
        with_writer(gvl, of(this), |writer| { writer.value(object); });
        this
    }

    small fn write_array_header(gvl, this, length) {
        let length = gvl.coerce_u32(length) as usize;
        with_writer(gvl, of(this), |writer| write::array_header(writer.out(), length));
        this
    }

    small fn write_map_header(gvl, this, length) {
        let length = gvl.coerce_u32(length) as usize;
        with_writer(gvl, of(this), |writer| write::map_header(writer.out(), length));
        this
    }

    small fn write_bin_header(gvl, this, length) {
        let length = gvl.coerce_u32(length) as usize;
        with_writer(gvl, of(this), |writer| write::bin_header(writer.out(), length));
        this
    }

    small fn write_float32(gvl, this, number) {
        if !gvl.objects.is_a(number, classes::numeric()) {
            raise(classes::argument_error(), format_args!("Expected numeric"));
        }
        let number = gvl.coerce_f64(number) as f32;
        with_writer(gvl, of(this), |writer| write::f32(writer.out(), number));
        this
    }

    small fn write_ext(gvl, this, kind, payload) {
        let kind = ext_type(gvl, kind);
        let payload = gvl.coerce_str(payload);
        with_writer(gvl, of(this), |writer| writer.ext(kind, payload));
        this
    }

    small fn write_extension(gvl, this, extension) {
        if !matches!(gvl.objects.kind(extension), Kind::Struct) {
            wrong_type(gvl, extension, "Struct");
        }
        let (kind, payload) = (gvl.member(extension, 0), gvl.member(extension, 1));
        if !matches!(gvl.objects.kind(kind), Kind::Fixnum(_)) {
            too_big(gvl, kind);
        }
        let kind = ext_type(gvl, kind);
        let payload = gvl.coerce_str(payload);
        with_writer(gvl, of(this), |writer| writer.ext(kind, payload));
        this
    }

    fn flush(gvl, this) {
        let io = of(this).queue(&gvl.natives).io;
        if !io.is_nil() {
            byte_queue::write_to(gvl, of(this), io);
        }
        this
    }

    fn reset(gvl, this) {
        let packer = of(this).get_mut(&mut gvl.natives);
        packer.recover();
        packer.bytes.clear();
        Object::NIL
    }

    fn size(gvl, this) {
        gvl.int(of(this).queue(&gvl.natives).rest().len() as i64)
    }

    fn is_empty(gvl, this) {
        Object::bool(of(this).queue(&gvl.natives).rest().is_empty())
    }

    fn to_str(gvl, this) {
        byte_queue::to_string(gvl, of(this)).into()
    }

    fn write_to(gvl, this, io) {
        let written = byte_queue::write_to(gvl, of(this), io);
        gvl.int(written as i64)
    }

    fn full_pack_method(gvl, this) {
        full_pack(gvl, of(this))
    }

    /// `register_type(type, class, method_name = nil, &block)`
    fn register_type(gvl, this, ..arguments) {
        Arguments::check(arguments, 2, 3);
        check_changeable(&gvl.objects, this, "Packer");
        let class = arguments[1];
        if !gvl.objects.is_a(class, classes::module()) {
            let name = gvl.objects.class_name(class);
            raise_owned(classes::argument_error(), format!("expected Module/Class but found {name}."));
        }
        let packer = packer_of(gvl, arguments.get(2).copied().unwrap_or(Object::NIL));
        let kind = ext_type(gvl, arguments[0]);
        let held = of(this).get_mut(&mut gvl.natives);
        let registry = changeable(&mut held.registry);
        registry.add_packer(PackEntry { class, kind, packer: Some(packer), recursive: false });
        registry.symbols |= class == classes::symbol();
        held.found.clear();
        Object::NIL
    }

    /// `{class => [type, proc, flags]}`
    fn registered_types_internal(gvl, this) {
        let types = gvl.hash_with_capacity(0);
        let mut index = 0;
        // Read again for every entry, because Ruby code runs between them.
        while let Some(&entry) = of(this).get(&gvl.natives).registry.packers.get(index) {
            let shown = entry.shown(gvl);
            gvl.insert(types, entry.class, shown);
            index += 1;
        }
        types.into()
    }
}

fn too_big(gvl: &mut Gvl, kind: Object) -> ! {
    let shown = gvl.display(kind);
    let shown = String::from_utf8_lossy(&gvl.objects.bytes(shown)).into_owned();
    let message = format!("integer {shown} too big to convert to `signed char'");
    drop(shown);
    raise_owned(classes::range_error(), message)
}

/// The block of the running method, or the callable that the argument names.
fn packer_of(gvl: &mut Gvl, given: Object) -> Callable {
    if let Some(block) = gvl.block() {
        return Callable::of_proc(block);
    }
    if matches!(gvl.objects.kind(given), Kind::Symbol(_) | Kind::Str(_)) {
        return Callable::Own(gvl.coerce_id(given));
    }
    Callable::of_proc(gvl.call(given, Id::of(c"to_proc"), &[]))
}

/// Defines the class.
pub(super) fn define(gvl: &Gvl) {
    Class::of::<Packer>(gvl, globals().packer)
        .define(c"initialize", &initialize())
        .define(c"compatibility_mode?", &compatibility_mode())
        .define(c"buffer", &buffer_of())
        .define(c"write", &write_value())
        .define(c"write_nil", &write_nil())
        .define(c"write_true", &write_true())
        .define(c"write_false", &write_false())
        .define(c"write_float", &write_float())
        .define(c"write_string", &write_string())
        .define(c"write_bin", &write_bin())
        .define(c"write_array", &write_array())
        .define(c"write_hash", &write_hash())
        .define(c"write_symbol", &write_symbol())
        .define(c"write_int", &write_int())
        .define(c"write_extension", &write_extension())
        .define(c"write_array_header", &write_array_header())
        .define(c"write_map_header", &write_map_header())
        .define(c"write_bin_header", &write_bin_header())
        .define(c"write_ext", &write_ext())
        .define(c"write_float32", &write_float32())
        .define(c"flush", &flush())
        .define(c"reset", &reset())
        .define(c"size", &size())
        .define(c"empty?", &is_empty())
        .define(c"write_to", &write_to())
        .define(c"to_str", &to_str())
        .define(c"register_type", &register_type())
        .define(c"registered_types_internal", &registered_types_internal())
        .define(c"full_pack", &full_pack_method())
        .alias(c"pack", c"write")
        .alias(c"clear", c"reset")
        .alias(c"to_s", c"to_str");
}
