//! The native half of `offlock.tiktoken.Encoding`.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};
use std::thread;

use offlock_core::text::{Pieces, Span};
use offlock_core::tokens::{self, Encoding, TokenId};
use offlock_core::{Task, memory};
use pyo3::exceptions::{PyKeyError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::{PyBytes, PyDict, PyList, PyString};

use crate::bulk::{Bulk, Held, Weigh, reserve};
use crate::errors::WithMessage;
use crate::filling::{Container, Filling};
use crate::objects::{Int, Text, dict, tuple};
use crate::once::Once;
use crate::pace::Pace;
use crate::packed::PackedTokens;
use crate::region::{Cancel, Operation, Region, Release};
use crate::specials::{Disallowed, Policy, Refused};
use crate::strings;
use crate::utf8::{Utf8, utf8};
use crate::{bytes, ids, ints};

/// Sizes are bytes of text, numbers of tokens when decoding. From these on two threads get more done off the lock than on it
/// (1.5 and 1.1 times for texts of 4 KB, encoded and counted; 1.2 times for 64 thousand tokens, decoded), as
/// `bench/region/break_even.py` measured.
static ENCODE: Operation = Operation { name: "tokens.encode", break_even: 4096 };
static ENCODE_BATCH: Operation = Operation { name: "tokens.encode_batch", break_even: 4096 };
static COUNT: Operation = Operation { name: "tokens.count", break_even: 4096 };
static COUNT_BATCH: Operation = Operation { name: "tokens.count_batch", break_even: 4096 };
static TRUNCATE: Operation = Operation { name: "tokens.truncate", break_even: 4096 };
static DECODE: Operation = Operation { name: "tokens.decode", break_even: 64 << 10 };
static LOAD: Operation = Operation { name: "tokens.load", break_even: 0 };

/// Turns text into tokens and back. Filled once, by the `Encoding` that inherits from it; immutable from then on.
#[pyclass(frozen, subclass, module = "offlock._offlock")]
#[derive(Default)]
pub(crate) struct Tokenizer(Once<Source>);

enum Source {
    Builtin(&'static Encoding),
    Custom(Box<Encoding>),
}

impl Source {
    fn encoding(&self) -> &Encoding {
        match self {
            Self::Builtin(encoding) => encoding,
            Self::Custom(encoding) => encoding,
        }
    }
}

#[pymethods]
impl Tokenizer {
    /// One of `_load`, `_build` and `_adopt` fills the object.
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Becomes the public encoding `name`. Raises `ValueError` when there is none of that name.
    fn _load(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        let found = Region::new(&LOAD, 0).run(py, |_| tokens::load(name))?;
        let encoding =
            found.ok_or_else(|| PyValueError::with_message(format!("Unknown encoding {name}.")))?;
        self.fill(Arc::new(Source::Builtin(encoding)))
    }

    /// Becomes a custom encoding. Raises `ValueError` for a bad pattern or vocabulary.
    fn _build(
        &self,
        py: Python<'_>,
        name: &str,
        pat_str: &str,
        mergeable_ranks: &Bound<'_, PyDict>,
        special_tokens: HashMap<String, TokenId>,
    ) -> PyResult<()> {
        let ranks = read_ranks(mergeable_ranks)?.into_inner();
        let encoding = Region::new(&LOAD, pat_str.len())
            .run(py, |task| Encoding::new(name, pat_str, ranks, special_tokens, task))?;
        self.fill(Arc::new(Source::Custom(Box::new(encoding))))
    }

    /// Becomes what `other` is.
    fn _adopt(&self, other: &Bound<'_, Self>) -> PyResult<()> {
        self.fill(other.get().0.share().ok_or_else(uninitialized)?)
    }

    /// The pattern that cuts text into pieces.
    fn _pattern(&self) -> PyResult<Text<&str>> {
        Ok(Text(self.encoding()?.pattern()))
    }

    /// The bytes of the ordinary tokens, and their ids.
    fn _ranks<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (ranks, mut pace) = (dict(py)?, Pace::giving_way());
        for (token, id) in self.encoding()?.ranks() {
            pace.keep(py)?;
            ranks.set_item(bytes::copied(py, token)?, ints::int(py, id as usize)?)?;
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
        signature = (text, *, release = Release::Auto, cancel = None),
        text_signature = "($self, text, *, release='auto', cancel=None)"
    )]
    fn encode_ordinary<'py>(
        &self,
        text: &Bound<'py, PyString>,
        release: Release,
        cancel: Option<&Bound<'py, Cancel>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let ids = self.ids(text, &Policy::ORDINARY, release, cancel)?;
        ints::list(text.py(), &ids, &mut Pace::of(release))
    }

    /// Encodes text into token ids.
    ///
    /// `allowed_special` is a set of special tokens that become one id each where they occur, or `"all"`. The text may
    /// not contain those of `disallowed_special` (a collection of strings; `"all"` means all that are not allowed): that
    /// raises `ValueError`. Special tokens that are in neither are ordinary text. Lone surrogates count as U+FFFD.
    ///
    /// `release` says whether the interpreter lock is released: `"auto"` (when the text is large enough to pay for it),
    /// `"always"` or `"never"`. `cancel`, an `offlock.Cancel`, ends the call from another thread.
    #[pyo3(
        signature = (text, *, allowed_special = None, disallowed_special = Disallowed::All, release = Release::Auto, cancel = None),
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
        ints::list(text.py(), &ids, &mut Pace::of(release))
    }

    /// Like `encode`, with the ids packed into one block: 4 bytes each in the machine's order, read-only.
    #[pyo3(
        signature = (text, *, allowed_special = None, disallowed_special = Disallowed::All, release = Release::Auto, cancel = None),
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
        signature = (text, *, allowed_special = None, disallowed_special = Disallowed::All, release = Release::Auto, cancel = None),
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
        Region::new(&COUNT, utf8.len())
            .release(release)
            .cancel(cancel.map(Bound::get))
            .run(text.py(), |task| {
                policy.apply(encoding, &utf8, |allowed| encoding.count(&utf8, allowed, task))
            })
            .map(Int)
    }

    /// The longest beginning of `text` that has at most `max_tokens` tokens, all of them whole, as a string.
    #[pyo3(
        signature = (text, max_tokens, *, allowed_special = None, disallowed_special = Disallowed::All, release = Release::Auto, cancel = None),
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
        let kept = Region::new(&TRUNCATE, utf8.len())
            .release(release)
            .cancel(cancel.map(Bound::get))
            .run(text.py(), |task| {
                policy.apply(encoding, &utf8, |allowed| encoding.truncate(&utf8, max, allowed, task))
            })?;
        strings::from_utf8(text.py(), &utf8[..kept.bytes])
    }

    /// Encodes many texts, on up to `num_threads` threads (no more than there are processors).
    ///
    /// A list with what `encode` returns for each text. The interpreter lock is released once for all of them.
    #[pyo3(
        signature = (text, *, num_threads = Some(8), allowed_special = None, disallowed_special = Disallowed::All, release = Release::Auto, cancel = None),
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
        signature = (text, *, num_threads = Some(8), release = Release::Auto, cancel = None),
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

    /// A list with what `count` returns for each text, computed like `encode_batch`.
    #[pyo3(
        signature = (text, *, num_threads = Some(8), allowed_special = None, disallowed_special = Disallowed::All, release = Release::Auto, cancel = None),
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
        let (encoding, batch) = (self.encoding()?, Batch::new(text, num_threads, release)?);
        let counts = batch.region(&COUNT_BATCH, release, cancel).run(text.py(), |task| {
            let texts = batch.texts()?;
            policy.apply_all(encoding, &texts, |allowed| {
                encoding.count_batch(&texts, allowed, batch.threads, task)
            })
        })?;
        paced_list(text.py(), &Bulk::new(counts), &mut Pace::of(release), |&count| {
            ints::int(text.py(), count)
        })
    }

    /// Encodes text that may go on: the ids that are settled, and all ways in which the rest may be encoded once more text
    /// follows. The arguments are those of `encode`.
    #[pyo3(
        signature = (text, *, allowed_special = None, disallowed_special = Disallowed::All, release = Release::Auto, cancel = None),
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
        let (settled, ways) = Region::new(&ENCODE, utf8.len())
            .release(release)
            .cancel(cancel.map(Bound::get))
            .run(text.py(), |task| {
                policy.apply(encoding, &utf8, |allowed| encoding.encode_with_unstable(&utf8, allowed, task))
            })?;
        let (settled, ways, pace) = (Bulk::new(settled), Bulk::new(Lists(ways)), &mut Pace::of(release));
        let (settled, ways) =
            (ints::list(text.py(), &settled, pace)?, ints::lists(text.py(), &ways.0, pace)?);
        tuple(text.py(), [settled.into_any(), ways.into_any()])
    }

    /// The id of the one token, ordinary or special, that `text_or_bytes` is. Raises `KeyError` when it is none.
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
        let ids = Region::new(&ENCODE, bytes.len())
            .run(text_or_bytes.py(), |task| encoding.encode_single_piece(&bytes, task))?;
        ints::list(text_or_bytes.py(), &Bulk::new(ids), &mut Pace::giving_way())
    }

    /// The ids of bytes that need not be valid UTF-8.
    fn _encode_bytes<'py>(&self, text: &Bound<'py, PyBytes>) -> PyResult<Bound<'py, PyList>> {
        let (encoding, bytes) = (self.encoding()?, text.as_bytes());
        let ids =
            Region::new(&ENCODE, bytes.len()).run(text.py(), |task| encoding.encode_bytes(bytes, task))?;
        ints::list(text.py(), &Bulk::new(ids), &mut Pace::giving_way())
    }

    /// The bytes that `tokens`, a sequence or an array of ids, stand for. Raises `KeyError` for an unknown id.
    #[pyo3(
        signature = (tokens, *, release = Release::Auto, cancel = None),
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

    /// The text that `tokens` stand for. Raises `KeyError` for an unknown id.
    ///
    /// Tokens can end in the middle of a character: `errors` says what becomes of bytes that are no UTF-8, as in `bytes.decode`.
    #[pyo3(
        signature = (tokens, errors = "replace", *, release = Release::Auto, cancel = None),
        text_signature = "($self, tokens, errors='replace', *, release='auto', cancel=None)"
    )]
    fn decode<'py>(
        &self,
        tokens: &Bound<'py, PyAny>,
        errors: &str,
        release: Release,
        cancel: Option<&Bound<'py, Cancel>>,
    ) -> PyResult<Bound<'py, PyString>> {
        strings::decode(tokens.py(), self.bytes(tokens, release, cancel)?, errors)
    }

    /// The text that `tokens` stand for, and for each token the index of the first character that has bytes of it.
    ///
    /// Raises `KeyError` for an unknown id and `UnicodeDecodeError` when the tokens do not make valid UTF-8.
    fn decode_with_offsets<'py>(&self, tokens: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let (py, encoding, ids) = (tokens.py(), self.encoding()?, ids::read_iterable(tokens)?);
        let (bytes, offsets) = Region::new(&DECODE, ids.len()).run(py, |task| {
            let bytes = encoding.decode_bytes(&ids, task)?;
            Ok::<_, tokens::Error>((bytes, offsets(encoding, &ids, task)?))
        })?;
        let offsets = Bulk::new(offsets);
        let text = strings::decode(py, Bulk::new(bytes), "strict")?;
        let make = |&offset: &usize| ints::int(py, offset);
        let offsets = paced_list(py, &offsets, &mut Pace::giving_way(), make)?;
        tuple(py, [text.into_any(), offsets.into_any()])
    }

    /// The texts of many sequences of ids; one release of the lock for all.
    #[pyo3(
        signature = (batch, *, errors = "replace", num_threads = Some(8), release = Release::Auto, cancel = None),
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
        let py = batch.py();
        let kind = if strings::is_ready() { strings::Kind::Block } else { strings::Kind::Exact };
        let maker = strings::Maker::new(py, kind)?;
        let batch = Sequences::read(batch, num_threads, release)?;
        let made = self.decoded(py, &batch, release, cancel, |text, spans, task| {
            maker.make(Pieces::new(text, spans, task).ok()?, task).ok()
        })?;
        if let Some(made) = made {
            return Ok(made.collect(py, Container::List, release)?.cast_into()?);
        }
        // Some begin or end inside a character.
        let (text, spans) = self.decoded(py, &batch, release, cancel, Decoded::new)?.parts();
        let pace = &mut Pace::of(release);
        paced_list(py, &spans, pace, |span| strings::decode_short(py, &text[span.start..span.end], errors))
    }

    /// The bytes of many sequences of ids; one release of the lock for all.
    #[pyo3(
        signature = (batch, *, num_threads = Some(8), release = Release::Auto, cancel = None),
        text_signature = "($self, batch, *, num_threads=8, release='auto', cancel=None)"
    )]
    fn decode_bytes_batch<'py>(
        &self,
        batch: &Bound<'py, PyAny>,
        num_threads: Option<isize>,
        release: Release,
        cancel: Option<&Bound<'py, Cancel>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let py = batch.py();
        let batch = Sequences::read(batch, num_threads, release)?;
        let (text, spans) = self.decoded(py, &batch, release, cancel, Decoded::new)?.parts();
        let pace = &mut Pace::of(release);
        paced_list(py, &spans, pace, |span| bytes::copied(py, &text[span.start..span.end]))
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
        paced_list(py, &ids, &mut Pace::giving_way(), |&id| self.decode_single_token_bytes(py, id))
    }

    /// The bytes of all ordinary tokens, sorted.
    fn token_byte_values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let encoding = self.encoding()?;
        let sorted = Region::new(&LOAD, 0).run(py, |task| encoding.token_byte_values(task))?;
        paced_list(py, &Bulk::new(sorted), &mut Pace::giving_way(), |token| bytes::copied(py, token))
    }
}

impl Tokenizer {
    fn fill(&self, source: Arc<Source>) -> PyResult<()> {
        self.0.set(source).map_err(|_| PyRuntimeError::with_message("this Encoding is initialized already"))
    }

    fn encoding(&self) -> PyResult<&Encoding> {
        self.0.get().map(Source::encoding).ok_or_else(uninitialized)
    }

    fn ids(
        &self,
        text: &Bound<'_, PyString>,
        policy: &Policy,
        release: Release,
        cancel: Option<&Bound<'_, Cancel>>,
    ) -> PyResult<Bulk<Vec<TokenId>>> {
        let (encoding, utf8) = (self.encoding()?, utf8(text)?);
        Region::new(&ENCODE, utf8.len())
            .release(release)
            .cancel(cancel.map(Bound::get))
            .run(text.py(), |task| {
                policy.apply(encoding, &utf8, |allowed| encoding.encode(&utf8, allowed, task))
            })
            .map(Bulk::new)
    }

    fn lists<'py>(
        &self,
        text: &Bound<'py, PyAny>,
        policy: &Policy,
        num_threads: Option<isize>,
        release: Release,
        cancel: Option<&Bound<'py, Cancel>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let (encoding, batch) = (self.encoding()?, Batch::new(text, num_threads, release)?);
        let all = batch.region(&ENCODE_BATCH, release, cancel).run(text.py(), |task| {
            let texts = batch.texts()?;
            policy.apply_all(encoding, &texts, |allowed| {
                encoding.encode_batch(&texts, allowed, batch.threads, task)
            })
        })?;
        let all = Bulk::new(Lists(all));
        ints::lists(text.py(), &all.0, &mut Pace::of(release))
    }

    fn bytes(
        &self,
        tokens: &Bound<'_, PyAny>,
        release: Release,
        cancel: Option<&Bound<'_, Cancel>>,
    ) -> PyResult<Bulk<Vec<u8>>> {
        let (encoding, ids) = (self.encoding()?, ids::read(tokens)?);
        Region::new(&DECODE, ids.len())
            .release(release)
            .cancel(cancel.map(Bound::get))
            .run(tokens.py(), |task| encoding.decode_bytes(&ids, task))
            .map(Bulk::new)
    }

    /// What `after` makes, without the lock, of the bytes of all sequences and where each one's are.
    fn decoded<T: Send>(
        &self,
        py: Python<'_>,
        batch: &Sequences,
        release: Release,
        cancel: Option<&Bound<'_, Cancel>>,
        after: impl FnOnce(Vec<u8>, Vec<Span>, &Task<'_>) -> T + Send,
    ) -> PyResult<T> {
        let encoding = self.encoding()?;
        let region = Region::new(&DECODE, batch.ids.len() + batch.starts.len()).release(release);
        region.cancel(cancel.map(Bound::get)).run(py, |task| {
            let mut bytes = memory::with_room(batch.ids.len().saturating_mul(4))?;
            let decode = |ids: &[TokenId]| {
                let start = bytes.len();
                encoding.decode_bytes_to(ids, &mut bytes, task)?;
                Ok(Span { start, end: bytes.len() })
            };
            let spans = memory::collected::<_, tokens::Error>(batch.iter().map(decode))?;
            let made = after(bytes, spans, task);
            task.check()?;
            Ok::<_, tokens::Error>(made)
        })
    }
}

/// A token's bytes and its id.
type Rank = (Vec<u8>, TokenId);

/// The entries of a vocabulary. Read from a copy, which others cannot change while they have the lock.
fn read_ranks(ranks: &Bound<'_, PyDict>) -> PyResult<Bulk<Vec<Rank>>> {
    let (py, mut pace) = (ranks.py(), Pace::giving_way());
    let mut read = Bulk::new(Vec::new());
    pace.look(py)?; // from here on time counts: the copy takes some
    for (bytes, id) in ranks.copy()? {
        pace.keep(py)?;
        reserve(&mut read, 1)?;
        read.push((bytes.extract()?, id.extract()?));
    }
    Ok(read)
}

/// The lists of a batch call. That of each text is memory of its own, which takes time to free.
struct Lists(Vec<Vec<TokenId>>);

impl Weigh for Lists {
    fn weight(&self) -> usize {
        const BYTES_PER_LIST: usize = 128;
        self.0.len() * BYTES_PER_LIST
    }
}

/// The bytes of many sequences, and where each one's are.
struct Decoded(Vec<u8>, Vec<Span>);

impl Decoded {
    fn new(text: Vec<u8>, spans: Vec<Span>, _: &Task<'_>) -> Self {
        Self(text, spans)
    }

    fn parts(self) -> (Bulk<Vec<u8>>, Bulk<Vec<Span>>) {
        (Bulk::new(self.0), Bulk::new(self.1))
    }
}

/// The ids of a batch call, one sequence after the other.
struct Sequences {
    ids: Bulk<Vec<TokenId>>,
    /// Where each sequence begins, and the end of the last one.
    starts: Bulk<Vec<usize>>,
}

impl Sequences {
    /// Decoding copies a few bytes a token, so more threads would only wait for memory: `num_threads` is no more than
    /// checked.
    fn read(batch: &Bound<'_, PyAny>, num_threads: Option<isize>, release: Release) -> PyResult<Self> {
        threads(num_threads, 0)?;
        let mut read = Self { ids: Bulk::new(Vec::new()), starts: Bulk::new(vec![0]) };
        let mut pace = Pace::of(release);
        for tokens in batch.try_iter()? {
            pace.keep(batch.py())?;
            ids::read_to(&tokens?, &mut read.ids, &mut pace)?;
            let end = read.ids.len();
            reserve(&mut read.starts, 1)?;
            read.starts.push(end);
        }
        Ok(read)
    }

    fn iter(&self) -> impl Iterator<Item = &[TokenId]> {
        self.starts.windows(2).map(|ends| &self.ids[ends[0]..ends[1]])
    }
}

/// The texts of a batch call, borrowed.
struct Batch {
    texts: Held<Utf8>,
    bytes: usize,
    threads: usize,
}

impl Batch {
    fn new(texts: &Bound<'_, PyAny>, num_threads: Option<isize>, release: Release) -> PyResult<Self> {
        let mut bytes = 0;
        let texts = Held::collect(texts, &mut Pace::of(release), |index, text| {
            let text = batch_text(index, &text)?;
            bytes += text.len();
            Ok(text)
        })?;
        Ok(Self { texts, bytes, threads: threads(num_threads, bytes)? })
    }

    fn texts(&self) -> Result<Vec<&str>, Refused> {
        memory::collected::<_, tokens::Error>(self.texts.iter().map(|text| Ok(&**text)))
            .map_err(Refused::Core)
    }

    fn region<'a>(
        &self,
        operation: &'static Operation,
        release: Release,
        cancel: Option<&'a Bound<'_, Cancel>>,
    ) -> Region<'a> {
        Region::new(operation, self.bytes + self.texts.len()).release(release).cancel(cancel.map(Bound::get))
    }
}

fn batch_text(index: usize, text: &Bound<'_, PyAny>) -> PyResult<Utf8> {
    let Ok(text) = text.cast::<PyString>() else {
        let class = text.get_type().repr()?;
        let message = format!("text {index} of the batch must be str, not {}", class.to_string_lossy());
        return Err(PyTypeError::with_message(message));
    };
    utf8(text)
}

fn uninitialized() -> PyErr {
    PyRuntimeError::with_message("this Encoding's __init__ was not called")
}

/// How many threads `bytes` bytes of text are worth: starting one costs as much as encoding some kilobytes.
fn threads(wanted: Option<isize>, bytes: usize) -> PyResult<usize> {
    const BYTES_PER_THREAD: usize = 32 << 10;
    static PROCESSORS: OnceLock<usize> = OnceLock::new();
    let wanted = usize::try_from(wanted.unwrap_or(8)).ok().filter(|&wanted| wanted > 0);
    let wanted = wanted.ok_or_else(|| PyValueError::with_message("num_threads must be greater than 0"))?;
    let processors = *PROCESSORS.get_or_init(|| thread::available_parallelism().map_or(1, usize::from));
    Ok(wanted.min(processors).min(1 + bytes / BYTES_PER_THREAD))
}

/// The bytes of an argument that may be `str` or `bytes`.
fn one_piece(text_or_bytes: &Bound<'_, PyAny>) -> PyResult<OnePiece> {
    match text_or_bytes.cast::<PyString>() {
        Ok(text) => Ok(OnePiece::Text(PyBackedStr::try_from(text.clone())?)),
        Err(_) => Ok(OnePiece::Bytes(text_or_bytes.extract()?)),
    }
}

enum OnePiece {
    Text(PyBackedStr),
    Bytes(PyBackedBytes),
}

impl Deref for OnePiece {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }
}

/// For each token the index of the character in which it starts.
fn offsets(encoding: &Encoding, ids: &[TokenId], task: &Task<'_>) -> Result<Vec<usize>, tokens::Error> {
    const STRETCH: usize = 4096;
    let mut characters = 0_usize;
    let mut offset = |id: TokenId| {
        let bytes = encoding.decode_single_token_bytes(id).unwrap_or_default();
        let inside = bytes.first().is_some_and(|&byte| is_continuation(byte));
        let offset = characters.saturating_sub(usize::from(inside));
        characters += bytes.iter().filter(|&&byte| !is_continuation(byte)).count();
        offset
    };
    let mut offsets = memory::with_room(ids.len())?;
    for stretch in ids.chunks(STRETCH) {
        task.check()?;
        offsets.extend(stretch.iter().map(|&id| offset(id)));
    }
    Ok(offsets)
}

/// A list of what `make` makes of each; other threads have the lock now and then.
fn paced_list<'py, T, U>(
    py: Python<'py>,
    all: &[T],
    pace: &mut Pace,
    make: impl Fn(&T) -> PyResult<Bound<'py, U>>,
) -> PyResult<Bound<'py, PyList>> {
    let mut list = Filling::new(py, Container::List, all.len())?;
    for item in all {
        pace.keep(py)?;
        list.push(make(item)?);
    }
    Ok(list.finish().cast_into()?)
}

/// Whether a byte continues a UTF-8 character.
const fn is_continuation(byte: u8) -> bool {
    matches!(byte, 0x80..0xC0)
}
