//! `Offlock::Pipeline::Summary` and `ShardSummary`: what a run found out.

use magnus::value::ReprValue;
use magnus::{Class, DataTypeFunctions, Error, Module, RArray, RModule, Ruby, TypedData, method};
use offlock_core::pipeline::{self, Done, Totals};

use super::error::record_errors;

/// Defines the classes and their methods.
pub(super) fn define(ruby: &Ruby, pipeline: RModule) -> Result<(), Error> {
    let class = pipeline.define_class("Summary", ruby.class_object())?;
    class.undef_default_alloc_func();
    class.define_method("documents", method!(|this: &Summary| this.totals.documents, 0))?;
    class.define_method("bytes", method!(|this: &Summary| this.totals.bytes, 0))?;
    class.define_method("tokens", method!(|this: &Summary| this.totals.tokens, 0))?;
    class.define_method("failed", method!(|this: &Summary| this.totals.errors, 0))?;
    class.define_method("failures", method!(Summary::failures, 0))?;
    class.define_method("resumed", method!(|this: &Summary| this.core.resumed, 0))?;
    class.define_method("longest", method!(|this: &Summary| this.totals.lengths.longest(), 0))?;
    class.define_method("percentile", method!(Summary::percentile, 1))?;
    class.define_method("shards", method!(Summary::shards, 0))?;

    let class = pipeline.define_class("ShardSummary", ruby.class_object())?;
    class.undef_default_alloc_func();
    class.define_method("path", method!(|this: &ShardSummary| this.0.path.display().to_string(), 0))?;
    class.define_method("documents", method!(|this: &ShardSummary| this.0.totals.documents, 0))?;
    class.define_method("bytes", method!(|this: &ShardSummary| this.0.totals.bytes, 0))?;
    class.define_method("tokens", method!(|this: &ShardSummary| this.0.totals.tokens, 0))?;
    class.define_method("failed", method!(|this: &ShardSummary| this.0.totals.errors, 0))?;
    class.define_method("files", method!(ShardSummary::files, 0))
}

#[derive(TypedData)]
#[magnus(class = "Offlock::Pipeline::Summary", free_immediately, frozen_shareable)]
pub(super) struct Summary {
    core: pipeline::Summary,
    totals: Totals,
    errors: Vec<pipeline::Error>,
}

impl DataTypeFunctions for Summary {}

impl Summary {
    pub(super) fn new(core: pipeline::Summary, errors: Vec<pipeline::Error>) -> Self {
        Self { totals: core.totals(), core, errors }
    }

    fn failures(ruby: &Ruby, this: &Self) -> Result<RArray, Error> {
        record_errors(ruby, &this.errors)
    }

    fn percentile(ruby: &Ruby, this: &Self, percent: f64) -> Result<u64, Error> {
        if (0.0..=100.0).contains(&percent) {
            return Ok(this.totals.lengths.percentile(percent));
        }
        let message = format!("percent must be between 0 and 100, got {percent}");
        Err(Error::new(ruby.exception_arg_error(), message))
    }

    fn shards(ruby: &Ruby, this: &Self) -> Result<RArray, Error> {
        let shards = ruby.ary_new_capa(this.core.shards.len());
        for done in &this.core.shards {
            let shard = ruby.obj_wrap(ShardSummary(done.clone()));
            shard.freeze();
            shards.push(shard)?;
        }
        Ok(shards)
    }
}

#[derive(TypedData)]
#[magnus(class = "Offlock::Pipeline::ShardSummary", free_immediately, frozen_shareable)]
struct ShardSummary(Done);

impl DataTypeFunctions for ShardSummary {}

impl ShardSummary {
    fn files(ruby: &Ruby, this: &Self) -> Result<RArray, Error> {
        let files = ruby.ary_new_capa(this.0.files.len());
        for file in &this.0.files {
            files.push(file.name.as_str())?;
        }
        Ok(files)
    }
}
