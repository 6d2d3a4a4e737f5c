//! `Offlock::Pipeline`: shards of documents, counted, written and read without the lock.
//!
//! [`tokens`] has the runs over shards, [`batches`] the documents of a shard as Ruby sees them, and [`summary`] what a
//! run found out. The methods are private in Ruby where they take positional arguments; `lib/offlock/pipeline.rb` adds
//! names, keywords and documentation.

mod batches;
mod error;
mod summary;
mod tokens;

use magnus::{Error, Module, RModule, Ruby};

/// Defines the module and its native classes.
pub(crate) fn define(ruby: &Ruby, offlock: RModule) -> Result<(), Error> {
    let pipeline = offlock.define_module("Pipeline")?;
    tokens::define(ruby, pipeline)?;
    batches::define(ruby, pipeline)?;
    summary::define(ruby, pipeline)
}
