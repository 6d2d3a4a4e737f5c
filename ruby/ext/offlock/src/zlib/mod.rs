//! `Offlock::Zlib`: the core's `deflate` as Ruby sees it.
//!
//! The classes with the original's names are Ruby (`lib/offlock/zlib/`); what is here is private in Ruby and takes
//! everything by position.

mod batch;
mod checksum;
mod engine;
mod error;
mod forward;
mod gzip;
mod gzip_reader;
mod lines;
mod number;
mod one_shot;
mod print;
mod read_buffer;

use magnus::{Error, Module, RModule, Ruby};

/// Defines the native methods.
pub(crate) fn define(ruby: &Ruby, offlock: RModule) -> Result<(), Error> {
    let zlib = offlock.define_module("Zlib")?;
    one_shot::define(ruby, zlib)?;
    batch::define(zlib)?;
    checksum::define(ruby, zlib)?;
    read_buffer::define(ruby, zlib)?;
    lines::define(ruby, zlib)?;
    print::define(ruby, zlib)?;
    engine::define(ruby, zlib)?;
    gzip::define(ruby, zlib)?;
    gzip_reader::define(ruby, zlib)
}
