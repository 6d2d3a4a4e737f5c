//! `MessagePack.pack`, `MessagePack.unpack`: whole messages.

use std::ffi::c_int;

use rb_sys::*;

use super::build::{Builder, Options};
use super::factory::{ask_default, default_registry};
use super::globals::globals;
use super::input::StringInput;
use super::pack::Writer;
use super::packer::{self, full_pack, with_writer};
use super::sink::StringSink;
use super::unpacker::{self, check_extra, options_from};
use super::view::{is_large, unpack_large};
use crate::cruby::raw::{self as rb, NIL};

/// `pack(object, io = nil, options = nil)`
unsafe extern "C" fn pack(count: c_int, first: *const VALUE, _this: VALUE) -> VALUE {
    rb::small_method(|| {
        // SAFETY: what Ruby passed.
        let arguments = unsafe { rb::arguments(count, first) };
        rb::check_count(arguments.len(), 1, 3);
        let object = arguments[0];
        if arguments.len() == 1
            && !ask_default(|registry| registry.symbols)
            && let Some(message) = pack_alone(object)
        {
            return message;
        }
        let (io, options) = super::buffer::io_and_options(&arguments[1..]);
        let packer = packer::make(io, options, default_registry());
        with_writer(packer, |writer| {
            writer.value(object);
        });
        full_pack(packer)
    })
}

/// Packs what needs no packer; `None` for other objects.
fn pack_alone(object: VALUE) -> Option<VALUE> {
    StringSink::collect(|sink| {
        // SAFETY: the sink lives as long as the writer.
        unsafe { Writer::alone(sink) }.value(object)
    })
}

/// `unpack(source, options = nil)`
unsafe extern "C" fn unpack(count: c_int, first: *const VALUE, _this: VALUE) -> VALUE {
    rb::small_method(|| {
        // SAFETY: what Ruby passed.
        let arguments = unsafe { rb::arguments(count, first) };
        rb::check_count(arguments.len(), 1, 2);
        let (source, options) = (arguments[0], arguments.get(1).copied().unwrap_or(NIL));
        let is_string = rb::is(source, ruby_value_type::RUBY_T_STRING);
        if is_string && is_large(source, options) {
            return unpack_large(source, options);
        }
        let plain = ask_default(|registry| registry.unpackers.is_empty());
        if is_string && plain {
            return unpack_alone(source, options_from(options));
        }
        let io = if is_string { NIL } else { source };
        let unpacker = unpacker::make(io, options, default_registry());
        if is_string {
            unpacker::feed(unpacker, source);
        }
        unpacker::full_unpack(unpacker)
    })
}

/// Unpacks a String without an unpacker, and without extension types.
fn unpack_alone(source: VALUE, options: Options) -> VALUE {
    // SAFETY: without types.
    let mut builder = unsafe { Builder::new(StringInput::new(source), options, std::ptr::null_mut()) };
    let object = builder.value(0);
    check_extra(builder.source.extra());
    object
}

/// Defines the functions.
pub(super) fn define() {
    let module = globals().module;
    rb::define_function(module, c"pack", pack as _, -1);
    rb::define_function(module, c"dump", pack as _, -1);
    rb::define_function(module, c"unpack", unpack as _, -1);
    rb::define_function(module, c"load", unpack as _, -1);
}
