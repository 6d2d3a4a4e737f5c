//! Large messages: indexed without the lock, then made from the index as a whole or in part; and the extraction of
//! one field of every record.

use std::ffi::{c_int, c_long};

use magnus::rb_sys::{AsRawValue, FromRawValue, protect};
use magnus::{Error as RubyError, ExceptionClass, RString, Ruby, TryConvert, Value, function};
use offlock_core::memory::{self, OutOfMemory};
use offlock_core::msgpack::extract::{self, Span};
use offlock_core::msgpack::{Error, ErrorKind, Indexed, Node, Tape};
use rb_sys::*;

use super::factory::default_registry;
use super::globals::globals;
use super::maker::{LIMITS, Maker};
use super::rb::{self, Held, Kind, NIL};
use super::registry::Registry;
use super::unpacker::{check_extra, options_from};
use crate::borrow::Bytes;
use crate::memory::no_memory;
use crate::region::{Failure, Operation, Region, Release};

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
    const KIND: &'static Kind = {
        static KIND: Kind = rb::kind::<Index>(c"Offlock::MessagePack::Index", true);
        &KIND
    };

    fn mark(&self) {
        rb::mark_object(self.bytes);
    }

    fn size(&self) -> usize {
        self.tape.memory()
    }
}

/// An error in a message, on its way out of a region.
struct Wrong(Error);

impl From<OutOfMemory> for Wrong {
    fn from(none: OutOfMemory) -> Self {
        Self(none.into())
    }
}

impl From<Error> for Wrong {
    fn from(error: Error) -> Self {
        Self(error)
    }
}

impl Failure for Wrong {
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
    let share = Bytes::borrow(source)?;
    let bytes = share.view();
    let (tape, end) = Region::new(&DECODE, bytes.len())
        .release(release)
        .run(ruby, |task| Tape::index(bytes, &LIMITS, task).map_err(Wrong))?;
    new_index(tape, end, &share)
}

fn new_index(tape: Tape, end: usize, share: &Bytes) -> Result<Value, RubyError> {
    // SAFETY: the class is one of this kind of objects.
    let object = protect(|| unsafe { rb::alloc::<Index>(class_of_indexes()) })?;
    let held = rb::held::<Index>(object);
    // SAFETY: just made; the value is a live object.
    unsafe {
        *held = Index { tape, bytes: share.share().as_raw(), end };
        Ok(Value::from_raw(object))
    }
}

/// Indexes every message of an Array, leaving the lock at most once: `index_all(array, release)`.
fn index_all(ruby: &Ruby, sources: magnus::RArray, release: Release) -> Result<magnus::RArray, RubyError> {
    let shares = sources.into_iter().map(|source| Bytes::borrow(RString::try_convert(source)?));
    let shares = shares.collect::<Result<Vec<_>, _>>()?;
    // Where the garbage collector finds them while they are in a Rust list.
    let kept = ruby.ary_from_iter(shares.iter().map(Bytes::share));
    let views: Vec<&[u8]> = shares.iter().map(Bytes::view).collect();
    let size = views.iter().map(|bytes| bytes.len()).sum();
    let tapes = Region::new(&DECODE, size).release(release).run(ruby, |task| {
        memory::collected(views.iter().map(|bytes| Tape::index(bytes, &LIMITS, task).map_err(Wrong)))
    })?;
    let indexes = ruby.ary_new_capa(shares.len());
    for ((tape, end), share) in tapes.into_iter().zip(&shares) {
        indexes.push(new_index(tape, end, share)?)?;
    }
    std::hint::black_box(kept);
    Ok(indexes)
}

/// The strings under `path` in every record: `extract(bytes, path, release)`.
fn extract(ruby: &Ruby, source: RString, path: Vec<String>, release: Release) -> Result<Value, RubyError> {
    let share = Bytes::borrow(source)?;
    let bytes = share.view();
    let path: Vec<&[u8]> = path.iter().map(String::as_bytes).collect();
    let (column, end) = Region::new(&EXTRACT, bytes.len())
        .release(release)
        .run(ruby, |task| extract::column(bytes, &path, task).map_err(Wrong))?;
    let extra = bytes.len() - end;
    let strings = protect(|| {
        check_extra(extra);
        strings(bytes, &column)
    })?;
    // SAFETY: a live object.
    Ok(unsafe { Value::from_raw(strings) })
}

fn strings(bytes: &[u8], column: &[Option<Span>]) -> VALUE {
    // SAFETY: an Array, and Strings that are copied from the message.
    unsafe {
        let strings = rb_ary_new_capa(column.len() as c_long);
        for span in column {
            let text = span.map(|span| span.bytes(bytes));
            rb_ary_push(
                strings,
                text.map_or(NIL, |text| rb_utf8_str_new(text.as_ptr().cast(), text.len() as c_long)),
            );
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
    let registry = default_types();
    // SAFETY: what live objects hold, which never changes: the index is on the stack of the caller, and so is the
    // packer that holds the types.
    unsafe {
        let source = Indexed::at(&(*held).tape, rb::bytes((*held).bytes), place);
        let mut maker = Maker::alone(source, options_from(options), registry.1);
        let object = maker.value(0);
        std::hint::black_box(registry.0);
        object
    }
}

/// The types of the default factory, kept by an object that is found on the stack.
fn default_types() -> (VALUE, *const Registry) {
    let keeper = super::unpacker::make(NIL, NIL, default_registry());
    // SAFETY: what a live object holds.
    let registry =
        unsafe { std::sync::Arc::as_ptr(&(&*rb::held::<super::unpacker::Unpacker>(keeper)).registry) };
    (keeper, registry)
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
            let (node, mut at) = (*held).tape.node(rb::bytes((*held).bytes), place_of(place));
            let values = match node {
                Node::Array(items) => u64::from(items),
                Node::Map(entries) => u64::from(entries) * 2,
                _ => 0,
            };
            for _ in 0..values {
                rb_ary_push(places, rb::int(at as i64));
                at = (*held).tape.after(at);
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
    module.define_module_function("index_all", function!(index_all, 2))?;
    module.define_module_function("extract_column", function!(extract, 3))
}
