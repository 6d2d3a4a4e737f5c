//! Encoding: one text, and many texts at once.

use std::ops::Deref;
use std::sync::OnceLock;
use std::thread;

use offlock_core::Operation;
use offlock_core::memory;
use offlock_core::tokens::{self, TokenId};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::{PyList, PyString};

use super::special::Policy;
use super::tokenizer::Tokenizer;
use crate::error::WithMessage;
use crate::gil_yield::Yielder;
use crate::int_list;
use crate::large::{Large, MemorySize, Refs};
use crate::operations::{TOKENS_ENCODE, TOKENS_ENCODE_BATCH};
use crate::region::{Cancel, Region, Release};
use crate::utf8::{Utf8, utf8};

impl Tokenizer {
    pub(super) fn ids(
        &self,
        text: &Bound<'_, PyString>,
        policy: &Policy,
        release: Release,
        cancel: Option<&Bound<'_, Cancel>>,
    ) -> PyResult<Large<Vec<TokenId>>> {
        let (encoding, utf8) = (self.encoding()?, utf8(text)?);
        Region::new(&TOKENS_ENCODE, utf8.len())
            .release(release)
            .cancel(cancel.map(Bound::get))
            .run(text.py(), |task| {
                policy.apply(encoding, &utf8, task, |allowed| encoding.encode(&utf8, allowed, task))
            })
            .map(Large::new)
    }

    pub(super) fn lists<'py>(
        &self,
        text: &Bound<'py, PyAny>,
        policy: &Policy,
        num_threads: Option<isize>,
        release: Release,
        cancel: Option<&Bound<'py, Cancel>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let (encoding, batch) = (self.encoding()?, Texts::new(text, num_threads, release, cancel)?);
        let all = batch.region(&TOKENS_ENCODE_BATCH, release, cancel).run(text.py(), |task| {
            let texts = batch.texts()?;
            policy.apply_all(encoding, &texts, task, |allowed| {
                encoding.encode_batch(&texts, allowed, batch.threads, task)
            })
        })?;
        let all = Large::new(Lists(all));
        int_list::lists(text.py(), &all.0, &mut Yielder::of(release).cancel(cancel.map(Bound::get)))
    }
}

/// The lists of a batch call. The list of each text is a separate allocation, which takes time to free.
pub(crate) struct Lists(pub(crate) Vec<Vec<TokenId>>);

impl MemorySize for Lists {
    fn memory_size(&self) -> usize {
        const BYTES_PER_LIST: usize = 128;
        self.0.len() * BYTES_PER_LIST
    }
}

/// The texts of a batch call, borrowed.
pub(crate) struct Texts {
    texts: Refs<Utf8>,
    bytes: usize,
    pub(crate) threads: usize,
}

impl Texts {
    pub(crate) fn new(
        texts: &Bound<'_, PyAny>,
        num_threads: Option<isize>,
        release: Release,
        cancel: Option<&Bound<'_, Cancel>>,
    ) -> PyResult<Self> {
        let mut bytes = 0;
        let texts =
            Refs::collect(texts, &mut Yielder::of(release).cancel(cancel.map(Bound::get)), |index, text| {
                let text = batch_text(index, &text)?;
                bytes += text.len();
                Ok(text)
            })?;
        Ok(Self { texts, bytes, threads: threads(num_threads, bytes)? })
    }

    pub(crate) fn texts(&self) -> Result<Vec<&str>, tokens::Error> {
        memory::collected(self.texts.iter().map(|text| Ok(&**text)))
    }

    pub(crate) fn region<'a>(
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

/// How many threads `bytes` bytes of text justify: starting one costs as much as encoding some kilobytes.
pub(super) fn threads(wanted: Option<isize>, bytes: usize) -> PyResult<usize> {
    const BYTES_PER_THREAD: usize = 32 << 10;
    static PROCESSORS: OnceLock<usize> = OnceLock::new();
    let wanted = usize::try_from(wanted.unwrap_or(8)).ok().filter(|&wanted| wanted > 0);
    let wanted = wanted.ok_or_else(|| PyValueError::with_message("num_threads must be greater than 0"))?;
    let processors = *PROCESSORS.get_or_init(|| thread::available_parallelism().map_or(1, usize::from));
    Ok(wanted.min(processors).min(1 + bytes / BYTES_PER_THREAD))
}

/// The bytes of an argument that may be `str` or `bytes`.
pub(super) fn one_piece(text_or_bytes: &Bound<'_, PyAny>) -> PyResult<OnePiece> {
    match text_or_bytes.cast::<PyString>() {
        Ok(text) => Ok(OnePiece::Text(PyBackedStr::try_from(text.clone())?)),
        Err(_) => Ok(OnePiece::Bytes(text_or_bytes.extract()?)),
    }
}

pub(super) enum OnePiece {
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
