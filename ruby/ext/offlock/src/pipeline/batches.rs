//! `Offlock::Pipeline::Batches` and `Batch`: the documents of shards, a batch at a time.

use magnus::value::ReprValue;
use magnus::{Class, DataTypeFunctions, Error, Module, RArray, RModule, Ruby, TypedData, Value, method};
use offlock_core::pipeline;
use offlock_core::{Stopped, tokens::TokenId};

use super::error::record_errors;
use crate::build;
use crate::operations::{PIPELINE_CLOSE, PIPELINE_NEXT};
use crate::region::{Region, Yielder};
use crate::tiktoken::ids;

/// Defines the classes and their methods.
pub(super) fn define(ruby: &Ruby, pipeline: RModule) -> Result<(), Error> {
    let class = pipeline.define_class("Batches", ruby.class_object())?;
    class.undef_default_alloc_func();
    class.define_method("next", method!(Batches::next, 0))?;
    class.define_method("close", method!(Batches::close, 0))?;
    class.define_method("bytes_read", method!(|this: &Batches| this.0.bytes_read(), 0))?;
    class.define_method("bytes_total", method!(|this: &Batches| this.0.bytes_total(), 0))?;

    let class = pipeline.define_class("Batch", ruby.class_object())?;
    class.undef_default_alloc_func();
    class.define_method("path", method!(|this: &Batch| this.0.path.display().to_string(), 0))?;
    class.define_method("size", method!(|this: &Batch| this.0.documents(), 0))?;
    class.define_method("bytes", method!(|this: &Batch| this.0.bytes, 0))?;
    class.define_method("failed", method!(|this: &Batch| this.0.failed, 0))?;
    class.define_method("failures", method!(Batch::failures, 0))?;
    class.define_method("packed", method!(Batch::packed, 0))?;
    class.define_method("offsets", method!(Batch::offsets, 0))?;
    class.define_method("records", method!(Batch::records, 0))?;
    class.define_method("to_a", method!(Batch::to_a, 0))
}

#[derive(TypedData)]
#[magnus(class = "Offlock::Pipeline::Batches", free_immediately, frozen_shareable)]
pub(super) struct Batches(pub(super) pipeline::Batches);

impl DataTypeFunctions for Batches {}

impl Batches {
    fn next(ruby: &Ruby, this: &Self) -> Result<Option<Value>, Error> {
        let next = Region::new(&PIPELINE_NEXT, 0).run(ruby, |task| this.0.next(task))?;
        Ok(next.map(|batch| {
            let batch = ruby.obj_wrap(Batch(batch));
            batch.freeze();
            batch.as_value()
        }))
    }

    fn close(ruby: &Ruby, this: &Self) -> Result<(), Error> {
        Region::new(&PIPELINE_CLOSE, 0).run(ruby, |_| {
            this.0.close();
            Ok::<_, Stopped>(())
        })
    }
}

#[derive(TypedData)]
#[magnus(class = "Offlock::Pipeline::Batch", free_immediately, frozen_shareable, size)]
struct Batch(pipeline::Batch);

impl DataTypeFunctions for Batch {
    fn size(&self) -> usize {
        size_of::<Self>() + self.0.tokens.capacity() * size_of::<TokenId>() + self.0.offsets.capacity() * 16
    }
}

impl Batch {
    fn failures(ruby: &Ruby, this: &Self) -> Result<RArray, Error> {
        record_errors(ruby, &this.0.errors)
    }

    fn packed(ruby: &Ruby, this: &Self) -> Result<Value, Error> {
        ids::build(ruby, &this.0.tokens, true, &mut Yielder::new())
    }

    fn offsets(ruby: &Ruby, this: &Self) -> Result<RArray, Error> {
        let offsets = this.0.offsets.iter().map(|&offset| offset as usize);
        build::integers(ruby, offsets, &mut Yielder::new())
    }

    fn records(ruby: &Ruby, this: &Self) -> Result<RArray, Error> {
        let records = this.0.records.iter().map(|&record| record as usize);
        build::integers(ruby, records, &mut Yielder::new())
    }

    fn to_a(ruby: &Ruby, this: &Self) -> Result<RArray, Error> {
        let (documents, mut yielder) = (ruby.ary_new_capa(this.0.documents()), Yielder::new());
        for ends in this.0.offsets.windows(2) {
            let document = &this.0.tokens[ends[0] as usize..ends[1] as usize];
            documents.push(ids::build(ruby, document, false, &mut yielder)?)?;
            yielder.tick(1)?;
        }
        Ok(documents)
    }
}
