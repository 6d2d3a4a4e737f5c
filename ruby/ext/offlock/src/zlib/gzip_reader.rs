//! `GzipReader.new`: native, so that opening a small file is cheap. Ruby handles the uncommon cases.

use magnus::value::{InnerValue, Lazy, LazyId, ReprValue};
use magnus::{
    Class, Error, IntoValue, Module, RClass, RModule, RObject, RString, Ruby, TryConvert, Value, method,
};

use super::engine::Engine;
use super::forward::{forward, has_keywords};
use super::gzip;
use super::read_buffer::ReadBuffer;
use crate::cruby::{Id, Object, catch};
use crate::region;

/// The number of compressed bytes that are read at once.
const PACKED: u32 = 1 << 16;

pub(super) fn define(ruby: &Ruby, zlib: RModule) -> Result<(), Error> {
    let file = zlib.define_class("GzipFile", ruby.class_object())?;
    let reader = zlib.define_class("GzipReader", file)?;
    reader.define_private_method("initialize", method!(initialize, -1))?;
    INPUT.get_inner_with(ruby).const_set("PACKED", PACKED)
}

/// The class of a reader's input; the rest of it is in `lib/offlock/zlib/gzip_input.rb`.
static INPUT: Lazy<RClass> = Lazy::new(|ruby| {
    let zlib = ruby.define_module("Offlock").and_then(|offlock| offlock.define_module("Zlib"));
    let input = zlib.and_then(|zlib| {
        let stream = zlib.define_class("GzipStream", ruby.class_object())?;
        zlib.define_class("GzipInput", stream)
    });
    input.expect("the extension defines these classes when it is loaded")
});

fn initialize(ruby: &Ruby, reader: RObject, arguments: &[Value]) -> Result<(), Error> {
    static OTHERWISE: LazyId = LazyId::new("offlock_open_with");
    match arguments {
        [io] if !has_keywords() => open(ruby, reader, *io),
        _ => forward(ruby, reader.as_value(), &OTHERWISE, arguments).map(drop),
    }
}

/// Opens the file in `io` without options.
fn open(ruby: &Ruby, reader: RObject, io: Value) -> Result<(), Error> {
    static START: LazyId = LazyId::new("start");
    // Nothing is decoded here, where other threads would otherwise get the lock.
    region::yield_between_calls()?;
    let input = open_on(ruby, reader, io)?;
    let packed = read(ruby, io)?;
    let header = match packed {
        Some(packed) => gzip::fields(ruby, packed).unwrap_or_default(),
        None => None,
    };
    match (packed, header) {
        (Some(packed), Some(header)) => begin(ruby, input, packed, header.as_value()),
        // The header is incomplete or invalid.
        (packed, _) => {
            let start = LazyId::get_inner_with(&START, ruby);
            input.funcall::<_, _, Value>(start, (packed,)).map(drop)
        }
    }
}

/// The initial state of a reader.
fn open_on(ruby: &Ruby, reader: RObject, io: Value) -> Result<RObject, Error> {
    static IO: LazyId = LazyId::new("@io");
    static CLOSED: LazyId = LazyId::new("@closed");
    static EXTERNAL: LazyId = LazyId::new("@external");
    static PLAIN: LazyId = LazyId::new("@plain");
    static ENGINE: LazyId = LazyId::new("@engine");
    static READ: LazyId = LazyId::new("@read");
    static MADE: LazyId = LazyId::new("@made");
    static CRC: LazyId = LazyId::new("@crc");
    static FILE: LazyId = LazyId::new("@offlock_file");
    static OWN_PLAIN: LazyId = LazyId::new("@offlock_plain");
    static PATH: LazyId = LazyId::new("path");
    static KEEP_PATH: LazyId = LazyId::new("offlock_keep_path");
    let external = catch(ruby, |gvl| gvl.external_encoding())?;
    let plain = ruby.obj_wrap(ReadBuffer::of(ruby, external)?).as_value();
    let engine = ruby.obj_wrap(Engine::first_member(ruby)?).as_value();
    let (closed, none) = (ruby.qfalse().as_value(), 0.into_value_with(ruby));
    let input = RObject::try_convert(INPUT.get_inner_with(ruby).obj_alloc()?)?;
    let of_input = [
        (&IO, io),
        (&CLOSED, closed),
        (&EXTERNAL, external),
        (&PLAIN, plain),
        (&ENGINE, engine),
        (&READ, none),
        (&MADE, none),
        (&CRC, none),
    ];
    let of_input = of_input.map(|variable| named(ruby, variable));
    let own = [(&FILE, input.as_value()), (&OWN_PLAIN, plain)].map(|variable| named(ruby, variable));
    catch(ruby, |gvl| {
        gvl.set_variables(Object::of(input), &of_input);
        gvl.set_variables(Object::of(reader), &own);
        Object::NIL
    })?;
    if let Some(path) = io.check_funcall::<_, _, Value>(LazyId::get_inner_with(&PATH, ruby), ()) {
        reader.funcall::<_, _, Value>(LazyId::get_inner_with(&KEEP_PATH, ruby), (path?,))?;
    }
    Ok(input)
}

/// The first bytes of the file; nil at its end.
fn read(ruby: &Ruby, io: Value) -> Result<Option<RString>, Error> {
    static READPARTIAL: LazyId = LazyId::new("readpartial");
    static READ: LazyId = LazyId::new("read");
    match io.check_funcall(LazyId::get_inner_with(&READPARTIAL, ruby), (PACKED,)) {
        Some(Err(error)) if error.is_kind_of(ruby.exception_eof_error()) => Ok(None),
        Some(read) => read,
        None => io.funcall(LazyId::get_inner_with(&READ, ruby), (PACKED,)),
    }
}

/// Keeps a copy of the bytes that were read, because the program may change its String.
fn begin(ruby: &Ruby, input: RObject, packed: RString, header: Value) -> Result<(), Error> {
    static HEADER: LazyId = LazyId::new("@header");
    static PACKED: LazyId = LazyId::new("@packed");
    static READ: LazyId = LazyId::new("@read");
    let [header, packed, read] =
        [(&HEADER, header), (&PACKED, packed.as_value()), (&READ, packed.len().into_value_with(ruby))]
            .map(|variable| named(ruby, variable));
    catch(ruby, |gvl| {
        let string = gvl.coerce_str(packed.1);
        let copy = gvl.copied(&string);
        gvl.set_variables(Object::of(input), &[header, (packed.0, copy.into()), read]);
        Object::NIL
    })?;
    Ok(())
}

fn named(ruby: &Ruby, (name, value): (&'static LazyId, Value)) -> (Id, Object) {
    (Id::from(LazyId::get_inner_with(name, ruby)), Object::of(value))
}
