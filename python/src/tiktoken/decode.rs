//! Decoding: one sequence of tokens, and many of them at once.

use offlock_core::text::{Pieces, Span};
use offlock_core::tokens::{self, Encoding, TokenId};
use offlock_core::{Task, memory};
use pyo3::prelude::*;
use pyo3::types::PyList;

use super::encode::threads;
use super::ids;
use super::tokenizer::Tokenizer;
use crate::bytes;
use crate::cpython::allocator_hook;
use crate::cpython::sequence::{Container, list_of_each};
use crate::gil_yield::Yielder;
use crate::large::{Large, reserve};
use crate::operations::TOKENS_DECODE;
use crate::region::{Cancel, Region, Release};
use crate::strings::batch::{StrBuilder, StrClass};
use crate::strings::long_str;

impl Tokenizer {
    pub(super) fn bytes(
        &self,
        tokens: &Bound<'_, PyAny>,
        release: Release,
        cancel: Option<&Bound<'_, Cancel>>,
    ) -> PyResult<Large<Vec<u8>>> {
        let (encoding, ids) = (self.encoding()?, ids::read(tokens, cancel)?);
        Region::new(&TOKENS_DECODE, ids.len())
            .release(release)
            .cancel(cancel.map(Bound::get))
            .run(tokens.py(), |task| encoding.decode_bytes(&ids, task))
            .map(Large::new)
    }

    /// The decoder of this encoding, for [`decoded`] and [`texts`].
    pub(super) fn decoder(&self) -> PyResult<impl Decoder> {
        let encoding = self.encoding()?;
        Ok(|ids: &[TokenId], bytes: &mut Vec<u8>, task: &Task<'_>| encoding.decode_bytes_to(ids, bytes, task))
    }
}

/// Appends the bytes of a sequence of ids.
pub(crate) trait Decoder:
    Fn(&[TokenId], &mut Vec<u8>, &Task<'_>) -> Result<(), tokens::Error> + Send + Sync
{
}

impl<T> Decoder for T where
    T: Fn(&[TokenId], &mut Vec<u8>, &Task<'_>) -> Result<(), tokens::Error> + Send + Sync
{
}

/// The result of `after`, called without the lock, for the bytes of all sequences and the span of each.
pub(crate) fn decoded<T: Send>(
    py: Python<'_>,
    batch: &Sequences,
    decode: &impl Decoder,
    release: Release,
    cancel: Option<&Bound<'_, Cancel>>,
    after: impl FnOnce(Vec<u8>, Vec<Span>, &Task<'_>) -> T + Send,
) -> PyResult<T> {
    let region = Region::new(&TOKENS_DECODE, batch.ids.len() + batch.starts.len()).release(release);
    region.cancel(cancel.map(Bound::get)).run(py, |task| {
        let mut bytes = memory::with_capacity(batch.ids.len().saturating_mul(4))?;
        let decode = |ids: &[TokenId]| {
            let start = bytes.len();
            decode(ids, &mut bytes, task)?;
            Ok(Span { start, end: bytes.len() })
        };
        let spans = memory::collected::<_, tokens::Error>(batch.iter().map(decode))?;
        let made = after(bytes, spans, task);
        task.check()?;
        Ok::<_, tokens::Error>(made)
    })
}

/// The text of each sequence, in a list.
pub(crate) fn texts<'py>(
    py: Python<'py>,
    batch: &Sequences,
    decode: &impl Decoder,
    errors: &str,
    release: Release,
    cancel: Option<&Bound<'py, Cancel>>,
) -> PyResult<Bound<'py, PyList>> {
    let kind = if allocator_hook::is_ready() { StrClass::Block } else { StrClass::Exact };
    let maker = StrBuilder::new(py, kind)?;
    let made = decoded(py, batch, decode, release, cancel, |text, spans, task| {
        maker.make(Pieces::new(text, spans, task).ok()?, task).ok()
    })?;
    if let Some(made) = made {
        return Ok(made
            .collect(py, Container::List, &mut Yielder::of(release).cancel(cancel.map(Bound::get)))?
            .cast_into()?);
    }
    // Some tokens begin or end inside a character.
    let (text, spans) = decoded(py, batch, decode, release, cancel, Decoded::new)?.parts();
    list_of_each(py, &spans, &mut Yielder::of(release).cancel(cancel.map(Bound::get)), |span| {
        long_str::decode_short(py, &text[span.start..span.end], errors)
    })
}

/// The bytes of each sequence, in a list.
pub(crate) fn byte_strings<'py>(
    py: Python<'py>,
    batch: &Sequences,
    decode: &impl Decoder,
    release: Release,
    cancel: Option<&Bound<'py, Cancel>>,
) -> PyResult<Bound<'py, PyList>> {
    let (text, spans) = decoded(py, batch, decode, release, cancel, Decoded::new)?.parts();
    list_of_each(py, &spans, &mut Yielder::of(release).cancel(cancel.map(Bound::get)), |span| {
        bytes::copied(py, &text[span.start..span.end])
    })
}

/// The bytes of many sequences, and the span of each.
struct Decoded(Vec<u8>, Vec<Span>);

impl Decoded {
    fn new(text: Vec<u8>, spans: Vec<Span>, _: &Task<'_>) -> Self {
        Self(text, spans)
    }

    fn parts(self) -> (Large<Vec<u8>>, Large<Vec<Span>>) {
        (Large::new(self.0), Large::new(self.1))
    }
}

/// The ids of a batch call, one sequence after the other.
pub(crate) struct Sequences {
    ids: Large<Vec<TokenId>>,
    /// The start of each sequence, and the end of the last one.
    starts: Large<Vec<usize>>,
}

impl Sequences {
    /// Decoding copies a few bytes per token, so that more threads would only wait for memory: `num_threads`
    /// is only validated.
    pub(crate) fn read(
        batch: &Bound<'_, PyAny>,
        num_threads: Option<isize>,
        release: Release,
        cancel: Option<&Bound<'_, Cancel>>,
    ) -> PyResult<Self> {
        threads(num_threads, 0)?;
        let mut read = Self { ids: Large::new(Vec::new()), starts: Large::new(vec![0]) };
        let mut yielder = Yielder::of(release).cancel(cancel.map(Bound::get));
        for tokens in batch.try_iter()? {
            yielder.tick(batch.py())?;
            ids::read_to(&tokens?, &mut read.ids, &mut yielder)?;
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

/// For each token the index of the character in which it starts.
pub(super) fn offsets(
    encoding: &Encoding,
    ids: &[TokenId],
    task: &Task<'_>,
) -> Result<Vec<usize>, tokens::Error> {
    const STRETCH: usize = 4096;
    let mut characters = 0_usize;
    let mut offset = |id: TokenId| {
        let bytes = encoding.decode_single_token_bytes(id).unwrap_or_default();
        let inside = bytes.first().is_some_and(|&byte| is_continuation(byte));
        let offset = characters.saturating_sub(usize::from(inside));
        characters += bytes.iter().filter(|&&byte| !is_continuation(byte)).count();
        offset
    };
    let mut offsets = memory::with_capacity(ids.len())?;
    for stretch in ids.chunks(STRETCH) {
        task.check()?;
        offsets.extend(stretch.iter().map(|&id| offset(id)));
    }
    Ok(offsets)
}

/// Whether a byte continues a UTF-8 character.
const fn is_continuation(byte: u8) -> bool {
    matches!(byte, 0x80..0xC0)
}
