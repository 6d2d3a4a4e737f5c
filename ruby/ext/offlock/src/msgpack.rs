//! MessagePack: `Offlock::MessagePack`.
//!
//! Nothing is shared between Ractors: a packer, an unpacker and a factory each hold their own state, `MessagePack.pack`
//! and `MessagePack.unpack` work on the stack, and each Ractor remembers some map keys of its own.

use magnus::Error;

mod buffer;
mod factory;
mod functions;
mod globals;
mod index;
mod key_cache;
mod maker;
mod packer;
mod place;
mod rb;
mod registry;
mod sink;
mod unpacker;
mod writer;

/// Defines `Offlock::MessagePack`; the rest of it is in `offlock/message_pack.rb`.
pub(crate) fn define() -> Result<(), Error> {
    magnus::rb_sys::protect(|| {
        buffer::define();
        factory::define();
        packer::define();
        unpacker::define();
        functions::define();
        index::define();
        rb::NIL
    })
    .and_then(|_| index::define_functions())
}
