//! `Offlock::Zstd`: the core's `zstd` in Ruby.
//!
//! The classes and functions with names, keywords and documentation are in `lib/offlock/zstd.rb` and `lib/offlock/zstd/`;
//! the native methods that they call are private in Ruby and take positional arguments.

mod arguments;
mod bounds;
mod compressor;
mod decompressor;
mod dictionary;
mod error;
mod frames;
mod memory;
mod one_shot;
mod turn;

use magnus::{Error, Module, RModule, Ruby, Value};
use offlock_core::zstd;

/// Defines the classes and the native methods.
pub(crate) fn define(ruby: &Ruby, offlock: RModule) -> Result<(), Error> {
    let module = offlock.define_module("Zstd")?;
    module.const_set("LIBRARY_VERSION", zstd::version())?;
    module.const_set("DEFAULT_LEVEL", zstd::DEFAULT_LEVEL)?;
    share(ruby, offlock, module)?;
    let error = module.define_error("Error", ruby.exception_runtime_error())?;
    module.define_error("OutputLimitError", error)?;
    dictionary::define(ruby, module)?;
    one_shot::define(module)?;
    frames::define(module)?;
    compressor::define(ruby, module)?;
    decompressor::define(ruby, module)
}

/// What the streams and files of `Offlock::Zlib` and `Offlock::Zstd` have in common.
fn share(_: &Ruby, offlock: RModule, module: RModule) -> Result<(), Error> {
    let zlib = offlock.define_module("Zlib")?;
    for name in ["Printing", "LineReading", "ReadBuffer"] {
        module.const_set(name, zlib.const_get::<_, Value>(name)?)?;
    }
    Ok(())
}
