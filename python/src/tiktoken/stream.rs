//! `offlock.tiktoken.Stream`: a text that is encoded as it arrives.

use offlock_core::Task;
use offlock_core::tokens::{self, Fed};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};

use crate::borrow::Bytes;
use crate::cpython::object;
use crate::error::WithMessage;
use crate::gil_yield::Yielder;
use crate::int_list;
use crate::large::{Large, MemorySize};
use crate::objects::Int;
use crate::operations::TOKENS_STREAM;
use crate::region::{Cancel, Region, Release};
use crate::stream_lock::StreamLock;
use crate::utf8::{Utf8, ends_in_leading_surrogate, utf8};

/// Encodes a text that arrives in pieces, each id as soon as no continuation of the text can change it.
///
/// `Encoding.stream` and `Tokenizer.stream` make streams. The ids of all calls, joined, are those of the whole
/// text. What is kept back is the last piece of the encoding's pattern (roughly, a word), what the pattern looks
/// at behind it, and the beginning of a special token.
///
/// A piece is a `str` or, in UTF-8, an object with the buffer protocol; it may begin and end within a character.
/// A call that raises leaves the stream as it was. One thread at a time uses a stream, others wait.
#[pyclass(frozen, module = "offlock.tiktoken")]
pub(crate) struct Stream(StreamLock<State>);

struct State {
    stream: Large<tokens::Stream>,
    /// The end of the last piece, if that is the first of two surrogates that together are a character.
    surrogate: Option<Py<PyString>>,
}

impl Stream {
    pub(crate) fn new(stream: tokens::Stream) -> Self {
        Self(StreamLock::new(State { stream: Large::new(stream), surrogate: None }))
    }

    /// Runs `work` over a piece, and lets the stream accept the result once `build` has made an object of it.
    fn run<T>(
        &self,
        piece: &Bound<'_, PyAny>,
        release: Release,
        cancel: Option<&Bound<'_, Cancel>>,
        work: impl FnOnce(&mut tokens::Stream, &[u8], &Task<'_>) -> Result<Fed, tokens::Error> + Send,
        build: impl FnOnce(&Fed) -> PyResult<T>,
    ) -> PyResult<T> {
        let py = piece.py();
        let mut state = self.0.lock(py)?;
        let (piece, surrogate) = state.read(piece)?;
        let made = state.accept(py, piece.as_slice(), release, cancel, work, build)?;
        state.surrogate = surrogate;
        Ok(made)
    }
}

impl State {
    /// The UTF-8 of a piece, and a surrogate at its end that waits for the next piece.
    fn read(&self, piece: &Bound<'_, PyAny>) -> PyResult<(Piece, Option<Py<PyString>>)> {
        let Ok(text) = piece.cast::<PyString>() else {
            let bytes = Bytes::borrow(piece)?;
            return Ok((self.after_surrogate(bytes), None));
        };
        let text = match &self.surrogate {
            Some(surrogate) => surrogate.bind(piece.py()).as_any().add(text)?.cast_into()?,
            None => text.clone(),
        };
        if !ends_in_leading_surrogate(&text) {
            return Ok((Piece::Text(utf8(&text)?), None));
        }
        let end = object::characters(&text);
        let surrogate = object::substring(&text, end - 1, end)?;
        let text = object::substring(&text, 0, end - 1)?;
        Ok((Piece::Text(utf8(&text)?), Some(surrogate.unbind())))
    }

    /// A surrogate that no other one follows counts as U+FFFD.
    fn after_surrogate(&self, bytes: Bytes) -> Piece {
        if self.surrogate.is_none() {
            return Piece::Bytes(bytes);
        }
        Piece::Own(Large::new([REPLACEMENT, bytes.as_slice()].concat()))
    }

    fn accept<T>(
        &mut self,
        py: Python<'_>,
        piece: &[u8],
        release: Release,
        cancel: Option<&Bound<'_, Cancel>>,
        work: impl FnOnce(&mut tokens::Stream, &[u8], &Task<'_>) -> Result<Fed, tokens::Error> + Send,
        build: impl FnOnce(&Fed) -> PyResult<T>,
    ) -> PyResult<T> {
        let stream: &mut tokens::Stream = &mut self.stream;
        let fed = Region::new(&TOKENS_STREAM, piece.len() + stream.pending())
            .release(release)
            .cancel(cancel.map(Bound::get))
            .run(py, |task| work(stream, piece, task))?;
        let mut fed = Large::new(fed);
        let made = build(&fed)?;
        self.stream.accept(&mut fed);
        Ok(made)
    }
}

/// U+FFFD.
const REPLACEMENT: &[u8] = "\u{fffd}".as_bytes();

/// A piece of a text in UTF-8.
enum Piece {
    Text(Utf8),
    Bytes(Bytes),
    Own(Large<Vec<u8>>),
}

impl Piece {
    fn as_slice(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Bytes(bytes) => bytes.as_slice(),
            Self::Own(bytes) => bytes,
        }
    }
}

impl MemorySize for Fed {
    fn memory_size(&self) -> usize {
        self.memory()
    }
}

impl MemorySize for tokens::Stream {
    fn memory_size(&self) -> usize {
        self.pending()
    }
}

/// The value of `limit=`.
pub(crate) fn limit_of(limit: Option<isize>) -> PyResult<Option<usize>> {
    let positive = |limit: isize| {
        let size = usize::try_from(limit).ok().filter(|&limit| limit > 0);
        size.ok_or_else(|| PyValueError::with_message(format!("limit must be at least 1, it is {limit}")))
    };
    limit.map(positive).transpose()
}

#[pymethods]
impl Stream {
    /// Adds a piece of the text. Returns the ids that became final, as a list.
    ///
    /// `release` says whether the interpreter lock is released: `"auto"` (when there is enough text to pay for
    /// it), `"always"` or `"never"`. `cancel`, an `offlock.Cancel`, ends the call from another thread.
    ///
    /// Raises `ValueError` when the text is not UTF-8, when more text than `limit` would be kept back, and after
    /// `finish`.
    #[pyo3(
        signature = (piece, *, release = Release::AUTO, cancel = None),
        text_signature = "($self, piece, *, release='auto', cancel=None)"
    )]
    fn feed<'py>(
        &self,
        piece: &Bound<'py, PyAny>,
        release: Release,
        cancel: Option<&Bound<'py, Cancel>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let list = |fed: &Fed| {
            int_list::list(piece.py(), fed.tokens(), &mut Yielder::of(release).cancel(cancel.map(Bound::get)))
        };
        self.run(piece, release, cancel, tokens::Stream::try_feed, list)
    }

    /// Adds a piece of the text like `feed`. Returns only the number of the ids that became final.
    #[pyo3(
        signature = (piece, *, release = Release::AUTO, cancel = None),
        text_signature = "($self, piece, *, release='auto', cancel=None)"
    )]
    fn count(
        &self,
        piece: &Bound<'_, PyAny>,
        release: Release,
        cancel: Option<&Bound<'_, Cancel>>,
    ) -> PyResult<Int> {
        self.run(piece, release, cancel, tokens::Stream::try_count, |fed| Ok(Int(fed.count())))
    }

    /// Ends the text. Returns the rest of the ids.
    #[pyo3(
        signature = (*, release = Release::AUTO, cancel = None),
        text_signature = "($self, *, release='auto', cancel=None)"
    )]
    fn finish<'py>(
        &self,
        py: Python<'py>,
        release: Release,
        cancel: Option<&Bound<'py, Cancel>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let mut state = self.0.lock(py)?;
        let last = if state.surrogate.is_some() { REPLACEMENT } else { &[] };
        let list = |fed: &Fed| {
            int_list::list(py, fed.tokens(), &mut Yielder::of(release).cancel(cancel.map(Bound::get)))
        };
        let made = state.accept(py, last, release, cancel, tokens::Stream::try_finish, list)?;
        state.surrogate = None;
        Ok(made)
    }

    /// The number of ids of the text so far, as if it ended here: those that are final, and those of what is kept
    /// back. A character that is not complete does not count.
    ///
    /// Takes time in proportion to what is kept back.
    #[pyo3(
        signature = (*, release = Release::AUTO, cancel = None),
        text_signature = "($self, *, release='auto', cancel=None)"
    )]
    fn total(&self, py: Python<'_>, release: Release, cancel: Option<&Bound<'_, Cancel>>) -> PyResult<Int> {
        let state = self.0.lock(py)?;
        let stream: &tokens::Stream = &state.stream;
        Region::new(&TOKENS_STREAM, stream.pending())
            .release(release)
            .cancel(cancel.map(Bound::get))
            .run(py, |task| stream.total(task))
            .map(Int)
    }

    /// The number of ids that are final.
    #[getter]
    fn final_count(&self, py: Python<'_>) -> PyResult<Int> {
        self.0.lock(py).map(|state| Int(state.stream.final_count()))
    }

    /// The number of bytes of text that are kept back.
    #[getter]
    fn pending(&self, py: Python<'_>) -> PyResult<Int> {
        self.0.lock(py).map(|state| Int(state.stream.pending()))
    }
}
