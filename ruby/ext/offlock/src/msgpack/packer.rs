//! The class `Packer`.

use std::ffi::c_int;
use std::sync::Arc;

use offlock_core::msgpack::write;
use rb_sys::*;

use super::buffer::{self, Bytes, Owner};
use super::globals::globals;
use super::pack::Writer;
use super::registry::{Callable, PackEntry, Registry, changeable, ext_type};
use crate::cruby::raw::{self as rb, DataType, Held, NIL};

/// What an object of the class `Packer` holds.
pub(super) struct Packer {
    pub(super) bytes: Bytes,
    pub(super) registry: Arc<Registry>,
    /// Strings in the format's first version.
    pub(super) compatible: bool,
    /// The `Buffer` that shows the bytes, or nil.
    buffer: VALUE,
    /// What was written before the payload of a recursive extension, one for each that is being written.
    aside: Vec<Bytes>,
    /// The entries found for classes that are not registered themselves.
    found: Vec<(VALUE, Option<PackEntry>)>,
}

impl Default for Packer {
    fn default() -> Self {
        Self {
            bytes: Bytes::default(),
            registry: Arc::default(),
            compatible: false,
            buffer: NIL,
            aside: Vec::new(),
            found: Vec::new(),
        }
    }
}

impl Held for Packer {
    const DATA_TYPE: &'static DataType = {
        static DATA_TYPE: DataType = rb::data_type::<Packer>(c"Offlock::MessagePack::Packer", false);
        &DATA_TYPE
    };

    fn mark(&self) {
        self.bytes.mark();
        self.registry.mark();
        rb::mark_object(self.buffer);
        self.aside.iter().for_each(Bytes::mark);
        self.found.iter().for_each(|&(class, _)| rb::mark_object(class));
    }

    fn size(&self) -> usize {
        self.bytes.memory() + self.registry.size() / Arc::strong_count(&self.registry)
    }
}

/// How many classes a packer remembers the entry of.
const REMEMBERED: usize = 64;

impl Packer {
    /// The entry that an object is packed with.
    pub(super) fn entry_for(&mut self, object: VALUE) -> Option<PackEntry> {
        if self.registry.packers.is_empty() {
            return None;
        }
        let class = rb::class_of(object);
        if let Some(&(_, entry)) = self.found.iter().find(|(known, _)| *known == class) {
            return entry;
        }
        let entry = self.registry.packer(object);
        if self.found.len() < REMEMBERED {
            self.found.push((class, entry));
        }
        entry
    }

    /// Begins the payload of a recursive extension: what was written so far waits. Returns how many waited before.
    pub(super) fn set_aside(&mut self) -> usize {
        let outer = std::mem::take(&mut self.bytes);
        self.aside.push(outer);
        self.aside.len() - 1
    }

    /// Ends the payload of a recursive extension, and those inside it that were left by an exception.
    pub(super) fn put_back(&mut self, outer: usize) {
        self.aside.truncate(outer + 1);
        if let Some(bytes) = self.aside.pop() {
            self.bytes = bytes;
        }
    }

    /// Forgets payloads that were left by an exception.
    fn recover(&mut self) {
        if !self.aside.is_empty() {
            self.put_back(0);
        }
    }
}

/// A new packer.
pub(super) fn make(io: VALUE, options: VALUE, registry: Arc<Registry>) -> VALUE {
    // SAFETY: the class is one of this kind of objects.
    let object = unsafe { rb::alloc::<Packer>(globals().packer) };
    // SAFETY: just made.
    unsafe { (*rb::held::<Packer>(object)).registry = registry };
    configure(object, io, options);
    object
}

fn configure(object: VALUE, io: VALUE, options: VALUE) {
    let packer = rb::held::<Packer>(object);
    // SAFETY: what a live object holds.
    unsafe {
        buffer::set_options(&mut (*packer).bytes, io, options);
        (*packer).compatible = TEST(rb::option(options, c"compatibility_mode"));
    }
}

/// Runs `body` with a writer, and passes what was written on to the IO, if there is one and it is enough.
pub(super) fn with_writer(this: VALUE, body: impl FnOnce(&mut Writer<Bytes>)) -> VALUE {
    let packer = rb::held::<Packer>(this);
    // SAFETY: what a live object holds; no reference is held while Ruby code runs.
    unsafe {
        body(&mut Writer::of(&raw mut (*packer).bytes, packer, this));
        let bytes = &raw mut (*packer).bytes;
        if (*bytes).io != NIL && (*bytes).rest().len() >= (*bytes).io_buffer_size {
            buffer::write_to(bytes, (*bytes).io);
        }
    }
    this
}

/// Everything that was packed: written to the IO, or else as a String.
pub(super) fn full_pack(this: VALUE) -> VALUE {
    let packer = rb::held::<Packer>(this);
    // SAFETY: what a live object holds; no reference is held while Ruby code runs.
    unsafe {
        (*packer).recover();
        let bytes = &raw mut (*packer).bytes;
        if (*bytes).io != NIL {
            buffer::write_to(bytes, (*bytes).io);
            return NIL;
        }
        let string = buffer::to_string(bytes);
        (*bytes).clear();
        string
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

unsafe extern "C" fn compatibility_mode(this: VALUE) -> VALUE {
    // SAFETY: what a live object holds.
    rb::method(|| if unsafe { (*rb::held::<Packer>(this)).compatible } { rb::TRUE } else { rb::FALSE })
}

unsafe extern "C" fn buffer_of(this: VALUE) -> VALUE {
    rb::method(|| {
        let packer = rb::held::<Packer>(this);
        // SAFETY: what a live object holds, which does not move.
        unsafe {
            if (*packer).buffer == NIL {
                (*packer).buffer = buffer::view_of(Owner { object: this, bytes: &raw mut (*packer).bytes });
            }
            (*packer).buffer
        }
    })
}

/// Makes the function of a method that writes one thing.
macro_rules! writes {
    ($name:ident, |$writer:ident $(, $argument:ident)*| $body:expr) => {
        unsafe extern "C" fn $name(this: VALUE $(, $argument: VALUE)*) -> VALUE {
            rb::small_method(|| with_writer(this, |$writer| { $body; }))
        }
    };
}

writes!(write_value, |writer, object| writer.value(object));
writes!(write_nil, |writer| write::nil(writer.out()));
writes!(write_true, |writer| write::bool(writer.out(), true));
writes!(write_false, |writer| write::bool(writer.out(), false));
writes!(write_float, |writer, object| writer.float(object));
writes!(write_string, |writer, object| {
    rb::check(object, ruby_value_type::RUBY_T_STRING);
    writer.string(object)
});
writes!(write_bin, |writer, object| {
    rb::check(object, ruby_value_type::RUBY_T_STRING);
    // SAFETY: a String; a new one is made when its encoding is another.
    let binary = unsafe { rb_str_encode(object, rb_enc_from_encoding(rb_ascii8bit_encoding()), 0, NIL) };
    writer.string(binary)
});
writes!(write_array, |writer, object| {
    rb::check(object, ruby_value_type::RUBY_T_ARRAY);
    writer.array(object)
});
writes!(write_hash, |writer, object| {
    rb::check(object, ruby_value_type::RUBY_T_HASH);
    writer.hash(object)
});
writes!(write_symbol, |writer, object| {
    rb::check(object, ruby_value_type::RUBY_T_SYMBOL);
    writer.symbol(object)
});
writes!(write_int, |writer, object| {
    if !FIXNUM_P(object) {
        rb::check(object, ruby_value_type::RUBY_T_BIGNUM);
    }
    writer.value(object)
});
writes!(write_array_header, |writer, length| write::array_header(writer.out(), header_length(length)));
writes!(write_map_header, |writer, length| write::map_header(writer.out(), header_length(length)));
writes!(write_bin_header, |writer, length| write::bin_header(writer.out(), header_length(length)));
writes!(write_float32, |writer, number| {
    // SAFETY: takes any object; a Numeric becomes a Float.
    let value = unsafe {
        if rb_obj_is_kind_of(number, rb_cNumeric) != rb::TRUE {
            rb::raise(rb_eArgError, format_args!("Expected numeric"));
        }
        rb_num2dbl(number)
    };
    write::f32(writer.out(), value as f32)
});
writes!(write_ext, |writer, kind, payload| {
    let kind = ext_type(kind);
    writer.ext(kind, rb::string(payload))
});
writes!(write_extension, |writer, extension| {
    rb::check(extension, ruby_value_type::RUBY_T_STRUCT);
    // SAFETY: a Struct; raises when it has no such members.
    let (kind, payload) =
        unsafe { (rb_struct_aref(extension, rb::int(0)), rb_struct_aref(extension, rb::int(1))) };
    if !FIXNUM_P(kind) {
        too_big(kind);
    }
    writer.ext(ext_type(kind), rb::string(payload))
});

fn too_big(kind: VALUE) -> ! {
    // SAFETY: takes any object; the String is copied at once, and the class lives for ever.
    let (class, text) = unsafe {
        let shown = rb::bytes(rb_obj_as_string(kind));
        let shown = String::from_utf8_lossy(shown);
        (rb_eRangeError, format!("integer {shown} too big to convert to `signed char'"))
    };
    rb::raise_text(class, text)
}

fn header_length(length: VALUE) -> usize {
    // SAFETY: converts any object, or raises.
    let length = unsafe { rb_num2uint(length) };
    length as u32 as usize
}

unsafe extern "C" fn flush(this: VALUE) -> VALUE {
    rb::method(|| {
        let packer = rb::held::<Packer>(this);
        // SAFETY: what a live object holds; no reference is held while Ruby code runs.
        unsafe {
            let bytes = &raw mut (*packer).bytes;
            if (*bytes).io != NIL {
                buffer::write_to(bytes, (*bytes).io);
            }
        }
        this
    })
}

unsafe extern "C" fn reset(this: VALUE) -> VALUE {
    rb::method(|| {
        let packer = rb::held::<Packer>(this);
        // SAFETY: what a live object holds.
        unsafe {
            (*packer).recover();
            (*packer).bytes.clear();
        }
        NIL
    })
}

unsafe extern "C" fn size(this: VALUE) -> VALUE {
    // SAFETY: what a live object holds.
    rb::method(|| rb::int(unsafe { (*rb::held::<Packer>(this)).bytes.rest().len() } as i64))
}

unsafe extern "C" fn is_empty(this: VALUE) -> VALUE {
    // SAFETY: what a live object holds.
    rb::method(|| rb::bool(unsafe { (*rb::held::<Packer>(this)).bytes.rest().is_empty() }))
}

unsafe extern "C" fn to_str(this: VALUE) -> VALUE {
    // SAFETY: what a live object holds.
    rb::method(|| unsafe { buffer::to_string(&raw const (*rb::held::<Packer>(this)).bytes) })
}

unsafe extern "C" fn write_to(this: VALUE, io: VALUE) -> VALUE {
    // SAFETY: what a live object holds.
    rb::method(|| rb::int(unsafe { buffer::write_to(&raw mut (*rb::held::<Packer>(this)).bytes, io) } as i64))
}

unsafe extern "C" fn full_pack_method(this: VALUE) -> VALUE {
    rb::method(|| full_pack(this))
}

/// `register_type(type, class, method_name = nil, &block)`
unsafe extern "C" fn register_type(count: c_int, first: *const VALUE, this: VALUE) -> VALUE {
    rb::method(|| {
        // SAFETY: what Ruby passed.
        let arguments = unsafe { rb::arguments(count, first) };
        rb::check_count(arguments.len(), 2, 3);
        check_changeable(this, "Packer");
        let class = arguments[1];
        check_module(class);
        let packer = packer_of(arguments.get(2).copied());
        let entry = PackEntry { class, kind: ext_type(arguments[0]), packer: Some(packer), recursive: false };
        register(this, entry);
        NIL
    })
}

fn register(this: VALUE, entry: PackEntry) {
    let packer = rb::held::<Packer>(this);
    // SAFETY: what a live object holds.
    unsafe {
        let registry = changeable(&mut (*packer).registry);
        registry.add_packer(entry);
        registry.symbols |= entry.class == rb_cSymbol;
        (*packer).found.clear();
    }
}

/// The block given to the method that runs, or else what the argument stands for.
fn packer_of(given: Option<VALUE>) -> Callable {
    // SAFETY: asks about, and takes, the block of the method that runs.
    unsafe {
        if rb_block_given_p() != 0 {
            return Callable::of_proc(rb_block_proc());
        }
        let given = given.unwrap_or(NIL);
        if RB_SYMBOL_P(given) || rb::is(given, ruby_value_type::RUBY_T_STRING) {
            return Callable::Own(rb_to_id(given));
        }
        Callable::of_proc(rb::call(given, rb::id(c"to_proc"), &[]))
    }
}

/// Raises `FrozenError` for a frozen object.
pub(super) fn check_changeable(this: VALUE, class: &str) {
    // SAFETY: reads the header of a live object, and a class that lives for ever.
    unsafe {
        if rb_obj_frozen_p(this) == rb::TRUE {
            rb::raise(rb_eFrozenError, format_args!("can't modify frozen MessagePack::{class}"));
        }
    }
}

fn check_module(object: VALUE) {
    // SAFETY: takes any object.
    unsafe {
        if rb_obj_is_kind_of(object, rb_cModule) != rb::TRUE {
            rb::raise_text(
                rb_eArgError,
                format!("expected Module/Class but found {}.", buffer::class_name(object)),
            );
        }
    }
}

/// `{class => [type, proc, flags]}`
unsafe extern "C" fn registered_types_internal(this: VALUE) -> VALUE {
    rb::method(|| {
        let packer = rb::held::<Packer>(this);
        // SAFETY: what a live object holds; it is read anew for every entry, because Ruby code runs between them.
        unsafe {
            let types = rb_hash_new();
            let mut index = 0;
            while let Some(&entry) = (&*packer).registry.packers.get(index) {
                rb_hash_aset(types, entry.class, pack_entry(entry));
                index += 1;
            }
            types
        }
    })
}

/// `[type, proc, flags]`
pub(super) fn pack_entry(entry: PackEntry) -> VALUE {
    let packer = entry.packer.map_or(NIL, Callable::to_proc);
    let parts = [rb::int(entry.kind.into()), packer, rb::int(entry.recursive.into())];
    // SAFETY: live objects, as many as said.
    unsafe { rb_ary_new_from_values(3, parts.as_ptr()) }
}

/// Defines the class.
pub(super) fn define() {
    let class = globals().packer;
    // SAFETY: the function makes objects of this class.
    unsafe { rb_define_alloc_func(class, Some(rb::alloc::<Packer>)) };
    rb::define(class, c"initialize", initialize as _, -1);
    rb::define(class, c"compatibility_mode?", compatibility_mode as _, 0);
    rb::define(class, c"buffer", buffer_of as _, 0);
    rb::define(class, c"write", write_value as _, 1);
    rb::define(class, c"write_nil", write_nil as _, 0);
    rb::define(class, c"write_true", write_true as _, 0);
    rb::define(class, c"write_false", write_false as _, 0);
    rb::define(class, c"write_float", write_float as _, 1);
    rb::define(class, c"write_string", write_string as _, 1);
    rb::define(class, c"write_bin", write_bin as _, 1);
    rb::define(class, c"write_array", write_array as _, 1);
    rb::define(class, c"write_hash", write_hash as _, 1);
    rb::define(class, c"write_symbol", write_symbol as _, 1);
    rb::define(class, c"write_int", write_int as _, 1);
    rb::define(class, c"write_extension", write_extension as _, 1);
    rb::define(class, c"write_array_header", write_array_header as _, 1);
    rb::define(class, c"write_map_header", write_map_header as _, 1);
    rb::define(class, c"write_bin_header", write_bin_header as _, 1);
    rb::define(class, c"write_ext", write_ext as _, 2);
    rb::define(class, c"write_float32", write_float32 as _, 1);
    rb::define(class, c"flush", flush as _, 0);
    rb::define(class, c"reset", reset as _, 0);
    rb::define(class, c"size", size as _, 0);
    rb::define(class, c"empty?", is_empty as _, 0);
    rb::define(class, c"write_to", write_to as _, 1);
    rb::define(class, c"to_str", to_str as _, 0);
    rb::define(class, c"register_type", register_type as _, -1);
    rb::define(class, c"registered_types_internal", registered_types_internal as _, 0);
    rb::define(class, c"full_pack", full_pack_method as _, 0);
    rb::alias(class, c"pack", c"write");
    rb::alias(class, c"clear", c"reset");
    rb::alias(class, c"to_s", c"to_str");
}
