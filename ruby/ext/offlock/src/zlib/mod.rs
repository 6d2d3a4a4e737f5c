//! `Offlock::Zlib`: the core's `deflate` in Ruby.
//!
//! The classes with the original's names are written in Ruby (`lib/offlock/zlib/`); the methods here are
//! private in Ruby and take positional arguments.

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
