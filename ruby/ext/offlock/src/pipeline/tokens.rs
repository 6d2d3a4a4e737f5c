//! `Offlock::Pipeline::Tokens`: the runs over shards.

use std::path::PathBuf;
use std::sync::Arc;

use magnus::value::ReprValue;
use magnus::{
    Class, DataTypeFunctions, Error, Module, Object, RModule, Ruby, Symbol, TryConvert, TypedData, Value,
    function, method,
};
use offlock_core::pipeline::{
    self, Destination, Eos, Format, Model, OnError, Output, Part, Reports, Settings, Shard, TokenizerSource,
};
use offlock_core::{Operation, Task};

use super::batches::Batches;
use super::summary::Summary;
use crate::error::IntoException;
use crate::operations::{PIPELINE_COUNT, PIPELINE_FIND, PIPELINE_WRITE, TOKENS_LOAD};
use crate::region::Region;
use crate::tokenizer::Tokenizer;

/// Defines the classes and their native methods.
pub(super) fn define(ruby: &Ruby, pipeline: RModule) -> Result<(), Error> {
    let class = pipeline.define_class("Shards", ruby.class_object())?;
    class.undef_default_alloc_func();
    class.define_singleton_method("find", function!(Shards::find, 1))?;
    class.define_method("paths", method!(Shards::paths, 0))?;
    class.define_method("size", method!(Shards::size, 0))?;

    let class = pipeline.define_class("Tokens", ruby.class_object())?;
    class.undef_default_alloc_func();
    class.define_singleton_method("native_new", function!(Tokens::make, 9))?;
    class.define_method("name", method!(|this: &Tokens| this.settings.model.name().to_owned(), 0))?;
    class.define_private_method("native_count", method!(Tokens::count, 1))?;
    class.define_method("batches", method!(Tokens::batches, 0))?;
    class.define_private_method("native_write", method!(Tokens::write, 7))
}

/// The shards that paths name.
#[derive(TypedData)]
#[magnus(class = "Offlock::Pipeline::Shards", free_immediately, frozen_shareable)]
struct Shards(Arc<Vec<Shard>>);

impl DataTypeFunctions for Shards {}

impl Shards {
    fn find(ruby: &Ruby, paths: Vec<String>) -> Result<Value, Error> {
        let paths: Vec<PathBuf> = paths.into_iter().map(PathBuf::from).collect();
        let found = Region::new(&PIPELINE_FIND, 0).run(ruby, |_| pipeline::find(&paths))?;
        Ok(frozen(ruby, Self(Arc::new(found))))
    }

    fn paths(&self) -> Vec<String> {
        self.0.iter().map(|shard| shard.path.display().to_string()).collect()
    }

    fn size(&self) -> u64 {
        self.0.iter().map(|shard| shard.size).sum()
    }
}

#[derive(TypedData)]
#[magnus(class = "Offlock::Pipeline::Tokens", free_immediately, frozen_shareable)]
struct Tokens {
    shards: Arc<Vec<Shard>>,
    settings: Arc<Settings>,
}

impl DataTypeFunctions for Tokens {}

impl Tokens {
    #[expect(clippy::too_many_arguments, reason = "one for each keyword in Ruby")]
    fn make(
        ruby: &Ruby,
        shards: &Shards,
        field: Vec<String>,
        format: Option<Symbol>,
        max_doc_bytes: usize,
        on_error: Symbol,
        threads: usize,
        encoding: Option<String>,
        model: Option<String>,
        tokenizer: Option<Value>,
    ) -> Result<Value, Error> {
        let format = format.map(|name| named(ruby, "format", name, &Format::NAMES)).transpose()?;
        let on_error = named(ruby, "on_error", on_error, &OnError::NAMES)?;
        let loaded = tokenizer.and_then(|tokenizer| <&Tokenizer>::try_convert(tokenizer).ok());
        let path = tokenizer.filter(|_| loaded.is_none()).map(PathBuf::try_convert).transpose()?;
        let tokenizer = match loaded {
            Some(tokenizer) => Some(TokenizerSource::Loaded(tokenizer.core())),
            None => path.as_deref().map(TokenizerSource::File),
        };
        let model = Region::new(&TOKENS_LOAD, 0).run(ruby, |task| {
            Model::choose(encoding.as_deref(), model.as_deref(), tokenizer.clone(), task)
        })?;
        let settings = Settings { format, field, max_doc_bytes, on_error, threads, ..Settings::new(model) };
        Ok(frozen(ruby, Self { shards: Arc::clone(&shards.0), settings: Arc::new(settings) }))
    }

    fn count(ruby: &Ruby, this: &Self, progress: Option<Value>) -> Result<Value, Error> {
        this.run(ruby, &PIPELINE_COUNT, progress, |report, task| {
            pipeline::count(&this.shards, &this.settings, report, task)
        })
    }

    #[expect(clippy::too_many_arguments, reason = "one for each keyword in Ruby")]
    fn write(
        ruby: &Ruby,
        this: &Self,
        folder: String,
        output: Symbol,
        eos: Option<Symbol>,
        eos_token: String,
        resume: bool,
        part: Option<(i64, i64)>,
        progress: Option<Value>,
    ) -> Result<Value, Error> {
        let output = named(ruby, "output", output, &Output::NAMES)?;
        let eos = eos.map(|name| named(ruby, "eos", name, &Eos::NAMES)).transpose()?;
        let part = part.map(|(index, count)| part_of(ruby, index, count)).transpose()?;
        let destination = Destination { folder: folder.into(), output, eos, eos_token, resume, part };
        this.run(ruby, &PIPELINE_WRITE, progress, |report, task| {
            pipeline::write(&this.shards, &this.settings, &destination, report, task)
        })
    }

    /// Runs `work` without the lock; its argument takes the errors of records that it leaves out.
    fn run(
        &self,
        ruby: &Ruby,
        operation: &'static Operation,
        progress: Option<Value>,
        mut work: impl FnMut(
            &(dyn Fn(&pipeline::Error) + Sync),
            &Task<'_>,
        ) -> Result<pipeline::Summary, pipeline::Error>
        + Send,
    ) -> Result<Value, Error> {
        let total = self.total();
        let tell = |done: u64| match progress {
            Some(progress) => progress.funcall::<_, _, Value>("call", (done.min(total), total)).map(drop),
            None => Ok(()),
        };
        let region = Region::new(operation, self.size()).progress(progress.is_some().then_some(&tell));
        let (summary, errors) = region.run(ruby, |task| {
            let reports = Reports::default();
            let summary = work(&|error| reports.add(error), task)?;
            Ok::<_, pipeline::Error>((summary, reports.into_errors()))
        })?;
        tell(total)?;
        Ok(frozen(ruby, Summary::new(summary, errors)))
    }

    fn batches(ruby: &Ruby, this: &Self) -> Result<Value, Error> {
        let batches = pipeline::Batches::start(this.shards.to_vec(), Arc::clone(&this.settings));
        let batches = batches.map_err(|error| error.into_exception(ruby))?;
        Ok(frozen(ruby, Batches(batches)))
    }

    /// The size of the shards, but at least so many bytes that the region works on a worker thread: there an
    /// interrupt that raises nothing does not make it begin anew.
    fn size(&self) -> usize {
        const LONG: u64 = 16 << 20;
        self.total().max(LONG) as usize
    }

    fn total(&self) -> u64 {
        self.shards.iter().map(|shard| shard.size).sum()
    }
}

fn frozen<T: TypedData>(ruby: &Ruby, data: T) -> Value {
    let object = ruby.obj_wrap(data);
    object.freeze();
    object.as_value()
}

/// The part of this index of so many.
fn part_of(ruby: &Ruby, index: i64, count: i64) -> Result<Part, Error> {
    let numbers = usize::try_from(index).ok().zip(usize::try_from(count).ok());
    numbers.and_then(|(index, count)| Part::new(index, count)).ok_or_else(|| {
        let message = format!("part must be an index and a greater count, got [{index}, {count}]");
        Error::new(ruby.exception_arg_error(), message)
    })
}

/// The value that is called `name`.
fn named<T: Copy>(ruby: &Ruby, argument: &str, name: Symbol, names: &[(&str, T)]) -> Result<T, Error> {
    let name = name.name()?;
    let found = names.iter().find(|(known, _)| *known == name);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<String> = names.iter().map(|(name, _)| format!(":{name}")).collect();
        let message = format!("{argument} must be {}, got :{name}", names.join(", "));
        Error::new(ruby.exception_arg_error(), message)
    })
}
