//! The native half of the Ruby gem `offlock`.

#![allow(missing_docs, reason = "the one public item is the function that `magnus::init` makes for Ruby")]

use magnus::{Error, Ruby};

mod borrow;
mod build;
mod column;
mod command;
mod cruby;
mod error;
mod jsonl;
mod msgpack;
mod operations;
mod output;
mod pipeline;
mod region;
mod strings;
mod tiktoken;
mod tokenizer;
mod trace;
mod zlib;
mod zstd;

// Code that must not compile: `script/test` tries one file of `misuse/` after the other.
#[cfg(misuse)]
include!(env!("OFFLOCK_MISUSE"));

/// Called by Ruby when it loads the extension.
#[magnus::init]
fn init(ruby: &Ruby) -> Result<(), Error> {
    cruby::ractor::declare_safe();
    cruby::ractor::mark_main();
    let offlock = ruby.define_module("Offlock")?;
    command::define(offlock)?;
    trace::define(ruby, offlock)?;
    region::define(ruby, offlock)?;
    borrow::define(offlock)?;
    jsonl::define(offlock)?;
    msgpack::define(ruby)?;
    strings::define(offlock)?;
    tiktoken::define(ruby, offlock)?;
    tokenizer::define(ruby, offlock)?;
    pipeline::define(ruby, offlock)?;
    zlib::define(ruby, offlock)?;
    zstd::define(ruby, offlock)
}
