//! `Offlock::Tokenizer`: the tokenizers of models as a Ruby class.
//!
//! The methods here are private in Ruby and take positional arguments; `lib/offlock/tokenizer.rb` adds names,
//! keywords and documentation.

use std::collections::HashMap;
use std::sync::Arc;

use magnus::value::ReprValue;
use magnus::{
    Class, DataTypeFunctions, Error, Module, Object, RArray, RHash, RModule, RString, Ruby, Symbol,
    TypedData, Value, function, method,
};
use offlock_core::Task;
use offlock_core::tokens::model::{self, Options, Unit};
use offlock_core::tokens::{self, TokenId};

use crate::borrow::{self, borrowed};
use crate::build;
use crate::error::IntoException;
use crate::operations::{
    TOKENS_COUNT, TOKENS_COUNT_BATCH, TOKENS_ENCODE, TOKENS_ENCODE_BATCH, TOKENS_LOAD, TOKENS_TRUNCATE,
};
use crate::region::{Region, Release, Yielder, drop_aside};
use crate::tiktoken::chunks;
use crate::tiktoken::errors::TokensError;
use crate::tiktoken::ids;
use crate::tiktoken::methods::{Batch, decoded};
use crate::tiktoken::stream::{Stream, limit_of};

/// Defines the class and its native methods.
pub(crate) fn define(ruby: &Ruby, offlock: RModule) -> Result<(), Error> {
    let class = offlock.define_class("Tokenizer", ruby.class_object())?;
    class.undef_default_alloc_func();
    class.define_singleton_method("native_read", function!(Tokenizer::read, 3))?;
    class.define_method("vocab_size", method!(Tokenizer::vocab_size, 0))?;
    class.define_method("added_tokens", method!(Tokenizer::added_tokens, 0))?;
    class.define_method("id_to_token", method!(Tokenizer::id_to_token, 1))?;
    class.define_private_method("native_token_to_id", method!(Tokenizer::token_to_id, 1))?;
    class.define_private_method("native_encode", method!(Tokenizer::encode, 5))?;
    class.define_private_method("native_encode_batch", method!(Tokenizer::encode_batch, 6))?;
    class.define_private_method("native_encode_with_offsets", method!(Tokenizer::encode_with_offsets, 5))?;
    class.define_private_method("native_count", method!(Tokenizer::count, 4))?;
    class.define_private_method("native_count_batch", method!(Tokenizer::count_batch, 5))?;
    class.define_private_method("native_truncate", method!(Tokenizer::truncate, 5))?;
    class.define_private_method("native_chunks", method!(Tokenizer::chunks, 5))?;
    class.define_private_method("native_stream", method!(Tokenizer::stream, 3))?;
    class.define_private_method("native_decode", method!(Tokenizer::decode, 3))?;
    class.define_private_method("native_decode_bytes", method!(Tokenizer::decode_bytes, 3))
}

/// A model's tokenizer.
#[derive(TypedData)]
#[magnus(class = "Offlock::Tokenizer", free_immediately, frozen_shareable)]
pub(crate) struct Tokenizer(Arc<model::Tokenizer>);

impl DataTypeFunctions for Tokenizer {}

fn options(add_special_tokens: bool, split_special_tokens: bool) -> Options {
    Options { add_special_tokens, split_special_tokens }
}

impl Tokenizer {
    /// The tokenizer itself.
    pub(crate) fn core(&self) -> Arc<model::Tokenizer> {
        Arc::clone(&self.0)
    }

    /// The tokenizer that the content of a file describes; a `.tiktoken` file if there is a pattern.
    fn read(
        ruby: &Ruby,
        content: RString,
        pattern: Option<String>,
        special_tokens: HashMap<String, TokenId>,
    ) -> Result<Value, Error> {
        let content = borrowed!(Bytes, content);
        let content = content.view();
        let core = Region::new(&TOKENS_LOAD, content.len()).run(ruby, |task| {
            let read = match &pattern {
                Some(pattern) => {
                    model::Tokenizer::from_tiktoken(content, pattern, special_tokens.clone(), task)
                }
                None => model::Tokenizer::from_json(content, task),
            };
            Ok::<_, TokensError>(read?)
        })?;
        let tokenizer = ruby.obj_wrap(Self(Arc::new(core)));
        tokenizer.freeze();
        Ok(tokenizer.as_value())
    }

    fn vocab_size(&self) -> usize {
        self.0.vocab_size()
    }

    fn added_tokens(ruby: &Ruby, this: &Self) -> Result<RHash, Error> {
        let tokens = ruby.hash_new();
        for (text, token, _) in this.0.added_tokens() {
            tokens.aset(text, token)?;
        }
        Ok(tokens)
    }

    fn token_to_id(&self, token: String) -> Option<TokenId> {
        self.0.token_to_id(&token)
    }

    fn id_to_token(&self, id: TokenId) -> Option<String> {
        self.0.id_to_token(id)
    }

    fn encode(
        ruby: &Ruby,
        this: &Self,
        text: Value,
        add: bool,
        split: bool,
        packed: bool,
        release: Release,
    ) -> Result<Value, Error> {
        let text = borrowed!(Text, ruby, text);
        let view = text.view();
        let ids = Region::new(&TOKENS_ENCODE, view.len()).release(release).run(ruby, |task| {
            Ok::<_, TokensError>(this.0.encode(view.checked(task)?, options(add, split), task)?)
        })?;
        let built = ids::build(ruby, &ids, packed, &mut Yielder::new());
        drop_aside(ids);
        built
    }

    /// The tokens and their places.
    fn encode_with_offsets(
        ruby: &Ruby,
        this: &Self,
        text: Value,
        bytes: bool,
        add: bool,
        split: bool,
        release: Release,
    ) -> Result<(RArray, RArray), Error> {
        let text = borrowed!(Text, ruby, text);
        let view = text.view();
        let unit = if bytes { Unit::Bytes } else { Unit::Characters };
        let encoded = Region::new(&TOKENS_ENCODE, view.len()).release(release).run(ruby, |task| {
            Ok::<_, TokensError>(this.0.encode_with_offsets(
                view.checked(task)?,
                unit,
                options(add, split),
                task,
            )?)
        })?;
        let mut yielder = Yielder::new();
        let ids = build::integers(ruby, encoded.tokens.iter().map(|&id| id as usize), &mut yielder)?;
        let places = build::pairs(ruby, &encoded.offsets, &mut yielder)?;
        drop_aside(encoded.tokens);
        drop_aside(encoded.offsets);
        Ok((ids, places))
    }

    fn count(
        ruby: &Ruby,
        this: &Self,
        text: Value,
        add: bool,
        split: bool,
        release: Release,
    ) -> Result<usize, Error> {
        let text = borrowed!(Text, ruby, text);
        let view = text.view();
        Region::new(&TOKENS_COUNT, view.len()).release(release).run(ruby, |task| {
            Ok::<_, TokensError>(this.0.count(view.checked(task)?, options(add, split), task)?)
        })
    }

    #[expect(clippy::too_many_arguments, reason = "one for each keyword in Ruby")]
    fn encode_batch(
        ruby: &Ruby,
        this: &Self,
        texts: RArray,
        add: bool,
        split: bool,
        threads: Option<i64>,
        packed: bool,
        release: Release,
    ) -> Result<RArray, Error> {
        let texts = borrowed!(Texts, ruby, texts);
        let batch = Batch::new(ruby, texts.views(), threads, release)?;
        let lists = Region::new(&TOKENS_ENCODE_BATCH, batch.bytes).release(release).run(ruby, |task| {
            let texts = borrow::all_checked(batch.views, task)?;
            Ok::<_, TokensError>(this.0.encode_batch(&texts, options(add, split), batch.threads, task)?)
        })?;
        let built = ruby.ary_new_capa(lists.len());
        let mut yielder = Yielder::new();
        for ids in lists {
            built.push(ids::build(ruby, &ids, packed, &mut yielder)?)?;
            yielder.tick(1)?;
        }
        Ok(built)
    }

    fn count_batch(
        ruby: &Ruby,
        this: &Self,
        texts: RArray,
        add: bool,
        split: bool,
        threads: Option<i64>,
        release: Release,
    ) -> Result<RArray, Error> {
        let texts = borrowed!(Texts, ruby, texts);
        let batch = Batch::new(ruby, texts.views(), threads, release)?;
        let counts = Region::new(&TOKENS_COUNT_BATCH, batch.bytes).release(release).run(ruby, |task| {
            let texts = borrow::all_checked(batch.views, task)?;
            Ok::<_, TokensError>(this.0.count_batch(&texts, options(add, split), batch.threads, task)?)
        })?;
        build::integers(ruby, counts.into_iter(), &mut Yielder::new())
    }

    fn truncate(
        ruby: &Ruby,
        this: &Self,
        text: Value,
        max: i64,
        add: bool,
        split: bool,
        release: Release,
    ) -> Result<RString, Error> {
        let max = usize::try_from(max).map_err(|_| {
            Error::new(ruby.exception_arg_error(), format!("max_tokens must not be negative, got {max}"))
        })?;
        let text = borrowed!(Text, ruby, text);
        let view = text.view();
        let kept = Region::new(&TOKENS_TRUNCATE, view.len()).release(release).run(ruby, |task| {
            Ok::<_, TokensError>(this.0.truncate(view.checked(task)?, max, options(add, split), task)?.bytes)
        })?;
        text.beginning(kept)
    }

    /// Five numbers for each chunk.
    fn chunks(
        ruby: &Ruby,
        this: &Self,
        text: Value,
        max: i64,
        overlap: i64,
        boundary: Symbol,
        release: Release,
    ) -> Result<RArray, Error> {
        let options = chunks::options(ruby, max, overlap, boundary)?;
        chunks::cut(ruby, text, release, |text, task| this.0.chunks(text, options, task))
    }

    fn stream(ruby: &Ruby, this: &Self, add: bool, split: bool, limit: Option<i64>) -> Result<Stream, Error> {
        let (core, limit) = (Arc::clone(&this.0), limit_of(ruby, limit)?);
        let stream = tokens::Stream::of_model(core, options(add, split), limit);
        stream.map(Stream::new).map_err(|error| TokensError::Tokens(error).into_exception(ruby))
    }

    fn decode(
        ruby: &Ruby,
        this: &Self,
        tokens: Value,
        skip: bool,
        release: Release,
    ) -> Result<RString, Error> {
        let decode = |ids: &[TokenId], task: &Task<'_>| this.0.decode_bytes(ids, skip, task);
        build::utf8(ruby, &decoded(ruby, tokens, release, decode, borrow::check_utf8)?)
    }

    fn decode_bytes(
        ruby: &Ruby,
        this: &Self,
        tokens: Value,
        skip: bool,
        release: Release,
    ) -> Result<RString, Error> {
        let decode = |ids: &[TokenId], task: &Task<'_>| this.0.decode_bytes(ids, skip, task);
        build::binary_in_pieces(ruby, &decoded(ruby, tokens, release, decode, |_, _| Ok(()))?)
    }
}
