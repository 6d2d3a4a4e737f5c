//! Dictionaries, and making them from samples.

use std::sync::{Arc, OnceLock};

use magnus::typed_data::Obj;
use magnus::value::ReprValue;
use magnus::{
    Class, DataTypeFunctions, Error, Integer, Module, Object, RArray, RModule, RString, Ruby, TryConvert,
    TypedData, Value, function, method,
};
use offlock_core::Task;
use offlock_core::memory;
use offlock_core::zstd::{self, Compressor, Dictionary, Loading, Samples, Settings};

use super::bounds;
use crate::borrow::borrowed;
use crate::build;
use crate::operations::{ZSTD_COMPRESS, ZSTD_TRAIN};
use crate::region::{Region, Release, drop_aside};

pub(super) fn define(ruby: &Ruby, module: RModule) -> Result<(), Error> {
    let class = module.define_class("Dictionary", ruby.class_object())?;
    class.define_alloc_func::<Dict>();
    class.define_private_method("native_start", method!(Dict::start, 2))?;
    class.define_method("dict_id", method!(Dict::dict_id, 0))?;
    class.define_method("dict_content", method!(Dict::dict_content, 0))?;
    class.define_method("bytesize", method!(Dict::bytesize, 0))?;
    module.define_singleton_method("native_train", function!(train, 3))?;
    module.define_singleton_method("native_finalize", function!(finalize, 5))
}

/// A dictionary, which never changes once it is made.
#[derive(TypedData, Default)]
#[magnus(class = "Offlock::Zstd::Dictionary", free_immediately, frozen_shareable, size)]
pub(super) struct Dict(OnceLock<Content>);

struct Content {
    dictionary: Arc<Dictionary>,
    /// The level for which it is prepared; that of the compressor if it has none.
    level: Option<i32>,
}

impl DataTypeFunctions for Dict {
    fn size(&self) -> usize {
        size_of::<Self>() + self.0.get().map_or(0, |content| content.dictionary.content().len())
    }
}

impl Dict {
    /// Takes a copy of the content. With a level, prepares it for compression at that level.
    fn start(ruby: &Ruby, this: &Self, content: RString, level: Value) -> Result<(), Error> {
        let level = bounds::level(ruby, level)?;
        let dictionary = Arc::new(Dictionary::new(copied(ruby, content)?));
        if let Some(level) = level {
            let settings = Settings {
                dictionary: Some((Arc::clone(&dictionary), Loading::Digested)),
                ..Settings::of_level(level)
            };
            let weight = dictionary.content().len();
            Region::new(&ZSTD_COMPRESS, weight).run(ruby, |_| Compressor::new(&settings).map(drop))?;
        }
        filled(ruby, this.0.set(Content { dictionary, level }))
    }

    fn content<'a>(ruby: &Ruby, this: &'a Self) -> Result<&'a Content, Error> {
        let uninitialized = || Error::new(ruby.exception_type_error(), "uninitialized dictionary");
        this.0.get().ok_or_else(uninitialized)
    }

    fn dict_id(ruby: &Ruby, this: &Self) -> Result<u32, Error> {
        Ok(Self::content(ruby, this)?.dictionary.id())
    }

    fn dict_content(ruby: &Ruby, this: &Self) -> Result<RString, Error> {
        build::binary_in_pieces(ruby, Self::content(ruby, this)?.dictionary.content())
    }

    fn bytesize(ruby: &Ruby, this: &Self) -> Result<usize, Error> {
        Ok(Self::content(ruby, this)?.dictionary.content().len())
    }
}

fn filled(ruby: &Ruby, set: Result<(), Content>) -> Result<(), Error> {
    set.map_err(|_| Error::new(ruby.exception_type_error(), "the dictionary is initialized already"))
}

/// A copy of the bytes of a String.
fn copied(ruby: &Ruby, string: RString) -> Result<Vec<u8>, Error> {
    let string = borrowed!(Bytes, string);
    let view = string.view();
    // A copy takes about as long as compressing a thousandth.
    Region::new(&ZSTD_COMPRESS, view.len() / 1000).run(ruby, |_| memory::copied(view))
}

/// The dictionary in an argument: a Dictionary, which is prepared once, or a String, which is loaded for each stream.
pub(super) struct Given {
    pub(super) dictionary: (Arc<Dictionary>, Loading),
    /// The level for which it was prepared.
    pub(super) level: Option<i32>,
}

impl Given {
    pub(super) fn of(ruby: &Ruby, dict: Value) -> Result<Option<Self>, Error> {
        if dict.is_nil() {
            return Ok(None);
        }
        if let Ok(dict) = Obj::<Dict>::try_convert(dict) {
            let Content { dictionary, level } = Dict::content(ruby, &dict)?;
            let dictionary = (Arc::clone(dictionary), Loading::Digested);
            return Ok(Some(Self { dictionary, level: *level }));
        }
        let Some(string) = RString::from_value(dict) else {
            let text = "`dict:` must be a Dictionary, CDict or DDict of Offlock::Zstd, or a String";
            return Err(Error::new(ruby.exception_arg_error(), text));
        };
        let dictionary = (Arc::new(Dictionary::new(copied(ruby, string)?)), Loading::Undigested);
        Ok(Some(Self { dictionary, level: None }))
    }
}

fn train(ruby: &Ruby, samples: RArray, size: Integer, release: Release) -> Result<RString, Error> {
    made(ruby, samples, size, release, zstd::train)
}

fn finalize(
    ruby: &Ruby,
    dict: Obj<Dict>,
    samples: RArray,
    size: Integer,
    level: Value,
    release: Release,
) -> Result<RString, Error> {
    let level = bounds::level(ruby, level)?.unwrap_or(zstd::DEFAULT_LEVEL);
    let content = Arc::clone(&Dict::content(ruby, &dict)?.dictionary);
    made(ruby, samples, size, release, |samples, size, task| {
        zstd::finalize(memory::copied(content.content())?, samples, size, level, task)
    })
}

fn made(
    ruby: &Ruby,
    samples: RArray,
    size: Integer,
    release: Release,
    make: impl Fn(Samples, usize, &Task<'_>) -> Result<Vec<u8>, zstd::Error> + Sync,
) -> Result<RString, Error> {
    let positive = |_| Error::new(ruby.exception_arg_error(), "the size of a dictionary must be positive");
    let size = size.to_usize().map_err(positive)?;
    if size == 0 {
        return Err(positive(Error::new(ruby.exception_arg_error(), "")));
    }
    let samples = borrowed!(AllBytes, ruby, samples);
    let views = samples.views();
    let total = views.iter().map(|view| view.len()).sum();
    if total == 0 {
        return Err(Error::new(ruby.exception_arg_error(), "the samples have no data"));
    }
    let content = Region::new(&ZSTD_TRAIN, total)
        .release(release)
        .run(ruby, |task| make(Samples::copied(views, task)?, size, task))?;
    let built = build::binary_in_pieces(ruby, &content);
    drop_aside(content);
    built
}
