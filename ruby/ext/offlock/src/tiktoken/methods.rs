//! The native methods of the class `Encoding`.

use std::sync::OnceLock;
use std::thread;

use magnus::value::ReprValue;
use magnus::{
    DataTypeFunctions, Error, Module, Object, RArray, RHash, RModule, RString, Ruby, Symbol, TryConvert,
    TypedData, Value, function, method,
};
use offlock_core::Task;
use offlock_core::tokens::{self, Specials, TokenId};

use super::chunks;
use super::errors::TokensError;
use super::ids;
use super::stream::{self, Stream, limit_of};
use crate::borrow::{self, TextError, TextView, borrowed, numbers};
use crate::build;
use crate::error::IntoException;
use crate::operations::{
    TOKENS_COUNT, TOKENS_COUNT_BATCH, TOKENS_DECODE, TOKENS_ENCODE, TOKENS_ENCODE_BATCH, TOKENS_TRUNCATE,
};
use crate::region::{Region, Release, Yielder, drop_aside};

/// A thread that helps with a batch must have at least this many bytes to work on.
const BYTES_PER_THREAD: usize = 32 << 10;

/// Defines the class and its native methods.
pub(crate) fn define(ruby: &Ruby, offlock: RModule) -> Result<(), Error> {
    let tiktoken = offlock.define_module("Tiktoken")?;
    tiktoken.define_error("UnicodeError", ruby.exception_standard_error())?;
    let class = tiktoken.define_class("Encoding", ruby.class_object())?;
    class.define_singleton_method("native_all", function!(Encoding::all, 0))?;
    class.define_method("name", method!(Encoding::name, 0))?;
    class.define_method("n_vocab", method!(Encoding::n_vocab, 0))?;
    class.define_method("max_token_value", method!(Encoding::max_token_value, 0))?;
    class.define_method("special_tokens", method!(Encoding::special_tokens, 0))?;
    class.define_private_method("native_encode", method!(Encoding::encode, 4))?;
    class.define_private_method("native_encode_batch", method!(Encoding::encode_batch, 5))?;
    class.define_private_method("native_count", method!(Encoding::count, 3))?;
    class.define_private_method("native_count_batch", method!(Encoding::count_batch, 4))?;
    class.define_private_method("native_truncate", method!(Encoding::truncate, 4))?;
    class.define_private_method("native_chunks", method!(Encoding::chunks, 5))?;
    class.define_private_method("native_stream", method!(Encoding::stream, 2))?;
    class.define_private_method("native_decode", method!(Encoding::decode, 2))?;
    class.define_private_method("native_decode_bytes", method!(Encoding::decode_bytes, 2))?;
    class.define_private_method("native_encode_single_token", method!(Encoding::encode_single_token, 1))?;
    class.define_private_method("native_decode_single_token", method!(Encoding::decode_single_token, 1))?;
    stream::define(ruby, tiktoken)?;
    tiktoken.define_singleton_method("native_models", function!(|| pairs(tokens::models::MODELS), 0))?;
    tiktoken.define_singleton_method("native_prefixes", function!(|| pairs(tokens::models::PREFIXES), 0))
}

fn pairs(table: &[(&'static str, &'static str)]) -> Vec<(&'static str, &'static str)> {
    table.to_vec()
}

/// A public encoding. Its vocabulary is unpacked on first use.
#[derive(TypedData)]
#[magnus(class = "Offlock::Tiktoken::Encoding", free_immediately, frozen_shareable)]
struct Encoding {
    name: &'static str,
    core: OnceLock<&'static tokens::Encoding>,
}

impl DataTypeFunctions for Encoding {}

impl Encoding {
    /// All public encodings, frozen.
    fn all(ruby: &Ruby) -> RArray {
        let encodings = tokens::names().iter().map(|&name| {
            let encoding = ruby.obj_wrap(Self { name, core: OnceLock::new() });
            encoding.freeze();
            encoding
        });
        ruby.ary_from_iter(encodings)
    }

    fn core(&self) -> &'static tokens::Encoding {
        match self.core.get() {
            Some(core) => core,
            None => self.load(),
        }
    }

    /// Loads the encoding before storing it, so that no thread waits for a thread that a fork has removed.
    fn load(&self) -> &'static tokens::Encoding {
        let core = tokens::get(self.name).expect("a public encoding has a public name");
        self.core.get_or_init(|| core)
    }

    fn name(ruby: &Ruby, this: &Self) -> Symbol {
        ruby.to_symbol(this.name)
    }

    fn n_vocab(&self) -> usize {
        self.core().n_vocab()
    }

    fn max_token_value(&self) -> TokenId {
        self.core().max_token_value()
    }

    fn special_tokens(ruby: &Ruby, this: &Self) -> Result<RHash, Error> {
        let specials = ruby.hash_new();
        for (text, token) in this.core().specials() {
            specials.aset(text, token)?;
        }
        Ok(specials)
    }

    fn encode(
        ruby: &Ruby,
        this: &Self,
        text: Value,
        allowed: Value,
        packed: bool,
        release: Release,
    ) -> Result<Value, Error> {
        let core = this.core();
        let allowed = Allowed::new(core, allowed)?;
        let text = borrowed!(Text, ruby, text);
        let view = text.view();
        let ids = Region::new(&TOKENS_ENCODE, view.len()).release(release).run(ruby, |task| {
            Ok::<_, TokensError>(core.encode(view.checked(task)?, allowed.specials(), task)?)
        })?;
        let built = ids::build(ruby, &ids, packed, &mut Yielder::new());
        drop_aside(ids);
        built
    }

    fn count(
        ruby: &Ruby,
        this: &Self,
        text: Value,
        allowed: Value,
        release: Release,
    ) -> Result<usize, Error> {
        let core = this.core();
        let allowed = Allowed::new(core, allowed)?;
        let text = borrowed!(Text, ruby, text);
        let view = text.view();
        Region::new(&TOKENS_COUNT, view.len()).release(release).run(ruby, |task| {
            Ok::<_, TokensError>(core.count(view.checked(task)?, allowed.specials(), task)?)
        })
    }

    fn encode_batch(
        ruby: &Ruby,
        this: &Self,
        texts: RArray,
        allowed: Value,
        threads: Option<i64>,
        packed: bool,
        release: Release,
    ) -> Result<RArray, Error> {
        let core = this.core();
        let allowed = Allowed::new(core, allowed)?;
        let texts = borrowed!(Texts, ruby, texts);
        let batch = Batch::new(ruby, texts.views(), threads, release)?;
        let lists = Region::new(&TOKENS_ENCODE_BATCH, batch.bytes).release(release).run(ruby, |task| {
            let texts = borrow::all_checked(batch.views, task)?;
            Ok::<_, TokensError>(core.encode_batch(&texts, allowed.specials(), batch.threads, task)?)
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
        allowed: Value,
        threads: Option<i64>,
        release: Release,
    ) -> Result<RArray, Error> {
        let core = this.core();
        let allowed = Allowed::new(core, allowed)?;
        let texts = borrowed!(Texts, ruby, texts);
        let batch = Batch::new(ruby, texts.views(), threads, release)?;
        let counts = Region::new(&TOKENS_COUNT_BATCH, batch.bytes).release(release).run(ruby, |task| {
            let texts = borrow::all_checked(batch.views, task)?;
            Ok::<_, TokensError>(core.count_batch(&texts, allowed.specials(), batch.threads, task)?)
        })?;
        build::integers(ruby, counts.into_iter(), &mut Yielder::new())
    }

    fn truncate(
        ruby: &Ruby,
        this: &Self,
        text: Value,
        max: i64,
        allowed: Value,
        release: Release,
    ) -> Result<RString, Error> {
        let core = this.core();
        let max = usize::try_from(max).map_err(|_| {
            Error::new(ruby.exception_arg_error(), format!("max_tokens must not be negative, got {max}"))
        })?;
        let allowed = Allowed::new(core, allowed)?;
        let text = borrowed!(Text, ruby, text);
        let view = text.view();
        let kept = Region::new(&TOKENS_TRUNCATE, view.len()).release(release).run(ruby, |task| {
            let kept = core.truncate(view.checked(task)?, max, allowed.specials(), task)?;
            Ok::<_, TokensError>(kept.bytes)
        })?;
        text.beginning(kept)
    }

    /// Five numbers for each chunk: its start and end in bytes, the same in characters, and its tokens.
    fn chunks(
        ruby: &Ruby,
        this: &Self,
        text: Value,
        max: i64,
        overlap: i64,
        boundary: Symbol,
        release: Release,
    ) -> Result<RArray, Error> {
        let core = this.core();
        let options = chunks::options(ruby, max, overlap, boundary)?;
        chunks::cut(ruby, text, release, |text, task| core.chunks(text, options, task))
    }

    fn stream(ruby: &Ruby, this: &Self, allowed: Value, limit: Option<i64>) -> Result<Stream, Error> {
        let (core, limit) = (this.core(), limit_of(ruby, limit)?);
        let allowed = Allowed::new(core, allowed)?;
        let stream = tokens::Stream::of_encoding(core, allowed.specials(), limit);
        stream.map(Stream::new).map_err(|error| TokensError::Tokens(error).into_exception(ruby))
    }

    fn decode(ruby: &Ruby, this: &Self, tokens: Value, release: Release) -> Result<RString, Error> {
        let bytes = this.bytes(ruby, tokens, release, borrow::check_utf8)?;
        build::utf8(ruby, &bytes)
    }

    fn decode_bytes(ruby: &Ruby, this: &Self, tokens: Value, release: Release) -> Result<RString, Error> {
        build::binary_in_pieces(ruby, &this.bytes(ruby, tokens, release, |_, _| Ok(()))?)
    }

    /// The bytes of the tokens, if `check` finds no error in them.
    fn bytes(
        &self,
        ruby: &Ruby,
        tokens: Value,
        release: Release,
        check: impl Fn(&[u8], &Task<'_>) -> Result<(), TextError> + Sync,
    ) -> Result<Vec<u8>, Error> {
        let core = self.core();
        decoded(ruby, tokens, release, |ids, task| core.decode_bytes(ids, task), check)
    }

    fn encode_single_token(&self, bytes: RString) -> Result<Option<TokenId>, Error> {
        let bytes = borrowed!(Bytes, bytes);
        Ok(self.core().encode_single_token(bytes.view()))
    }

    fn decode_single_token(ruby: &Ruby, this: &Self, token: TokenId) -> Result<Option<RString>, Error> {
        let bytes = this.core().decode_single_token_bytes(token);
        bytes.map(|bytes| build::binary_at_once(ruby, bytes)).transpose()
    }
}

/// What `decode` makes of an Array of tokens or of packed tokens, if `check` finds no error in it.
pub(crate) fn decoded(
    ruby: &Ruby,
    tokens: Value,
    release: Release,
    decode: impl Fn(&[TokenId], &Task<'_>) -> Result<Vec<u8>, tokens::Error> + Sync,
    check: impl Fn(&[u8], &Task<'_>) -> Result<(), TextError> + Sync,
) -> Result<Vec<u8>, Error> {
    let decoded = |ids: &[TokenId], task: &Task<'_>| {
        let bytes = decode(ids, task)?;
        check(&bytes, task).map_err(TokensError::Decoded)?;
        Ok::<_, TokensError>(bytes)
    };
    let region = |size| Region::new(&TOKENS_DECODE, size).release(release);
    if let Some(packed) = RString::from_value(tokens) {
        let packed = borrowed!(Bytes, packed);
        let packed = packed.view();
        ids::check_packed(ruby, packed)?;
        return region(packed.len()).run(ruby, |task| {
            let ids = ids::unpack(packed).map_err(tokens::Error::from)?;
            decoded(&ids, task)
        });
    }
    let ids = ids::collect(ruby, RArray::try_convert(tokens)?)?;
    region(size_of_val(&ids[..])).run(ruby, |task| decoded(&ids, task))
}

/// The special tokens that the caller wants to be recognized.
enum Allowed {
    None,
    All,
    Only(Vec<&'static str>),
}

impl Allowed {
    /// From `nil`, `:all` or an Array of Strings, of which those that are not special tokens are ignored.
    fn new(core: &'static tokens::Encoding, allowed: Value) -> Result<Self, Error> {
        if allowed.is_nil() {
            return Ok(Self::None);
        }
        if let Some(symbol) = Symbol::from_value(allowed)
            && symbol.name()? == "all"
        {
            return Ok(Self::All);
        }
        let texts = numbers(RArray::try_convert(allowed)?, |_| None, |text, _| String::try_convert(text))?;
        let known = texts.iter().filter_map(|text| core.specials().find(|(special, _)| special == text));
        Ok(Self::Only(known.map(|(special, _)| special).collect()))
    }

    fn specials(&self) -> Specials<'_> {
        match self {
            Self::None => Specials::None,
            Self::All => Specials::All,
            Self::Only(texts) => Specials::Only(texts),
        }
    }
}

/// The texts of a batch, and the number of threads that work on them.
pub(crate) struct Batch<'a> {
    pub(crate) views: &'a [TextView<'a>],
    pub(crate) bytes: usize,
    pub(crate) threads: usize,
}

impl<'a> Batch<'a> {
    pub(crate) fn new(
        ruby: &Ruby,
        views: &'a [TextView<'a>],
        threads: Option<i64>,
        release: Release,
    ) -> Result<Self, Error> {
        let bytes = views.iter().map(|view| view.len()).sum();
        let useful = if release == Release::NEVER { 1 } else { 1 + bytes / BYTES_PER_THREAD };
        let threads = match threads.map(usize::try_from) {
            // A system call would take longer than a short batch.
            None if useful == 1 => 1,
            None => thread::available_parallelism().map_or(1, usize::from),
            Some(Ok(threads @ 1..)) => threads,
            Some(_) => return Err(no_threads(ruby, threads)),
        };
        Ok(Self { views, bytes, threads: threads.min(useful) })
    }
}

fn no_threads(ruby: &Ruby, threads: Option<i64>) -> Error {
    let message = format!("threads must be at least 1, got {}", threads.unwrap_or_default());
    Error::new(ruby.exception_arg_error(), message)
}
