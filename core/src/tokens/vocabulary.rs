//! The ordinary tokens of an encoding, and the choice of a method for splitting a piece.

use super::backtrack::Backtracker;
use super::cache::{Cache, PieceKey, Pool};
use super::merge::merge;
use super::merges::merges;
use super::runs;
use super::simd_merge;
use super::sort::sort;
use super::table::Table;
use super::vocab_format::{self, Unpacked};
use super::{Error, ErrorKind, TokenId};
use crate::memory::OutOfMemory;
use crate::task::Stretches;
use crate::{Task, memory};
use std::ops::Range;

/// Ordinary tokens. A token is known by its index in the order of the ranks.
pub(super) struct Vocabulary {
    /// The bytes of all tokens by index, one after the other.
    text: Vec<u8>,
    /// Where each token starts in `text`, and the end of the last one.
    starts: Vec<u32>,
    /// The tokens by index, so in ascending order.
    ids: Vec<TokenId>,
    pub(super) table: Table,
    pub(super) backtracker: Option<Backtracker>,
    pub(super) pool: Pool,
}

/// Most tokens are at most this long, in bytes.
pub(super) const SHORT: usize = 16;

impl Vocabulary {
    pub(super) fn new(
        ranks: impl IntoIterator<Item = (Vec<u8>, TokenId)>,
        task: &Task<'_>,
    ) -> Result<Self, Error> {
        let ranks = memory::collected::<_, Error>(ranks.into_iter().map(Ok))?;
        let sorted = memory::collected::<_, Error>(ranks.iter().map(|(bytes, id)| Ok((*id, &**bytes))));
        let mut sorted = sorted?;
        sort(&mut sorted, task)?;
        check(&sorted, task)?;
        let mut text = memory::with_capacity(sorted.iter().map(|(_, bytes)| bytes.len()).sum())?;
        let mut starts = memory::with_capacity(sorted.len() + 1)?;
        let mut stretches = Stretches::of_items(task);
        starts.push(0);
        for (index, (_, bytes)) in sorted.iter().enumerate() {
            stretches.check(index)?;
            text.extend_from_slice(bytes);
            let end = u32::try_from(text.len());
            starts.push(end.map_err(|_| bad("the tokens are longer than 4 GB together".into()))?);
        }
        let ids = memory::collected::<_, Error>(sorted.iter().map(|&(id, _)| Ok(id)))?;
        drop(sorted);
        let tokens = spans(&text, &starts);
        let table = Table::new(tokens.clone(), task)?;
        let merges = merges(tokens.clone(), &table, simd_merge::LIMIT as usize, task)?;
        let backtracker = merges.map(|merges| Backtracker::new(tokens, merges, task)).transpose()?;
        Ok(Self { text, starts, ids, table, backtracker, pool: Pool::default() })
    }

    /// The first `count` ranks of a packed vocabulary.
    pub(super) fn unpack(packed: &[u8], count: usize) -> Result<Self, Error> {
        let task = &Task::new();
        let Unpacked { text, starts, ranks: ids, merges } = vocab_format::unpack(packed, count)?;
        let tokens = spans(&text, &starts);
        let table = Table::new(tokens.clone(), task)?;
        let backtracker = Some(Backtracker::new(tokens, merges, task)?);
        Ok(Self { text, starts, ids, table, backtracker, pool: Pool::default() })
    }

    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }

    pub(super) fn max_token(&self) -> TokenId {
        self.ids[self.ids.len() - 1]
    }

    pub(super) fn token(&self, bytes: &[u8]) -> Option<TokenId> {
        self.table.get(bytes, 0, bytes.len()).map(|index| self.ids[index as usize])
    }

    #[inline]
    pub(super) fn bytes(&self, token: TokenId) -> Option<&[u8]> {
        let index = self.index(token)?;
        Some(&self.text[self.starts[index] as usize..self.starts[index + 1] as usize])
    }

    /// Appends the bytes of `token`; false if there is no such token. The caller has reserved capacity for
    /// [`SHORT`] bytes. For a longer token this reserves its length and `room` bytes more.
    #[inline]
    pub(super) fn append(&self, token: TokenId, out: &mut Vec<u8>, room: usize) -> Result<bool, OutOfMemory> {
        let Some(index) = self.index(token) else { return Ok(false) };
        let (start, end) = (self.starts[index] as usize, self.starts[index + 1] as usize);
        match self.text[start..].first_chunk::<SHORT>() {
            // Copying a constant number of bytes needs no call to `memcpy`; the surplus is cut off again.
            Some(bytes) if end - start <= SHORT => {
                let length = out.len() + end - start;
                out.extend_from_slice(bytes);
                out.truncate(length);
            }
            _ => {
                memory::reserve(out, end - start + room)?;
                out.extend_from_slice(&self.text[start..end]);
            }
        }
        Ok(true)
    }

    #[inline]
    fn index(&self, token: TokenId) -> Option<usize> {
        let likely = token as usize;
        if self.has_no_gaps() {
            return (likely < self.ids.len()).then_some(likely);
        }
        match self.ids.get(likely) {
            Some(&id) if id == token => Some(likely),
            _ => self.ids.binary_search(&token).ok(),
        }
    }

    /// Whether the indices equal the tokens, as in most vocabularies.
    fn has_no_gaps(&self) -> bool {
        (self.max_token() as usize) < self.ids.len()
    }

    /// All tokens in the order of their ranks.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u8], TokenId)> {
        spans(&self.text, &self.starts).zip(self.ids.iter().copied())
    }

    /// All tokens in the order of their bytes.
    pub(super) fn sorted(&self, task: &Task<'_>) -> Result<Vec<(&[u8], TokenId)>, Error> {
        let mut tokens = memory::collected::<_, OutOfMemory>(self.iter().map(Ok))?;
        sort(&mut tokens, task)?;
        Ok(tokens)
    }

    /// Replaces indices by tokens.
    pub(super) fn name(&self, indices: &mut [u32]) {
        if !self.has_no_gaps() {
            indices.iter_mut().for_each(|index| *index = self.ids[*index as usize]);
        }
    }

    /// Appends the indices of the tokens of `text[piece]`, which is not a token itself, to `out`.
    pub(super) fn split(
        &self,
        text: &[u8],
        piece: Range<usize>,
        out: &mut Vec<u32>,
        cache: &mut Cache,
        task: &Task<'_>,
    ) -> Result<(), Error> {
        match &self.backtracker {
            _ if piece.is_empty() => {}
            Some(backtracker) => self.remembered(backtracker, text, piece, out, cache, task)?,
            None => self.merge(text, piece, out, task)?,
        }
        Ok(())
    }

    /// As [`split`](Self::split), for an orderly vocabulary.
    fn remembered(
        &self,
        backtracker: &Backtracker,
        text: &[u8],
        piece: Range<usize>,
        out: &mut Vec<u32>,
        cache: &mut Cache,
        task: &Task<'_>,
    ) -> Result<(), Error> {
        let (at, length) = (piece.start, piece.len());
        let key = PieceKey::new(text, at, length);
        if key.is_some_and(|key| cache.pieces.recall(key, out)) {
            return Ok(());
        }
        if self.run(text, &piece, out, task)? {
            return Ok(());
        }
        let before = out.len();
        if !simd_merge::encode(&self.table, &backtracker.seeds, text, at, length, out) {
            memory::append(out, backtracker.encode(&self.table, text, piece, cache, task)?)?;
        }
        if let Some(key) = key {
            cache.pieces.remember(key, &out[before..]);
        }
        Ok(())
    }

    /// Appends the tokens of a piece that is a run; false if it is not.
    #[inline(never)]
    fn run(
        &self,
        text: &[u8],
        piece: &Range<usize>,
        out: &mut Vec<u32>,
        task: &Task<'_>,
    ) -> Result<bool, Error> {
        let index = |from: usize, to: usize| self.table.get(text, piece.start + from, to - from);
        runs::encode(&text[piece.clone()], index, out, task)
    }

    /// As [`split`](Self::split), for any vocabulary.
    fn merge(
        &self,
        text: &[u8],
        piece: Range<usize>,
        out: &mut Vec<u32>,
        task: &Task<'_>,
    ) -> Result<(), Error> {
        if self.run(text, &piece, out, task)? {
            return Ok(());
        }
        let index = |from: usize, to: usize| self.table.get(text, piece.start + from, to - from);
        for (from, to) in merge(piece.len(), index, task)?.spans() {
            let offset = piece.start + from;
            let unknown = ErrorKind::UnknownByte { byte: text[offset], offset };
            memory::push(out, index(from, to).ok_or(unknown)?)?;
        }
        Ok(())
    }
}

/// The bytes of each token.
fn spans<'a>(text: &'a [u8], starts: &'a [u32]) -> impl Iterator<Item = &'a [u8]> + Clone {
    starts.windows(2).map(|span| &text[span[0] as usize..span[1] as usize])
}

/// Checks that no rank and no token occurs twice. The ranks are in ascending order.
fn check(ranks: &[(TokenId, &[u8])], task: &Task<'_>) -> Result<(), Error> {
    if ranks.is_empty() {
        return Err(bad("there are no ranks".into()));
    }
    if let Some(pair) = ranks.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        let (rank, first, second) = (pair[0].0, pair[0].1, pair[1].1);
        return Err(bad(format!("the rank {rank} is given to both {} and {}", show(first), show(second))));
    }
    let mut sorted = memory::collected::<_, Error>(ranks.iter().map(|&(id, bytes)| Ok((bytes, id))))?;
    sort(&mut sorted, task)?;
    if let Some(pair) = sorted.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        let (bytes, first, second) = (pair[0].0, pair[0].1, pair[1].1);
        return Err(bad(format!("the token {} has two ranks, {first} and {second}", show(bytes))));
    }
    Ok(())
}

fn bad(message: String) -> Error {
    ErrorKind::BadVocabulary { message }.into()
}

fn show(bytes: &[u8]) -> String {
    format!("\"{}\"", bytes.escape_ascii())
}
