//! The native methods of `offlock.tiktoken.Encoding`.

use std::collections::HashMap;
use std::sync::Arc;

use offlock_core::tokens::{self, Encoding, TokenId};
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};

use super::chunks;
use super::decode::{self, Sequences, offsets};
use super::encode::{Lists, Texts, one_piece};
use super::ids;
use super::packed::PackedTokens;
use super::special::{Disallowed, Names, Policy};
use super::stream::{Stream, limit_of};
use super::tokenizer::{AnyEncoding, Tokenizer, read_ranks, uninitialized};
use crate::cpython::object;
use crate::cpython::sequence::list_of_each;
use crate::error::{IntoException, WithMessage};
use crate::gil_yield::Yielder;
use crate::large::Large;
use crate::objects::{Int, Text, dict, tuple};
use crate::operations::{
    TOKENS_COUNT, TOKENS_COUNT_BATCH, TOKENS_DECODE, TOKENS_ENCODE, TOKENS_LOAD, TOKENS_TRUNCATE,
};
use crate::region::{Cancel, Region, Release};
use crate::strings::long_str;
use crate::utf8::utf8;
use crate::{bytes, int_list};

#[pymethods]
impl Tokenizer {
    /// One of `_load`, `_build` and `_adopt` fills the object.
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Loads the public encoding `name`. Raises `ValueError` when there is none of that name.
    fn _load(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        let found = Region::new(&TOKENS_LOAD, 0).run(py, |_| tokens::load(name))?;
        let encoding =
            found.ok_or_else(|| PyValueError::with_message(format!("Unknown encoding {name}.")))?;
        self.fill(Arc::new(AnyEncoding::Builtin(encoding)))
    }

    /// Builds a custom encoding. Raises `ValueError` for a bad pattern or vocabulary.
    fn _build(
        &self,
        py: Python<'_>,
        name: &str,
        pat_str: &str,
        mergeable_ranks: &Bound<'_, PyDict>,
        special_tokens: HashMap<String, TokenId>,
    ) -> PyResult<()> {
        let ranks = read_ranks(mergeable_ranks)?.into_inner();
        let encoding = Region::new(&TOKENS_LOAD, pat_str.len())
            .run(py, |task| Encoding::new(name, pat_str, ranks, special_tokens, task))?;
        self.fill(Arc::new(AnyEncoding::Custom(Box::new(encoding))))
    }

    /// Shares the encoding of `other`.
    fn _adopt(&self, other: &Bound<'_, Self>) -> PyResult<()> {
        self.fill(other.get().0.share().ok_or_else(uninitialized)?)
    }

    /// The pattern that cuts text into pieces.
    fn _pattern(&self) -> PyResult<Text<&str>> {
        Ok(Text(self.encoding()?.pattern()))
    }

    /// The bytes of the ordinary tokens, and their ids.
    fn _ranks<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (ranks, mut yielder) = (dict(py)?, Yielder::yielding());
        for (token, id) in self.encoding()?.ranks() {
            yielder.tick(py)?;
            ranks.set_item(bytes::copied(py, token)?, object::size(py, id as usize)?)?;
        }
        Ok(ranks)
    }

    /// The texts of the special tokens, and their ids.
    fn _specials<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let specials = dict(py)?;
        for (text, id) in self.encoding()?.specials() {
            specials.set_item(Text(text), Int(id as usize))?;
        }
        Ok(specials)
    }

    /// The greatest id.
    fn _max_token(&self) -> PyResult<Int> {
        Ok(Int(self.encoding()?.max_token_value() as usize))
    }

    /// Encodes text into token ids; special tokens' text is treated as any other.
    ///
    /// The same as `encode(text, disallowed_special=())`. Lone surrogates count as U+FFFD.
    #[pyo3(
        signature = (text, *, release = Release::AUTO, cancel = None),
        text_signature = "($self, text, *, release='auto', cancel=None)"
    )]
    fn encode_ordinary<'py>(
        &self,
        text: &Bound<'py, PyString>,
        release: Release,
        cancel: Option<&Bound<'py, Cancel>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let ids = self.ids(text, &Policy::ORDINARY, release, cancel)?;
        int_list::list(text.py(), &ids, &mut Yielder::of(release).cancel(cancel.map(Bound::get)))
    }

    /// Encodes text into token ids.
    ///
    /// `allowed_special` is a set of special tokens that become one id each where they occur, or `"all"`. The
    /// text may not contain those of `disallowed_special` (a collection of strings; `"all"` means all that
    /// are not allowed): that raises `ValueError`. Special tokens that are in neither are ordinary text. Lone
    /// surrogates count as U+FFFD.
    ///
    /// `release` says whether the interpreter lock is released: `"auto"` (when the text is large enough to
    /// pay for it), `"always"` or `"never"`. `cancel`, an `offlock.Cancel`, ends the call from another
    /// thread.
    #[pyo3(
        signature = (text, *, allowed_special = None, disallowed_special = Disallowed::All, release = Release::AUTO, cancel = None),
        text_signature = "($self, text, *, allowed_special=(), disallowed_special='all', release='auto', cancel=None)"
    )]
    fn encode<'py>(
        &self,
        text: &Bound<'py, PyString>,
        allowed_special: Option<&Bound<'py, PyAny>>,
        disallowed_special: Disallowed,
        release: Release,
        cancel: Option<&Bound<'py, Cancel>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let policy = Policy::new(allowed_special, disallowed_special)?;
        let ids = self.ids(text, &policy, release, cancel)?;
        int_list::list(text.py(), &ids, &mut Yielder::of(release).cancel(cancel.map(Bound::get)))
    }

    /// Like `encode`, with the ids packed into one block: 4 bytes each in the machine's order, read-only.
    #[pyo3(
        signature = (text, *, allowed_special = None, disallowed_special = Disallowed::All, release = Release::AUTO, cancel = None),
        text_signature = "($self, text, *, allowed_special=(), disallowed_special='all', release='auto', cancel=None)"
    )]
    fn encode_packed<'py>(
        &self,
        text: &Bound<'py, PyString>,
        allowed_special: Option<&Bound<'py, PyAny>>,
        disallowed_special: Disallowed,
        release: Release,
        cancel: Option<&Bound<'py, Cancel>>,
    ) -> PyResult<PackedTokens> {
        let policy = Policy::new(allowed_special, disallowed_special)?;
        self.ids(text, &policy, release, cancel).map(|ids| PackedTokens(ids.into_inner()))
    }

    /// The number of token ids that `encode` would return, without making them.
    #[pyo3(
        signature = (text, *, allowed_special = None, disallowed_special = Disallowed::All, release = Release::AUTO, cancel = None),
        text_signature = "($self, text, *, allowed_special=(), disallowed_special='all', release='auto', cancel=None)"
    )]
    fn count<'py>(
        &self,
        text: &Bound<'py, PyString>,
        allowed_special: Option<&Bound<'py, PyAny>>,
        disallowed_special: Disallowed,
        release: Release,
        cancel: Option<&Bound<'py, Cancel>>,
    ) -> PyResult<Int> {
        let policy = Policy::new(allowed_special, disallowed_special)?;
        let (encoding, utf8) = (self.encoding()?, utf8(text)?);
        Region::new(&TOKENS_COUNT, utf8.len())
            .release(release)
            .cancel(cancel.map(Bound::get))
            .run(text.py(), |task| {
                policy.apply(encoding, &utf8, task, |allowed| encoding.count(&utf8, allowed, task))
            })
            .map(Int)
    }

    /// The longest prefix of `text` that has at most `max_tokens` tokens, all of them whole, as a string.
    #[pyo3(
        signature = (text, max_tokens, *, allowed_special = None, disallowed_special = Disallowed::All, release = Release::AUTO, cancel = None),
        text_signature = "($self, text, max_tokens, *, allowed_special=(), disallowed_special='all', release='auto', cancel=None)"
    )]
    fn truncate<'py>(
        &self,
        text: &Bound<'py, PyString>,
        max_tokens: isize,
        allowed_special: Option<&Bound<'py, PyAny>>,
        disallowed_special: Disallowed,
        release: Release,
        cancel: Option<&Bound<'py, Cancel>>,
    ) -> PyResult<Bound<'py, PyString>> {
        let max = usize::try_from(max_tokens).map_err(|_| {
            PyValueError::with_message(format!("max_tokens must not be negative, it is {max_tokens}"))
        })?;
        let policy = Policy::new(allowed_special, disallowed_special)?;
        let (encoding, utf8) = (self.encoding()?, utf8(text)?);
        let kept = Region::new(&TOKENS_TRUNCATE, utf8.len())
            .release(release)
            .cancel(cancel.map(Bound::get))
            .run(text.py(), |task| {
                policy.apply(encoding, &utf8, task, |allowed| encoding.truncate(&utf8, max, allowed, task))
            })?;
        long_str::from_utf8(text.py(), &utf8[..kept.bytes])
    }

    /// What `make` returns for the text, the first character, the end and the number of tokens of each chunk, as a
    /// list.
    #[pyo3(
        signature = (text, max_tokens, make, *, overlap = 0, boundary = "token", release = Release::AUTO, cancel = None),
        text_signature = "($self, text, max_tokens, make, *, overlap=0, boundary='token', release='auto', cancel=None)"
    )]
    #[expect(
        clippy::too_many_arguments,
        reason = "one for each of the method that calls it, and what makes a chunk"
    )]
    fn _chunks<'py>(
        &self,
        text: &Bound<'py, PyString>,
        max_tokens: isize,
        make: &Bound<'py, PyAny>,
        overlap: isize,
        boundary: &str,
        release: Release,
        cancel: Option<&Bound<'py, Cancel>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let encoding = self.encoding()?;
        let options = chunks::options(max_tokens, overlap, boundary)?;
        chunks::cut(text, make, release, cancel, |text, task| encoding.chunks(text, options, task))
    }

    /// Returns a `Stream`, which encodes a text as it arrives in pieces.
    ///
    /// The ids are those of `encode(text, allowed_special=allowed_special, disallowed_special=())`. `limit` is
    /// the number of bytes of text that may be kept back. Raises `ValueError` for an encoding with a pattern of
    /// its own, which may look at any part of a text.
    #[pyo3(
        signature = (*, allowed_special = None, limit = None),
        text_signature = "($self, *, allowed_special=(), limit=None)"
    )]
    fn stream(
        &self,
        py: Python<'_>,
        allowed_special: Option<&Bound<'_, PyAny>>,
        limit: Option<isize>,
    ) -> PyResult<Stream> {
        let policy = Policy::new(allowed_special, Disallowed::Named(Names::None))?;
        let (encoding, limit) = (self.share()?, limit_of(limit)?);
        let stream = policy.with_allowed(|allowed| tokens::Stream::of_encoding(encoding, allowed, limit));
        stream.map(Stream::new).map_err(|error| error.into_exception(py))
    }

    /// Encodes many texts, on up to `num_threads` threads (no more than there are processors).
    ///
    /// Returns a list of the results of `encode` for each text. The interpreter lock is released once for all
    /// of them.
    #[pyo3(
        signature = (text, *, num_threads = Some(8), allowed_special = None, disallowed_special = Disallowed::All, release = Release::AUTO, cancel = None),
        text_signature = "($self, text, *, num_threads=8, allowed_special=(), disallowed_special='all', release='auto', cancel=None)"
    )]
    fn encode_batch<'py>(
        &self,
        text: &Bound<'py, PyAny>,
        num_threads: Option<isize>,
        allowed_special: Option<&Bound<'py, PyAny>>,
        disallowed_special: Disallowed,
        release: Release,
        cancel: Option<&Bound<'py, Cancel>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let policy = Policy::new(allowed_special, disallowed_special)?;
        self.lists(text, &policy, num_threads, release, cancel)
    }

    /// Encodes many texts like `encode_batch`, with special tokens' text treated as any other.
    #[pyo3(
        signature = (text, *, num_threads = Some(8), release = Release::AUTO, cancel = None),
        text_signature = "($self, text, *, num_threads=8, release='auto', cancel=None)"
    )]
    fn encode_ordinary_batch<'py>(
        &self,
        text: &Bound<'py, PyAny>,
        num_threads: Option<isize>,
        release: Release,
        cancel: Option<&Bound<'py, Cancel>>,
    ) -> PyResult<Bound<'py, PyList>> {
        self.lists(text, &Policy::ORDINARY, num_threads, release, cancel)
    }

    /// Returns a list of the results of `count` for each text, computed like `encode_batch`.
    #[pyo3(
        signature = (text, *, num_threads = Some(8), allowed_special = None, disallowed_special = Disallowed::All, release = Release::AUTO, cancel = None),
        text_signature = "($self, text, *, num_threads=8, allowed_special=(), disallowed_special='all', release='auto', cancel=None)"
    )]
    fn count_batch<'py>(
        &self,
        text: &Bound<'py, PyAny>,
        num_threads: Option<isize>,
        allowed_special: Option<&Bound<'py, PyAny>>,
        disallowed_special: Disallowed,
        release: Release,
        cancel: Option<&Bound<'py, Cancel>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let policy = Policy::new(allowed_special, disallowed_special)?;
        let (encoding, batch) = (self.encoding()?, Texts::new(text, num_threads, release, cancel)?);
        let counts = batch.region(&TOKENS_COUNT_BATCH, release, cancel).run(text.py(), |task| {
            let texts = batch.texts()?;
            policy.apply_all(encoding, &texts, task, |allowed| {
                encoding.count_batch(&texts, allowed, batch.threads, task)
            })
        })?;
        list_of_each(
            text.py(),
            &Large::new(counts),
            &mut Yielder::of(release).cancel(cancel.map(Bound::get)),
            |&count| object::size(text.py(), count),
        )
    }

    /// Encodes text that may continue. Returns the ids that are final, and all ways in which the rest may be
    /// encoded once more text follows. The arguments are those of `encode`.
    #[pyo3(
        signature = (text, *, allowed_special = None, disallowed_special = Disallowed::All, release = Release::AUTO, cancel = None),
        text_signature = "($self, text, *, allowed_special=(), disallowed_special='all', release='auto', cancel=None)"
    )]
    fn encode_with_unstable<'py>(
        &self,
        text: &Bound<'py, PyString>,
        allowed_special: Option<&Bound<'py, PyAny>>,
        disallowed_special: Disallowed,
        release: Release,
        cancel: Option<&Bound<'py, Cancel>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let policy = Policy::new(allowed_special, disallowed_special)?;
        let (encoding, utf8) = (self.encoding()?, utf8(text)?);
        let (settled, ways) = Region::new(&TOKENS_ENCODE, utf8.len())
            .release(release)
            .cancel(cancel.map(Bound::get))
            .run(text.py(), |task| {
                policy.apply(encoding, &utf8, task, |allowed| {
                    encoding.encode_with_unstable(&utf8, allowed, task)
                })
            })?;
        let (settled, ways, yielder) = (
            Large::new(settled),
            Large::new(Lists(ways)),
            &mut Yielder::of(release).cancel(cancel.map(Bound::get)),
        );
        let (settled, ways) =
            (int_list::list(text.py(), &settled, yielder)?, int_list::lists(text.py(), &ways.0, yielder)?);
        tuple(text.py(), [settled.into_any(), ways.into_any()])
    }

    /// The id of `text_or_bytes`, which is one token, ordinary or special. Raises `KeyError` if it is not.
    fn encode_single_token(&self, text_or_bytes: &Bound<'_, PyAny>) -> PyResult<Int> {
        let bytes = one_piece(text_or_bytes)?;
        match self.encoding()?.encode_single_token(&bytes) {
            Some(id) => Ok(Int(id as usize)),
            None => Err(PyKeyError::new_err(bytes::copied(text_or_bytes.py(), &bytes)?.unbind())),
        }
    }

    /// The ids of text taken as one piece, without cutting it by the pattern first.
    fn _encode_single_piece<'py>(&self, text_or_bytes: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let (encoding, bytes) = (self.encoding()?, one_piece(text_or_bytes)?);
        let ids = Region::new(&TOKENS_ENCODE, bytes.len())
            .run(text_or_bytes.py(), |task| encoding.encode_single_piece(&bytes, task))?;
        int_list::list(text_or_bytes.py(), &Large::new(ids), &mut Yielder::yielding())
    }

    /// The ids of bytes that need not be valid UTF-8.
    fn _encode_bytes<'py>(&self, text: &Bound<'py, PyBytes>) -> PyResult<Bound<'py, PyList>> {
        let (encoding, bytes) = (self.encoding()?, text.as_bytes());
        let ids = Region::new(&TOKENS_ENCODE, bytes.len())
            .run(text.py(), |task| encoding.encode_bytes(bytes, task))?;
        int_list::list(text.py(), &Large::new(ids), &mut Yielder::yielding())
    }

    /// The bytes of `tokens`, a sequence or an array of ids. Raises `KeyError` for an unknown id.
    #[pyo3(
        signature = (tokens, *, release = Release::AUTO, cancel = None),
        text_signature = "($self, tokens, *, release='auto', cancel=None)"
    )]
    fn decode_bytes<'py>(
        &self,
        tokens: &Bound<'py, PyAny>,
        release: Release,
        cancel: Option<&Bound<'py, Cancel>>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        bytes::copied(tokens.py(), &self.bytes(tokens, release, cancel)?)
    }

    /// The text of `tokens`. Raises `KeyError` for an unknown id.
    ///
    /// Tokens can end in the middle of a character: `errors` says how to handle bytes that are not UTF-8, as
    /// in `bytes.decode`.
    #[pyo3(
        signature = (tokens, errors = "replace", *, release = Release::AUTO, cancel = None),
        text_signature = "($self, tokens, errors='replace', *, release='auto', cancel=None)"
    )]
    fn decode<'py>(
        &self,
        tokens: &Bound<'py, PyAny>,
        errors: &str,
        release: Release,
        cancel: Option<&Bound<'py, Cancel>>,
    ) -> PyResult<Bound<'py, PyString>> {
        long_str::decode(tokens.py(), self.bytes(tokens, release, cancel)?, errors)
    }

    /// The text of `tokens`, and for each token the index of the first character that contains bytes of it.
    ///
    /// Raises `KeyError` for an unknown id and `UnicodeDecodeError` when the tokens do not make valid UTF-8.
    fn decode_with_offsets<'py>(&self, tokens: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let (py, encoding, ids) = (tokens.py(), self.encoding()?, ids::read_iterable(tokens)?);
        let (bytes, offsets) = Region::new(&TOKENS_DECODE, ids.len()).run(py, |task| {
            let bytes = encoding.decode_bytes(&ids, task)?;
            Ok::<_, tokens::Error>((bytes, offsets(encoding, &ids, task)?))
        })?;
        let offsets = Large::new(offsets);
        let text = long_str::decode(py, Large::new(bytes), "strict")?;
        let make = |&offset: &usize| object::size(py, offset);
        let offsets = list_of_each(py, &offsets, &mut Yielder::yielding(), make)?;
        tuple(py, [text.into_any(), offsets.into_any()])
    }

    /// The texts of many sequences of ids; one release of the lock for all.
    #[pyo3(
        signature = (batch, *, errors = "replace", num_threads = Some(8), release = Release::AUTO, cancel = None),
        text_signature = "($self, batch, *, errors='replace', num_threads=8, release='auto', cancel=None)"
    )]
    fn decode_batch<'py>(
        &self,
        batch: &Bound<'py, PyAny>,
        errors: &str,
        num_threads: Option<isize>,
        release: Release,
        cancel: Option<&Bound<'py, Cancel>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let read = Sequences::read(batch, num_threads, release, cancel)?;
        decode::texts(batch.py(), &read, &self.decoder()?, errors, release, cancel)
    }

    /// The bytes of many sequences of ids; one release of the lock for all.
    #[pyo3(
        signature = (batch, *, num_threads = Some(8), release = Release::AUTO, cancel = None),
        text_signature = "($self, batch, *, num_threads=8, release='auto', cancel=None)"
    )]
    fn decode_bytes_batch<'py>(
        &self,
        batch: &Bound<'py, PyAny>,
        num_threads: Option<isize>,
        release: Release,
        cancel: Option<&Bound<'py, Cancel>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let read = Sequences::read(batch, num_threads, release, cancel)?;
        decode::byte_strings(batch.py(), &read, &self.decoder()?, release, cancel)
    }

    /// The bytes of one token, ordinary or special. Raises `KeyError` for an unknown id.
    fn decode_single_token_bytes<'py>(
        &self,
        py: Python<'py>,
        token: TokenId,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.encoding()?.decode_single_token_bytes(token);
        let bytes = bytes.ok_or_else(|| PyKeyError::with_message(token.to_string()))?;
        bytes::copied(py, bytes)
    }

    /// The bytes of each token, in a list. Raises `KeyError` for an unknown id.
    fn decode_tokens_bytes<'py>(&self, tokens: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let py = tokens.py();
        let ids = ids::read_iterable(tokens)?;
        list_of_each(py, &ids, &mut Yielder::yielding(), |&id| self.decode_single_token_bytes(py, id))
    }

    /// The bytes of all ordinary tokens, sorted.
    fn token_byte_values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let encoding = self.encoding()?;
        let sorted = Region::new(&TOKENS_LOAD, 0).run(py, |task| encoding.token_byte_values(task))?;
        list_of_each(py, &Large::new(sorted), &mut Yielder::yielding(), |token| bytes::copied(py, token))
    }
}
