//! The native half of `offlock.tokenizer`: the tokenizers of models.

use std::collections::HashMap;
use std::sync::Arc;

use offlock_core::Task;
use offlock_core::tokens::model::{Layout, Options, Padded, Side, Tokenizer, Unit};
use offlock_core::tokens::{self, TokenId};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};

use crate::cpython::late_init::Boxed;
use crate::cpython::object;
use crate::cpython::sequence::list_of_each;
use crate::cpython::short_sequence::pair_of_ints;
use crate::error::{IntoException, WithMessage};
use crate::gil_yield::Yielder;
use crate::large::Large;
use crate::objects::{Int, Text, dict, tuple};
use crate::operations::{
    TOKENS_COUNT, TOKENS_COUNT_BATCH, TOKENS_DECODE, TOKENS_ENCODE, TOKENS_ENCODE_BATCH, TOKENS_LOAD,
    TOKENS_TRUNCATE,
};
use crate::region::{Cancel, Region, Release};
use crate::strings::long_str;
use crate::tiktoken::chunks;
use crate::tiktoken::decode::{self, Decoder, Sequences};
use crate::tiktoken::encode::{Lists, Texts};
use crate::tiktoken::ids;
use crate::tiktoken::packed::{PackedIntegers, PackedTokens};
use crate::tiktoken::stream::{Stream, limit_of};
use crate::utf8::utf8;
use crate::{bytes, int_list};

/// A model's tokenizer. Immutable.
#[pyclass(frozen, subclass, module = "offlock._offlock")]
pub(crate) struct ModelTokenizer(Boxed<Arc<Tokenizer>>);

impl ModelTokenizer {
    /// The tokenizer itself.
    pub(crate) fn core(&self) -> Arc<Tokenizer> {
        Arc::clone(&self.0)
    }

    fn ids(
        &self,
        text: &Bound<'_, PyString>,
        options: Options,
        release: Release,
        cancel: Option<&Bound<'_, Cancel>>,
    ) -> PyResult<Large<Vec<TokenId>>> {
        let utf8 = utf8(text)?;
        Region::new(&TOKENS_ENCODE, utf8.len())
            .release(release)
            .cancel(cancel.map(Bound::get))
            .run(text.py(), |task| self.0.encode(&utf8, options, task))
            .map(Large::new)
    }

    fn bytes(
        &self,
        tokens: &Bound<'_, PyAny>,
        skip_special_tokens: bool,
        release: Release,
        cancel: Option<&Bound<'_, Cancel>>,
    ) -> PyResult<Large<Vec<u8>>> {
        let ids = ids::read(tokens, cancel)?;
        Region::new(&TOKENS_DECODE, ids.len())
            .release(release)
            .cancel(cancel.map(Bound::get))
            .run(tokens.py(), |task| self.0.decode_bytes(&ids, skip_special_tokens, task))
            .map(Large::new)
    }

    fn decoder(&self, skip_special_tokens: bool) -> impl Decoder {
        move |ids: &[TokenId], bytes: &mut Vec<u8>, task: &Task<'_>| {
            self.0.decode_bytes_to(ids, skip_special_tokens, bytes, task)
        }
    }
}

#[pymethods]
impl ModelTokenizer {
    /// Reads the content of a `tokenizer.json` or of a `tekken.json`; with a pattern, that of a `.tiktoken`
    /// file.
    #[new]
    #[pyo3(signature = (content, pattern = None, special_tokens = None))]
    fn new(
        content: &Bound<'_, PyBytes>,
        pattern: Option<&str>,
        special_tokens: Option<HashMap<String, TokenId>>,
    ) -> PyResult<Self> {
        let bytes = content.as_bytes();
        Region::new(&TOKENS_LOAD, bytes.len())
            .run(content.py(), |task| match pattern {
                Some(pattern) => {
                    Tokenizer::from_tiktoken(bytes, pattern, special_tokens.unwrap_or_default(), task)
                }
                None => Tokenizer::from_json(bytes, task),
            })
            .map(|tokenizer| Self(Boxed::new(Arc::new(tokenizer))))
    }

    /// Returns a `Stream`, which encodes a text as it arrives in pieces. The ids are those of `encode` with the
    /// same arguments. The first ones of the model's template come with the first piece, the last ones at the end.
    ///
    /// `limit` is the number of bytes of text that may be kept back. Raises `ValueError` when the model cannot be
    /// streamed; the message says what is in the way.
    #[pyo3(
        signature = (*, add_special_tokens = true, split_special_tokens = false, limit = None),
        text_signature = "($self, *, add_special_tokens=True, split_special_tokens=False, limit=None)"
    )]
    fn stream(
        &self,
        py: Python<'_>,
        add_special_tokens: bool,
        split_special_tokens: bool,
        limit: Option<isize>,
    ) -> PyResult<Stream> {
        let options = Options { add_special_tokens, split_special_tokens };
        let stream = tokens::Stream::of_model(Arc::clone(&self.0), options, limit_of(limit)?);
        stream.map(Stream::new).map_err(|error| error.into_exception(py))
    }

    /// Encodes text into token ids.
    ///
    /// `add_special_tokens` says whether the tokens of the model's template (such as the one that begins a
    /// text) go before and after those of the text. Added tokens in the text become one id each; with
    /// `split_special_tokens`, the special ones among them are ordinary text. Lone surrogates count as
    /// U+FFFD.
    ///
    /// `release` says whether the interpreter lock is released: `"auto"` (when the text is large enough to
    /// pay for it), `"always"` or `"never"`. `cancel`, an `offlock.Cancel`, ends the call from another
    /// thread.
    #[pyo3(
        signature = (text, *, add_special_tokens = true, split_special_tokens = false, release = Release::AUTO, cancel = None),
        text_signature = "($self, text, *, add_special_tokens=True, split_special_tokens=False, release='auto', cancel=None)"
    )]
    fn encode<'py>(
        &self,
        text: &Bound<'py, PyString>,
        add_special_tokens: bool,
        split_special_tokens: bool,
        release: Release,
        cancel: Option<&Bound<'py, Cancel>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let ids = self.ids(text, Options { add_special_tokens, split_special_tokens }, release, cancel)?;
        int_list::list(text.py(), &ids, &mut Yielder::of(release).cancel(cancel.map(Bound::get)))
    }

    /// Like `encode`, with the ids packed into one block: 4 bytes each in the machine's order, read-only.
    #[pyo3(
        signature = (text, *, add_special_tokens = true, split_special_tokens = false, release = Release::AUTO, cancel = None),
        text_signature = "($self, text, *, add_special_tokens=True, split_special_tokens=False, release='auto', cancel=None)"
    )]
    fn encode_packed<'py>(
        &self,
        text: &Bound<'py, PyString>,
        add_special_tokens: bool,
        split_special_tokens: bool,
        release: Release,
        cancel: Option<&Bound<'py, Cancel>>,
    ) -> PyResult<PackedTokens> {
        let options = Options { add_special_tokens, split_special_tokens };
        self.ids(text, options, release, cancel).map(|ids| PackedTokens(ids.into_inner()))
    }

    /// Like `encode`, with the place of each token: the start and the end of the characters of which it has
    /// bytes. `unit` is `"characters"` or `"bytes"` (of UTF-8). Two surrogates that make a pair count as the one
    /// character that they mean. Tokens of the template have `(0, 0)`.
    ///
    /// Returns a list of ids and a list of pairs.
    #[pyo3(
        signature = (text, *, unit = "characters", add_special_tokens = true, split_special_tokens = false, release = Release::AUTO, cancel = None),
        text_signature = "($self, text, *, unit='characters', add_special_tokens=True, split_special_tokens=False, release='auto', cancel=None)"
    )]
    fn encode_with_offsets<'py>(
        &self,
        text: &Bound<'py, PyString>,
        unit: &str,
        add_special_tokens: bool,
        split_special_tokens: bool,
        release: Release,
        cancel: Option<&Bound<'py, Cancel>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, unit, utf8) = (text.py(), unit_named(unit)?, utf8(text)?);
        let options = Options { add_special_tokens, split_special_tokens };
        let encoded = Region::new(&TOKENS_ENCODE, utf8.len())
            .release(release)
            .cancel(cancel.map(Bound::get))
            .run(py, |task| self.0.encode_with_offsets(&utf8, unit, options, task))?;
        let (ids, offsets) = (Large::new(encoded.tokens), Large::new(encoded.offsets));
        let yielder = &mut Yielder::of(release).cancel(cancel.map(Bound::get));
        let ids = int_list::list(py, &ids, yielder)?;
        let offsets = list_of_each(py, &offsets, yielder, |&(start, end)| pair_of_ints(py, start, end))?;
        tuple(py, [ids.into_any(), offsets.into_any()])
    }

    /// The number of token ids that `encode` would return, without making them.
    #[pyo3(
        signature = (text, *, add_special_tokens = true, split_special_tokens = false, release = Release::AUTO, cancel = None),
        text_signature = "($self, text, *, add_special_tokens=True, split_special_tokens=False, release='auto', cancel=None)"
    )]
    fn count<'py>(
        &self,
        text: &Bound<'py, PyString>,
        add_special_tokens: bool,
        split_special_tokens: bool,
        release: Release,
        cancel: Option<&Bound<'py, Cancel>>,
    ) -> PyResult<Int> {
        let (utf8, options) = (utf8(text)?, Options { add_special_tokens, split_special_tokens });
        Region::new(&TOKENS_COUNT, utf8.len())
            .release(release)
            .cancel(cancel.map(Bound::get))
            .run(text.py(), |task| self.0.count(&utf8, options, task))
            .map(Int)
    }

    /// The longest prefix of `text` whose whole tokens, with those of the template, are at most
    /// `max_tokens`, as a string.
    #[pyo3(
        signature = (text, max_tokens, *, add_special_tokens = true, split_special_tokens = false, release = Release::AUTO, cancel = None),
        text_signature = "($self, text, max_tokens, *, add_special_tokens=True, split_special_tokens=False, release='auto', cancel=None)"
    )]
    fn truncate<'py>(
        &self,
        text: &Bound<'py, PyString>,
        max_tokens: isize,
        add_special_tokens: bool,
        split_special_tokens: bool,
        release: Release,
        cancel: Option<&Bound<'py, Cancel>>,
    ) -> PyResult<Bound<'py, PyString>> {
        let max = natural("max_tokens", max_tokens)?;
        let (utf8, options) = (utf8(text)?, Options { add_special_tokens, split_special_tokens });
        let kept = Region::new(&TOKENS_TRUNCATE, utf8.len())
            .release(release)
            .cancel(cancel.map(Bound::get))
            .run(text.py(), |task| self.0.truncate(&utf8, max, options, task))?;
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
        let options = chunks::options(max_tokens, overlap, boundary)?;
        chunks::cut(text, make, release, cancel, |text, task| self.0.chunks(text, options, task))
    }

    /// Encodes many texts, on up to `num_threads` threads (no more than there are processors).
    ///
    /// Returns a list of the results of `encode` for each text. The interpreter lock is released once for all
    /// of them.
    #[pyo3(
        signature = (texts, *, num_threads = Some(8), add_special_tokens = true, split_special_tokens = false, release = Release::AUTO, cancel = None),
        text_signature = "($self, texts, *, num_threads=8, add_special_tokens=True, split_special_tokens=False, release='auto', cancel=None)"
    )]
    fn encode_batch<'py>(
        &self,
        texts: &Bound<'py, PyAny>,
        num_threads: Option<isize>,
        add_special_tokens: bool,
        split_special_tokens: bool,
        release: Release,
        cancel: Option<&Bound<'py, Cancel>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let options = Options { add_special_tokens, split_special_tokens };
        let batch = Texts::new(texts, num_threads, release, cancel)?;
        let all = batch
            .region(&TOKENS_ENCODE_BATCH, release, cancel)
            .run(texts.py(), |task| self.0.encode_batch(&batch.texts()?, options, batch.threads, task))?;
        int_list::lists(
            texts.py(),
            &Large::new(Lists(all)).0,
            &mut Yielder::of(release).cancel(cancel.map(Bound::get)),
        )
    }

    /// Returns a list of the results of `count` for each text, computed like `encode_batch`.
    #[pyo3(
        signature = (texts, *, num_threads = Some(8), add_special_tokens = true, split_special_tokens = false, release = Release::AUTO, cancel = None),
        text_signature = "($self, texts, *, num_threads=8, add_special_tokens=True, split_special_tokens=False, release='auto', cancel=None)"
    )]
    fn count_batch<'py>(
        &self,
        texts: &Bound<'py, PyAny>,
        num_threads: Option<isize>,
        add_special_tokens: bool,
        split_special_tokens: bool,
        release: Release,
        cancel: Option<&Bound<'py, Cancel>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let options = Options { add_special_tokens, split_special_tokens };
        let batch = Texts::new(texts, num_threads, release, cancel)?;
        let counts = batch
            .region(&TOKENS_COUNT_BATCH, release, cancel)
            .run(texts.py(), |task| self.0.count_batch(&batch.texts()?, options, batch.threads, task))?;
        list_of_each(
            texts.py(),
            &Large::new(counts),
            &mut Yielder::of(release).cancel(cancel.map(Bound::get)),
            |&count| object::size(texts.py(), count),
        )
    }

    /// The ids of many texts in rows of equal length, the mask, and the numbers of rows and of columns.
    #[pyo3(signature = (texts, *, max_length, truncation_side, length, multiple_of, pad_token, padding_side, num_threads, add_special_tokens, split_special_tokens, release, cancel))]
    #[expect(clippy::too_many_arguments, reason = "one for each of the method that calls it")]
    fn _encode_padded<'py>(
        &self,
        texts: &Bound<'py, PyAny>,
        max_length: Option<usize>,
        truncation_side: &str,
        length: Option<usize>,
        multiple_of: usize,
        pad_token: TokenId,
        padding_side: &str,
        num_threads: Option<isize>,
        add_special_tokens: bool,
        split_special_tokens: bool,
        release: Release,
        cancel: Option<&Bound<'py, Cancel>>,
    ) -> PyResult<(PackedIntegers, PackedIntegers, Int, Int)> {
        let (truncation_side, padding_side) =
            (side("truncation_side", truncation_side)?, side("padding_side", padding_side)?);
        let layout = Layout { max_length, truncation_side, length, multiple_of, pad_token, padding_side };
        let options = Options { add_special_tokens, split_special_tokens };
        let batch = Texts::new(texts, num_threads, release, cancel)?;
        let Padded { tokens, mask, rows, columns } =
            batch.region(&TOKENS_ENCODE_BATCH, release, cancel).run(texts.py(), |task| {
                self.0.encode_padded(&batch.texts()?, &layout, options, batch.threads, task)
            })?;
        Ok((PackedIntegers::new(tokens), PackedIntegers::new(mask), Int(rows), Int(columns)))
    }

    /// The bytes of `tokens`, a sequence or an array of ids. An id without a token stands for no bytes.
    #[pyo3(
        signature = (tokens, *, skip_special_tokens = true, release = Release::AUTO, cancel = None),
        text_signature = "($self, tokens, *, skip_special_tokens=True, release='auto', cancel=None)"
    )]
    fn decode_bytes<'py>(
        &self,
        tokens: &Bound<'py, PyAny>,
        skip_special_tokens: bool,
        release: Release,
        cancel: Option<&Bound<'py, Cancel>>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        bytes::copied(tokens.py(), &self.bytes(tokens, skip_special_tokens, release, cancel)?)
    }

    /// The text of `tokens`, without special tokens unless `skip_special_tokens` is false. An id without a
    /// token stands for no text.
    ///
    /// Tokens can end in the middle of a character: `errors` says how to handle bytes that are not UTF-8, as
    /// in `bytes.decode`.
    #[pyo3(
        signature = (tokens, errors = "replace", *, skip_special_tokens = true, release = Release::AUTO, cancel = None),
        text_signature = "($self, tokens, errors='replace', *, skip_special_tokens=True, release='auto', cancel=None)"
    )]
    fn decode<'py>(
        &self,
        tokens: &Bound<'py, PyAny>,
        errors: &str,
        skip_special_tokens: bool,
        release: Release,
        cancel: Option<&Bound<'py, Cancel>>,
    ) -> PyResult<Bound<'py, PyString>> {
        long_str::decode(tokens.py(), self.bytes(tokens, skip_special_tokens, release, cancel)?, errors)
    }

    /// The texts of many sequences of ids; one release of the lock for all.
    #[pyo3(
        signature = (batch, *, errors = "replace", skip_special_tokens = true, num_threads = Some(8), release = Release::AUTO, cancel = None),
        text_signature = "($self, batch, *, errors='replace', skip_special_tokens=True, num_threads=8, release='auto', cancel=None)"
    )]
    fn decode_batch<'py>(
        &self,
        batch: &Bound<'py, PyAny>,
        errors: &str,
        skip_special_tokens: bool,
        num_threads: Option<isize>,
        release: Release,
        cancel: Option<&Bound<'py, Cancel>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let read = Sequences::read(batch, num_threads, release, cancel)?;
        decode::texts(batch.py(), &read, &self.decoder(skip_special_tokens), errors, release, cancel)
    }

    /// The bytes of many sequences of ids; one release of the lock for all.
    #[pyo3(
        signature = (batch, *, skip_special_tokens = true, num_threads = Some(8), release = Release::AUTO, cancel = None),
        text_signature = "($self, batch, *, skip_special_tokens=True, num_threads=8, release='auto', cancel=None)"
    )]
    fn decode_bytes_batch<'py>(
        &self,
        batch: &Bound<'py, PyAny>,
        skip_special_tokens: bool,
        num_threads: Option<isize>,
        release: Release,
        cancel: Option<&Bound<'py, Cancel>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let read = Sequences::read(batch, num_threads, release, cancel)?;
        decode::byte_strings(batch.py(), &read, &self.decoder(skip_special_tokens), release, cancel)
    }

    /// The id of the token that the model's vocabulary writes as `token`; `None` if it has none.
    fn token_to_id(&self, token: &str) -> Option<Int> {
        self.0.token_to_id(token).map(|id| Int(id as usize))
    }

    /// How the model's vocabulary writes the token `id` (a blank is `Ġ`); `None` if there is none.
    fn id_to_token(&self, id: TokenId) -> Option<Text<String>> {
        self.0.id_to_token(id).map(Text)
    }

    /// The number of tokens, with those that were added.
    #[getter]
    fn vocab_size(&self) -> Int {
        Int(self.0.vocab_size())
    }

    /// The texts of the added tokens, and their ids.
    #[getter]
    fn added_tokens<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let tokens = dict(py)?;
        for (text, id, _) in self.0.added_tokens() {
            tokens.set_item(Text(text), Int(id as usize))?;
        }
        Ok(tokens)
    }
}

fn unit_named(name: &str) -> PyResult<Unit> {
    match name {
        "characters" => Ok(Unit::Characters),
        "bytes" => Ok(Unit::Bytes),
        other => {
            let message = format!("unit must be 'characters' or 'bytes', not {other:?}");
            Err(PyValueError::with_message(message))
        }
    }
}

fn side(argument: &str, name: &str) -> PyResult<Side> {
    match name {
        "left" => Ok(Side::Left),
        "right" => Ok(Side::Right),
        other => {
            let message = format!("{argument} must be 'left' or 'right', not {other:?}");
            Err(PyValueError::with_message(message))
        }
    }
}

fn natural(argument: &str, number: isize) -> PyResult<usize> {
    let message = || format!("{argument} must not be negative, it is {number}");
    usize::try_from(number).map_err(|_| PyValueError::with_message(message()))
}
