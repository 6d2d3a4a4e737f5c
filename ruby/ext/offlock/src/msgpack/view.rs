//! Indexes large messages without the lock, and builds them from the index as a whole or in part.

use magnus::{
    Error as RubyError, ExceptionClass, RArray, RModule, RString, Ruby, TryConvert, Value, function,
};
use offlock_core::memory::{self, OutOfMemory};
use offlock_core::msgpack::{Error, ErrorKind, Indexed, Node, Tape};

use super::build::{Builder, check_extra};
use super::factory::default_registry;
use super::globals::globals;
use super::options::LIMITS;
use super::unpacker::{self, Unpacker};
use crate::borrow::borrowed;
use crate::cruby::string::Share;
use crate::cruby::{Arguments, Class, Data, DataType, Gvl, Handle, Id, Marker, Object, Str, catch, methods};
use crate::error::{IntoException, no_memory};
use crate::operations::MSGPACK_DECODE;
use crate::region::{Region, Release, Yielder};

/// The native data of the class `Index`: a message and its tape.
#[derive(Default)]
pub(super) struct Index {
    tape: Tape,
    message: Option<Share>,
    /// The offset of the end of the message.
    end: usize,
}

impl Data for Index {
    const DATA_TYPE: &'static DataType = {
        static DATA_TYPE: DataType = DataType::of::<Index>(c"Offlock::MessagePack::Index");
        &DATA_TYPE
    };
    const IS_SHAREABLE: bool = true;

    fn mark(&self, marker: &Marker) {
        self.message.iter().for_each(|message| marker.mark(message.object()));
    }

    fn size(&self) -> usize {
        self.tape.memory()
    }
}

impl Index {
    fn bytes(&self) -> &[u8] {
        self.message.as_ref().map_or(&[], Share::bytes)
    }
}

/// An error in a message, to be returned from a region.
pub(super) struct MessageError(pub(super) Error);

impl From<OutOfMemory> for MessageError {
    fn from(none: OutOfMemory) -> Self {
        Self(none.into())
    }
}

impl From<Error> for MessageError {
    fn from(error: Error) -> Self {
        Self(error)
    }
}

impl IntoException for MessageError {
    fn into_exception(self, ruby: &Ruby) -> RubyError {
        let names = globals();
        let class = match self.0.kind {
            ErrorKind::Truncated => return RubyError::new(ruby.exception_eof_error(), self.0.to_string()),
            ErrorKind::OutOfMemory => return no_memory(ruby),
            ErrorKind::Stopped => return offlock_core::Stopped.into_exception(ruby),
            ErrorKind::TooDeep(_) => names.too_deep,
            ErrorKind::Unexpected { .. } => names.unexpected_type,
            _ => names.malformed,
        };
        let class = ExceptionClass::from_value(class.value());
        RubyError::new(class.unwrap_or_else(|| ruby.exception_runtime_error()), self.0.to_string())
    }
}

/// Indexes a message: `index(bytes, release)`.
fn index(ruby: &Ruby, source: RString, release: Release) -> Result<Value, RubyError> {
    let share = borrowed!(Bytes, source);
    let bytes = share.view();
    let (tape, end) = Region::new(&MSGPACK_DECODE, bytes.len())
        .release(release)
        .run(ruby, |task| Tape::index(bytes, &LIMITS, task).map_err(MessageError))?;
    let message = Some(share.share().kept());
    let object = catch(ruby, |gvl| Handle::<Index>::new(gvl, globals().index).object())?;
    catch(ruby, |gvl| {
        Handle::<Index>::of(Object::of(object)).fill(&mut gvl.natives, Index { tape, message, end });
        Object::NIL
    })?;
    Ok(object)
}

/// The number of bytes, or of messages, that are indexed at once.
const GROUP_BYTES: usize = 1 << 20;
const GROUP: usize = 1 << 13;

/// Unpacks every message of an Array, one group after the other: `unpack_each(array, options, release)`.
fn unpack_each(ruby: &Ruby, sources: RArray, options: Value, release: Release) -> Result<RArray, RubyError> {
    let messages = borrowed!(AllBytes, ruby, sources);
    let types = catch(ruby, |gvl| {
        let options = gvl.objects.hash(Object::of(options));
        let registry = default_registry(gvl);
        unpacker::make(gvl, Object::NIL, options, registry).object()
    })?;
    let objects = ruby.ary_new_capa(messages.views().len());
    // The total size decides whether to release the lock.
    let size = messages.views().iter().map(|bytes| bytes.len()).sum();
    let region = Region::new(&MSGPACK_DECODE, size).release(release);
    let release = if region.leaves() { Release::ALWAYS } else { release };
    for group in groups(messages.views()) {
        let size = group.iter().map(|bytes| bytes.len()).sum();
        let tapes = Region::new(&MSGPACK_DECODE, size).release(release).run(ruby, |task| {
            memory::collected(
                group.iter().map(|bytes| Tape::index(bytes, &LIMITS, task).map_err(MessageError)),
            )
        })?;
        let mut yielder = Yielder::new();
        // This frame owns the messages and their tapes, and catches exceptions.
        catch(ruby, |gvl| {
            let types = Handle::<Unpacker>::of(Object::of(types));
            for (bytes, (tape, end)) in group.iter().zip(&tapes) {
                check_extra(bytes.len() - end);
                let object = build_from(gvl, Indexed::at(tape, bytes, 0), types);
                gvl.push(Object::of(objects), object);
                gvl.tick(&mut yielder, 1 + Yielder::copying(bytes.len()));
            }
            Object::NIL
        })?;
    }
    std::hint::black_box(types);
    Ok(objects)
}

/// The messages, in groups that are indexed at once.
fn groups<'a, 'b>(messages: &'a [&'b [u8]]) -> impl Iterator<Item = &'a [&'b [u8]]> {
    let (mut bytes, mut count) = (0, 0);
    messages.chunk_by(move |message, _| {
        bytes += message.len();
        count += 1;
        let full = bytes >= GROUP_BYTES || count >= GROUP;
        if full {
            (bytes, count) = (0, 0);
        }
        !full
    })
}

/// Returns whether a String is long enough to be indexed first.
pub(super) fn is_large(gvl: &Gvl, source: Str, options: Object) -> bool {
    let release = gvl.objects.option(gvl.objects.hash(options), c"release");
    let length = gvl.objects.bytesize(source);
    if release.is_nil() {
        return length >= MSGPACK_DECODE.break_even && u32::try_from(length).is_ok();
    }
    let is = |name| release == Id::of(name).symbol();
    is(c"always") || (is(c"auto") && length >= MSGPACK_DECODE.break_even)
}

/// Unpacks a String with an index.
pub(super) fn unpack_large(gvl: &mut Gvl, source: Object, options: Object) -> Object {
    let release = Id::of(c"always").symbol();
    let index = gvl.call(globals().module, Id::of(c"index"), &[source, release]);
    whole(gvl, index, options)
}

/// Builds the object of a whole message.
fn whole(gvl: &mut Gvl, index: Object, options: Object) -> Object {
    let held = of(index).get(&gvl.natives);
    check_extra(held.bytes().len() - held.end);
    build_at(gvl, index, 0, options)
}

/// Builds the object at a place of the tape, with the types of the default factory.
fn build_at(gvl: &mut Gvl, index: Object, place: usize, options: Object) -> Object {
    let options = gvl.objects.hash(options);
    let registry = default_registry(gvl);
    let types = unpacker::make(gvl, Object::NIL, options, registry);
    // SAFETY: an index never changes, and lives as long as it is on the stack, which it is until the end.
    let held = unsafe { of(index).lasting() };
    let object = build_from(gvl, Indexed::at(&held.tape, held.bytes(), place), types);
    types.keep();
    index.keep();
    object
}

/// Builds the next object of a tape, with the options and types of an unpacker that is on the stack of the
/// caller.
fn build_from(gvl: &mut Gvl, source: Indexed<'_>, types: Handle<Unpacker>) -> Object {
    let options = types.get(&gvl.natives).options;
    Builder::new(gvl, source, options, Some(types)).value(0)
}

fn of(this: Object) -> Handle<Index> {
    Handle::of(this)
}

methods! {
    /// `[kind, size]` of the value at a place: `:array`, `:map` or `:value`.
    fn kind(gvl, this, place) {
        let place = gvl.coerce_usize(place);
        let held = of(this).get(&gvl.natives);
        let (kind, size) = match held.tape.node(held.bytes(), place).0 {
            Node::Array(size) => (c"array", size),
            Node::Map(size) => (c"map", size),
            _ => (c"value", 0),
        };
        gvl.array(&[Id::of(kind).symbol(), gvl.int(size.into())]).into()
    }

    /// The places of the values in a container, in order; of a map, those of its keys and values.
    fn places(gvl, this, place) {
        let place = gvl.coerce_usize(place);
        let places = gvl.array_with_capacity(0);
        let mut yielder = Yielder::new();
        let held = of(this).get(&gvl.natives);
        let (node, mut at) = held.tape.node(held.bytes(), place);
        let values = match node {
            Node::Array(items) => u64::from(items),
            Node::Map(entries) => u64::from(entries) * 2,
            _ => 0,
        };
        for _ in 0..values {
            gvl.extend(places, &[gvl.int(at as i64)]);
            at = of(this).get(&gvl.natives).tape.after(at);
            gvl.tick(&mut yielder, 1);
        }
        places.into()
    }

    /// The place of the value under a key that is a String, or nil.
    fn lookup(gvl, this, place, key) {
        let (place, key) = (gvl.coerce_usize(place), gvl.coerce_str(key));
        let held = of(this).get(&gvl.natives);
        let found = held.tape.lookup(held.bytes(), place, &gvl.objects.bytes(key));
        found.map_or(Object::NIL, |place| gvl.int(place as i64))
    }

    /// Builds the object at a place: `build(place, options = nil)`.
    fn build(gvl, this, ..arguments) {
        Arguments::check(arguments, 1, 2);
        let options = arguments.get(1).copied().unwrap_or(Object::NIL);
        match gvl.coerce_usize(arguments[0]) {
            0 => whole(gvl, this, options),
            place => build_at(gvl, this, place, options),
        }
    }
}

/// Defines the class. The public methods are written in Ruby.
pub(super) fn define(gvl: &Gvl) {
    Class::without_new(gvl, globals().index)
        .define(c"kind", &kind())
        .define(c"places", &places())
        .define(c"lookup", &lookup())
        .define(c"build", &build());
}

/// Defines the functions that release the lock.
pub(super) fn define_functions() -> Result<(), RubyError> {
    let module = RModule::try_convert(globals().module.value())?;
    module.define_module_function("index", function!(index, 2))?;
    module.define_module_function("unpack_each", function!(unpack_each, 3))
}
