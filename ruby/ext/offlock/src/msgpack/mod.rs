//! MessagePack: `Offlock::MessagePack`.
//!
//! Ractors share no state: a packer, an unpacker and a factory each hold their own state, `MessagePack.pack`
//! and `MessagePack.unpack` work on the stack, and each Ractor has its own cache of map keys.

use magnus::{Error, Ruby};

use crate::cruby::{Object, catch};

mod buffer;
mod build;
mod byte_queue;
mod extract;
mod factory;
mod functions;
mod globals;
mod input;
mod key_cache;
mod options;
mod pack;
mod packer;
mod packer_class;
mod registry;
mod sink;
mod unpacker;
mod unpacker_class;
mod view;

/// Defines `Offlock::MessagePack`; the rest of it is in `offlock/message_pack.rb`.
pub(crate) fn define(ruby: &Ruby) -> Result<(), Error> {
    catch(ruby, |gvl| {
        globals::define(gvl);
        buffer::define(gvl);
        factory::define(gvl);
        packer_class::define(gvl);
        unpacker_class::define(gvl);
        functions::define();
        view::define(gvl);
        Object::NIL
    })?;
    view::define_functions()?;
    extract::define_function()
}
