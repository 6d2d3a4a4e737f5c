//! `Offlock::Tiktoken::Stream`: a text that is encoded as it arrives.

use std::sync::{Mutex, MutexGuard};

use magnus::{Class, DataTypeFunctions, Error, Module, RModule, RString, Ruby, TypedData, Value, method};
use offlock_core::Task;
use offlock_core::tokens::{self, Fed};

use super::errors::TokensError;
use super::ids;
use crate::borrow::borrowed;
use crate::operations::TOKENS_STREAM;
use crate::region::{Region, Release, Yielder, drop_aside};

/// Defines the class and its native methods.
pub(crate) fn define(ruby: &Ruby, tiktoken: RModule) -> Result<(), Error> {
    let class = tiktoken.define_class("Stream", ruby.class_object())?;
    class.undef_default_alloc_func();
    class.define_method("final_count", method!(Stream::final_count, 0))?;
    class.define_method("pending", method!(Stream::pending, 0))?;
    class.define_private_method("native_feed", method!(Stream::feed, 3))?;
    class.define_private_method("native_count", method!(Stream::count, 2))?;
    class.define_private_method("native_finish", method!(Stream::finish, 2))?;
    class.define_private_method("native_total", method!(Stream::total, 1))
}

/// A stream. A thread that uses it while another one does gets an error: the order of their texts would be
/// unknown.
#[derive(TypedData)]
#[magnus(class = "Offlock::Tiktoken::Stream", free_immediately, size)]
pub(crate) struct Stream(Mutex<tokens::Stream>);

impl DataTypeFunctions for Stream {
    fn size(&self) -> usize {
        size_of::<Self>() + self.0.try_lock().map_or(0, |stream| stream.pending())
    }
}

impl Stream {
    pub(crate) fn new(stream: tokens::Stream) -> Self {
        Self(Mutex::new(stream))
    }

    fn lock(&self, ruby: &Ruby) -> Result<MutexGuard<'_, tokens::Stream>, Error> {
        let busy = |_| Error::new(ruby.exception_thread_error(), "another thread uses the stream");
        self.0.try_lock().map_err(busy)
    }

    fn final_count(ruby: &Ruby, this: &Self) -> Result<usize, Error> {
        Ok(this.lock(ruby)?.final_count())
    }

    fn pending(ruby: &Ruby, this: &Self) -> Result<usize, Error> {
        Ok(this.lock(ruby)?.pending())
    }

    fn feed(
        ruby: &Ruby,
        this: &Self,
        piece: RString,
        packed: bool,
        release: Release,
    ) -> Result<Value, Error> {
        let piece = borrowed!(Bytes, piece);
        this.run(ruby, release, piece.view(), tokens::Stream::try_feed, |fed| {
            ids::build(ruby, fed.tokens(), packed, &mut Yielder::new())
        })
    }

    fn count(ruby: &Ruby, this: &Self, piece: RString, release: Release) -> Result<usize, Error> {
        let piece = borrowed!(Bytes, piece);
        this.run(ruby, release, piece.view(), tokens::Stream::try_count, |fed| Ok(fed.count()))
    }

    fn finish(ruby: &Ruby, this: &Self, packed: bool, release: Release) -> Result<Value, Error> {
        this.run(ruby, release, &[], tokens::Stream::try_finish, |fed| {
            ids::build(ruby, fed.tokens(), packed, &mut Yielder::new())
        })
    }

    fn total(ruby: &Ruby, this: &Self, release: Release) -> Result<usize, Error> {
        let stream = this.lock(ruby)?;
        Region::new(&TOKENS_STREAM, stream.pending())
            .release(release)
            .run(ruby, |task| Ok::<_, TokensError>(stream.total(task)?))
    }

    /// Runs `work` over a piece, and lets the stream accept the result once `build` has made an object of it. So
    /// no token is lost if an interrupt raises.
    fn run<T>(
        &self,
        ruby: &Ruby,
        release: Release,
        piece: &[u8],
        work: impl Fn(&mut tokens::Stream, &[u8], &Task<'_>) -> Result<Fed, tokens::Error> + Sync,
        build: impl FnOnce(&Fed) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut guard = self.lock(ruby)?;
        let stream = &mut *guard;
        let mut fed = Region::new(&TOKENS_STREAM, piece.len() + stream.pending())
            .release(release)
            .run(ruby, |task| Ok::<_, TokensError>(work(stream, piece, task)?))?;
        let built = build(&fed);
        if built.is_ok() {
            guard.accept(&mut fed);
        }
        let (tokens, text) = fed.into_memory();
        drop_aside(tokens);
        drop_aside(text);
        built
    }
}

/// The value of `limit:`.
pub(crate) fn limit_of(ruby: &Ruby, limit: Option<i64>) -> Result<Option<usize>, Error> {
    let positive = |limit: i64| {
        usize::try_from(limit).ok().filter(|&limit| limit > 0).ok_or_else(|| {
            Error::new(ruby.exception_arg_error(), format!("limit must be at least 1, got {limit}"))
        })
    };
    limit.map(positive).transpose()
}
