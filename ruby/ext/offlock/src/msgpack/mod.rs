//! MessagePack: `Offlock::MessagePack`.
//!
//! Nothing is shared between Ractors: a packer, an unpacker and a factory each hold their own state, `MessagePack.pack`
//! and `MessagePack.unpack` work on the stack, and each Ractor remembers some map keys of its own.

use magnus::Error;

use crate::cruby::raw;

mod buffer;
mod build;
mod factory;
mod functions;
mod globals;
mod input;
mod key_cache;
mod pack;
mod packer;
mod registry;
mod sink;
mod unpacker;
mod view;

/// Defines `Offlock::MessagePack`; the rest of it is in `offlock/message_pack.rb`.
pub(crate) fn define() -> Result<(), Error> {
    magnus::rb_sys::protect(|| {
        buffer::define();
        factory::define();
        packer::define();
        unpacker::define();
        functions::define();
        view::define();
        raw::NIL
    })
    .and_then(|_| view::define_functions())
}
