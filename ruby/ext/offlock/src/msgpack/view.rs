//! Large messages: indexed without the lock, then made from the index as a whole or in part; and the extraction of
//! one field of every record.

use std::ffi::{c_int, c_long};

use magnus::rb_sys::{AsRawValue, FromRawValue, protect};
use magnus::{Error as RubyError, ExceptionClass, RArray, RString, Ruby, TryConvert, Value, function};
use offlock_core::memory::{self, OutOfMemory};
use offlock_core::msgpack::extract::{self, Span};
use offlock_core::msgpack::{Error, ErrorKind, Indexed, Node, Tape};
use rb_sys::*;

use super::build::{Builder, LIMITS};
use super::factory::default_registry;
use super::globals::globals;
use super::unpacker::check_extra;
use crate::borrow::{borrowed, numbers};
use crate::cruby::raw::{self as rb, DataType, Held, NIL};
use crate::error::{IntoException, no_memory};
use crate::region::{Operation, Pace, Region, Release};

/// Shorter messages are made in one pass under the lock.
pub(super) static DECODE: Operation = Operation { name: "msgpack.decode", break_even: 256 * 1024 };
static EXTRACT: Operation = Operation { name: "msgpack.extract", break_even: 32 * 1024 };

/// What an object of the class `Index` holds: a message and its tape.
pub(super) struct Index {
    tape: Tape,
    /// A frozen String.
    bytes: VALUE,
    /// Where the message ends.
    end: usize,
}

impl Default for Index {
    fn default() -> Self {
        Self { tape: Tape::default(), bytes: NIL, end: 0 }
    }
}

impl Held for Index {
    const DATA_TYPE: &'static DataType = {
        static DATA_TYPE: DataType = rb::data_type::<Index>(c"Offlock::MessagePack::Index", true);
        &DATA_TYPE
    };

    fn mark(&self) {
        rb::mark_object(self.bytes);
    }

    fn size(&self) -> usize {
        self.tape.memory()
    }
}

/// An error in a message, on its way out of a region.
struct MessageError(Error);

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
        // SAFETY: a live class.
        let class = unsafe { Value::from_raw(class) };
        match ExceptionClass::from_value(class) {
            Some(class) => RubyError::new(class, self.0.to_string()),
            None => RubyError::new(ruby.exception_runtime_error(), self.0.to_string()),
        }
    }
}

/// Indexes a message: `index(bytes, release)`.
fn index(ruby: &Ruby, source: RString, release: Release) -> Result<Value, RubyError> {
    let share = borrowed!(Bytes, source);
    let bytes = share.view();
    let (tape, end) = Region::new(&DECODE, bytes.len())
        .release(release)
        .run(ruby, |task| Tape::index(bytes, &LIMITS, task).map_err(MessageError))?;
    // SAFETY: the class is one of this kind of objects.
    let object = protect(|| unsafe { rb::alloc::<Index>(class_of_indexes()) })?;
    let held = rb::held::<Index>(object);
    // SAFETY: just made; the value is a live object.
    unsafe {
        *held = Index { tape, bytes: share.share().as_raw(), end };
        Ok(Value::from_raw(object))
    }
}

/// How much is indexed in one go: as many bytes, or as many messages.
const GROUP_BYTES: usize = 1 << 20;
const GROUP: usize = 1 << 13;

/// Unpacks every message of an Array, one group after the other: `unpack_each(array, options, release)`.
fn unpack_each(ruby: &Ruby, sources: RArray, options: Value, release: Release) -> Result<RArray, RubyError> {
    let messages = borrowed!(AllBytes, ruby, sources);
    let types = protect(|| super::unpacker::make(NIL, options.as_raw(), default_registry()))?;
    let objects = ruby.ary_new_capa(messages.views().len());
    // Whether it is worth leaving the lock is asked about all of them.
    let size = messages.views().iter().map(|bytes| bytes.len()).sum();
    let region = Region::new(&DECODE, size).release(release);
    let release = if region.leaves() { Release::Always } else { release };
    for group in groups(messages.views()) {
        let size = group.iter().map(|bytes| bytes.len()).sum();
        let tapes = Region::new(&DECODE, size).release(release).run(ruby, |task| {
            memory::collected(
                group.iter().map(|bytes| Tape::index(bytes, &LIMITS, task).map_err(MessageError)),
            )
        })?;
        let mut pace = Pace::new();
        protect(|| {
            for (bytes, (tape, end)) in group.iter().zip(&tapes) {
                check_extra(bytes.len() - end);
                // SAFETY: the messages and their tapes are kept by the frame that catches what is raised, and the types
                // are on its stack.
                unsafe {
                    let object = build_from(Indexed::at(tape, bytes, 0), types);
                    rb_ary_push(objects.as_raw(), object);
                    if pace.is_due(1 + Pace::copying(bytes.len())) {
                        pace.yield_or_raise();
                    }
                }
            }
            NIL
        })?;
    }
    std::hint::black_box(types);
    Ok(objects)
}

/// The messages, in groups that are indexed in one go.
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

/// The strings under `path` in every record: `extract(bytes, path, release)`.
fn extract(ruby: &Ruby, source: RString, path: RArray, release: Release) -> Result<Value, RubyError> {
    let share = borrowed!(Bytes, source);
    let bytes = share.view();
    let path = numbers(path, |_| None, |key, _| String::try_convert(key))?;
    let path: Vec<&[u8]> = path.iter().map(String::as_bytes).collect();
    let (column, end) = Region::new(&EXTRACT, bytes.len())
        .release(release)
        .run(ruby, |task| extract::column(bytes, &path, task).map_err(MessageError))?;
    let extra = bytes.len() - end;
    let strings = protect(|| {
        check_extra(extra);
        strings(bytes, &column)
    })?;
    // SAFETY: a live object.
    Ok(unsafe { Value::from_raw(strings) })
}

fn strings(bytes: &[u8], column: &[Option<Span>]) -> VALUE {
    let mut pace = Pace::new();
    // SAFETY: an Array, and Strings that are copied from the message; the caller catches what is raised.
    unsafe {
        let strings = rb_ary_new_capa(column.len() as c_long);
        for span in column {
            let text = span.map(|span| span.bytes(bytes));
            rb_ary_push(
                strings,
                text.map_or(NIL, |text| rb_utf8_str_new(text.as_ptr().cast(), text.len() as c_long)),
            );
            if pace.is_due(1 + Pace::copying(text.map_or(0, <[u8]>::len))) {
                pace.yield_or_raise();
            }
        }
        strings
    }
}

/// Whether a String is long enough to be indexed first.
pub(super) fn is_large(source: VALUE, options: VALUE) -> bool {
    let release = rb::option(options, c"release");
    // SAFETY: a String.
    let length = unsafe { RSTRING_LEN(source) } as usize;
    match release {
        NIL => length >= DECODE.break_even && u32::try_from(length).is_ok(),
        _ => {
            release == rb::symbol(c"always")
                || (release == rb::symbol(c"auto") && length >= DECODE.break_even)
        }
    }
}

/// Unpacks a String by way of its index.
pub(super) fn unpack_large(source: VALUE, options: VALUE) -> VALUE {
    let release = rb::symbol(c"always");
    let index = rb::call(globals().module, rb::id(c"index"), &[source, release]);
    whole(index, options)
}

/// The object of a whole message.
fn whole(index: VALUE, options: VALUE) -> VALUE {
    let held = rb::held::<Index>(index);
    // SAFETY: what a live object holds, which never changes.
    unsafe { check_extra(rb::bytes((*held).bytes).len() - (*held).end) };
    let object = make(index, 0, options);
    std::hint::black_box(index);
    object
}

/// Makes the object at a place of the tape, with the types of the default factory.
fn make(index: VALUE, place: usize, options: VALUE) -> VALUE {
    let held = rb::held::<Index>(index);
    let types = super::unpacker::make(NIL, options, default_registry());
    // SAFETY: what a live object holds, which never changes: the index is on the stack of the caller.
    let object = unsafe {
        let source = Indexed::at(&(*held).tape, rb::bytes((*held).bytes), place);
        build_from(source, types)
    };
    std::hint::black_box(types);
    object
}

/// Makes the next object of a tape, with the options and types of an unpacker that is on the stack of the caller.
///
/// # Safety
/// The tape and the message are kept by the caller, where nothing that raises skips what has to be dropped.
unsafe fn build_from(source: Indexed<'_>, types: VALUE) -> VALUE {
    let unpacker = rb::held::<super::unpacker::Unpacker>(types);
    // SAFETY: the contract of this function.
    unsafe { Builder::new(source, (*unpacker).options, unpacker).value(0) }
}

fn place_of(number: VALUE) -> usize {
    // SAFETY: converts any object, or raises.
    unsafe { rb_num2ulong(number) as usize }
}

/// `[kind, size]` of the value at a place: `:array`, `:map` or `:value`.
unsafe extern "C" fn kind(this: VALUE, place: VALUE) -> VALUE {
    rb::method(|| {
        let held = rb::held::<Index>(this);
        // SAFETY: what a live object holds, which never changes.
        let node = unsafe { (*held).tape.node(rb::bytes((*held).bytes), place_of(place)).0 };
        let (kind, size) = match node {
            Node::Array(size) => (c"array", size),
            Node::Map(size) => (c"map", size),
            _ => (c"value", 0),
        };
        // SAFETY: live objects, as many as said.
        unsafe { rb_ary_new_from_values(2, [rb::symbol(kind), rb::int(size.into())].as_ptr()) }
    })
}

/// The places of the values in a container, in order: of a map, those of keys and values.
unsafe extern "C" fn places(this: VALUE, place: VALUE) -> VALUE {
    rb::method(|| {
        let held = rb::held::<Index>(this);
        // SAFETY: what a live object holds, which never changes; an Array.
        unsafe {
            let places = rb_ary_new();
            let mut pace = Pace::new();
            let (node, mut at) = (*held).tape.node(rb::bytes((*held).bytes), place_of(place));
            let values = match node {
                Node::Array(items) => u64::from(items),
                Node::Map(entries) => u64::from(entries) * 2,
                _ => 0,
            };
            for _ in 0..values {
                rb_ary_push(places, rb::int(at as i64));
                at = (*held).tape.after(at);
                if pace.is_due(1) {
                    pace.yield_or_raise();
                }
            }
            places
        }
    })
}

/// The place of the value under a key that is a String, or nil.
unsafe extern "C" fn lookup(this: VALUE, place: VALUE, key: VALUE) -> VALUE {
    rb::method(|| {
        let held = rb::held::<Index>(this);
        let (place, key) = (place_of(place), rb::string(key));
        // SAFETY: what live objects hold; no Ruby code runs.
        let found = unsafe { (*held).tape.lookup(rb::bytes((*held).bytes), place, rb::bytes(key)) };
        found.map_or(NIL, |place| rb::int(place as i64))
    })
}

/// Makes the object at a place: `build(place, options = nil)`.
unsafe extern "C" fn build(count: c_int, first: *const VALUE, this: VALUE) -> VALUE {
    rb::method(|| {
        // SAFETY: what Ruby passed.
        let arguments = unsafe { rb::arguments(count, first) };
        rb::check_count(arguments.len(), 1, 2);
        let options = arguments.get(1).copied().unwrap_or(NIL);
        if place_of(arguments[0]) == 0 {
            whole(this, options)
        } else {
            make(this, place_of(arguments[0]), options)
        }
    })
}

fn class_of_indexes() -> VALUE {
    rb::class(globals().module, c"Index", object_class())
}

fn object_class() -> VALUE {
    // SAFETY: reads a class that lives for ever.
    unsafe { rb_cObject }
}

/// Defines the class and the functions. What programs use is written in Ruby.
pub(super) fn define() {
    let class = class_of_indexes();
    // SAFETY: only `index` makes objects of this class.
    unsafe { rb_undef_alloc_func(class) };
    rb::define(class, c"kind", kind as _, 1);
    rb::define(class, c"places", places as _, 1);
    rb::define(class, c"lookup", lookup as _, 2);
    rb::define(class, c"build", build as _, -1);
}

/// Defines the functions that leave the lock.
pub(super) fn define_functions() -> Result<(), RubyError> {
    // SAFETY: a live module.
    let module = unsafe { Value::from_raw(globals().module) };
    let module = magnus::RModule::try_convert(module)?;
    module.define_module_function("index", function!(index, 2))?;
    module.define_module_function("unpack_each", function!(unpack_each, 3))?;
    module.define_module_function("extract_column", function!(extract, 3))
}
