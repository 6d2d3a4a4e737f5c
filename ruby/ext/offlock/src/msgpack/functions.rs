//! `MessagePack.pack` and `MessagePack.unpack` for whole messages.

use super::build::{Builder, check_extra};
use super::byte_queue::io_and_options;
use super::factory::{ask_default, default_registry};
use super::globals::globals;
use super::input::StringInput;
use super::options::Options;
use super::pack::Writer;
use super::packer_class::{full_pack, with_writer};
use super::unpacker_class::full_unpack;
use super::view::{is_large, unpack_large};
use super::{packer, unpacker};
use crate::cruby::string::StringWriter;
use crate::cruby::{Arguments, Gvl, Object, Str, methods};

methods! {
    /// `pack(object, io = nil, options = nil)`
    small fn pack(gvl, _this, ..arguments) {
        Arguments::check(arguments, 1, 3);
        let object = arguments[0];
        if arguments.len() == 1
            && !ask_default(gvl, |registry| registry.symbols)
            && let Some(message) = pack_alone(gvl, object)
        {
            return message;
        }
        let (io, options) = io_and_options(gvl, &arguments[1..]);
        let registry = default_registry(gvl);
        let packer = packer::make(gvl, io, options, registry);
        with_writer(gvl, packer, |writer| {
            writer.value(object);
        });
        let packed = full_pack(gvl, packer);
        packer.keep();
        packed
    }

    /// `unpack(source, options = nil)`
    small fn unpack(gvl, _this, ..arguments) {
        Arguments::check(arguments, 1, 2);
        let (source, options) = (arguments[0], arguments.get(1).copied().unwrap_or(Object::NIL));
        let string = gvl.objects.str(source);
        if let Some(string) = string
            && is_large(gvl, string, options)
        {
            return unpack_large(gvl, source, options);
        }
        let options = gvl.objects.hash(options);
        let is_plain = ask_default(gvl, |registry| registry.unpackers.is_empty());
        if let Some(string) = string
            && is_plain
        {
            return unpack_alone(gvl, string, Options::from(&gvl.objects, options));
        }
        let io = if string.is_some() { Object::NIL } else { source };
        let registry = default_registry(gvl);
        let unpacker = unpacker::make(gvl, io, options, registry);
        if string.is_some() {
            unpacker::feed(gvl, unpacker, source);
        }
        let object = full_unpack(gvl, unpacker);
        unpacker.keep();
        object
    }
}

/// Packs an object that needs no packer; `None` for other objects.
fn pack_alone(gvl: &mut Gvl, object: Object) -> Option<Object> {
    StringWriter::collect(gvl, |gvl, target| Writer::alone(gvl, target).value(object))
}

/// Unpacks a String without an unpacker, and without extension types.
fn unpack_alone(gvl: &mut Gvl, source: Str, options: Options) -> Object {
    // SAFETY: the builder is on the stack, and suspends its input before it runs other code.
    let input = unsafe { StringInput::new(gvl, source) };
    let mut builder = Builder::new(gvl, input, options, None);
    let object = builder.value(0);
    check_extra(builder.source.extra());
    object
}

/// Defines the functions.
pub(super) fn define() {
    let module = globals().module;
    pack().define_in(module, c"pack");
    pack().define_in(module, c"dump");
    unpack().define_in(module, c"unpack");
    unpack().define_in(module, c"load");
}
