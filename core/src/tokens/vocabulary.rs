//! The ordinary tokens of an encoding, and the choice of a method for splitting a piece.

use super::backtrack::Backtracker;
use super::cache::{Cache, Pool};
use super::merge::merge;
use super::merge_list::{self, Joiner, MergeList};
use super::merges::merges;
use super::piece_key::PieceKey;
use super::runs;
use super::side_by_side::Tables;
use super::simd_merge;
use super::sort::sort;
use super::strings::Strings;
use super::table::Table;
use super::vocab_format::{self, Unpacked};
use super::words::{WordKey, Words};
use super::{Error, ErrorKind, TokenId};
use crate::memory::OutOfMemory;
use crate::task::Stretches;
use crate::{Task, memory};
use foldhash::{HashMap, HashMapExt};
use std::ops::Range;

/// Ordinary tokens. A token is known by its index in the order of the ranks.
pub(super) struct Vocabulary {
    /// The bytes of the tokens by index.
    bytes: Strings,
    /// The tokens by index, in ascending order unless there is `by_id`.
    ids: Vec<TokenId>,
    /// The indices in the order of the tokens, if that is another order.
    by_id: Vec<u32>,
    /// The tokens that encoding makes.
    pub(super) table: Table,
    pub(super) backtracker: Option<Backtracker>,
    /// What a piece is encoded by if no order of the tokens has the same effect.
    list: Option<MergeList>,
    /// Tokens that encoding never makes, but that stand for pieces with exactly these bytes.
    whole: HashMap<Vec<u8>, u32>,
    pub(super) pool: Pool,
    pub(super) words: Words,
}

/// A vocabulary with a list of merges.
pub(super) struct Listed {
    pub(super) tokens: Strings,
    pub(super) ids: Vec<TokenId>,
    /// The places in `tokens` of the two that are joined, and of the token that they make.
    pub(super) merges: Vec<[u32; 3]>,
    /// The places in `tokens` of the 256 bytes.
    pub(super) bytes: [u32; 256],
    /// Whether a piece that is a token stays whole, even if the merges do not make that token.
    pub(super) ignore_merges: bool,
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
        let length = sorted.iter().map(|(_, bytes)| bytes.len()).sum();
        let mut tokens = room_for(sorted.len(), length)?;
        let mut stretches = Stretches::of_items(task);
        for (index, (_, bytes)) in sorted.iter().enumerate() {
            stretches.check(index)?;
            tokens.push(bytes)?;
        }
        let ids = memory::collected::<_, Error>(sorted.iter().map(|&(id, _)| Ok(id)))?;
        drop(sorted);
        let table = Table::new(&tokens, task)?;
        let merges = merges(tokens.iter(), &table, simd_merge::LIMIT as usize, task)?;
        let backtracker = merges.map(Backtracker::new);
        Ok(Self::of(tokens, ids, table, backtracker))
    }

    fn of(bytes: Strings, ids: Vec<TokenId>, table: Table, backtracker: Option<Backtracker>) -> Self {
        let (by_id, list, whole, pool) = (Vec::new(), None, HashMap::new(), Pool::default());
        let words = Words::new(ids.len());
        Self { bytes, ids, by_id, table, backtracker, list, whole, pool, words }
    }

    /// A vocabulary whose tokens are joined in the order of a list.
    pub(super) fn listed(listed: Listed, task: &Task<'_>) -> Result<Self, Error> {
        let Listed { tokens: given, ids, merges: pairs, bytes, ignore_merges } = listed;
        let mut list = MergeList::default();
        let mut stretches = Stretches::of_items(task);
        for (rank, [left, right, joined]) in (0_u32..).zip(pairs) {
            stretches.check(rank as usize)?;
            list.add(left, right, rank, joined)?;
        }
        let order = merge_list::order(given.iter(), &bytes, &list, task)?;
        let numbers = || order.made.iter().chain(&order.never).map(|&number| number as usize);
        let mut tokens = room_for(given.len(), given.bytes().len())?;
        for &number in &order.made {
            tokens.push(given.get(number as usize))?;
        }
        let table = Table::new(&tokens, task)?;
        let merges = merges(tokens.iter(), &table, simd_merge::LIMIT as usize, task)?;
        let merges = merges.filter(|merges| order.is_kept_by(merges));
        let backtracker = merges.map(Backtracker::new);
        for &number in &order.never {
            tokens.push(given.get(number as usize))?;
        }
        let ids = memory::collected::<_, Error>(numbers().map(|number| Ok(ids[number])))?;
        drop(given);
        let list = match backtracker {
            Some(_) => None,
            None => Some(renumbered(&list, &order)?),
        };
        let mut vocabulary = Self::of(tokens, ids, table, backtracker);
        vocabulary.list = list;
        vocabulary.by_id = by_id(&vocabulary.ids, task)?;
        if ignore_merges {
            vocabulary.whole = whole(&vocabulary.bytes, order.made.len())?;
        }
        Ok(vocabulary)
    }

    /// The first `count` ranks of a packed vocabulary.
    pub(super) fn unpack(packed: &[u8], count: usize) -> Result<Self, Error> {
        let task = &Task::new();
        let Unpacked { tokens, ranks: ids, merges } = vocab_format::unpack(packed, count)?;
        let table = Table::new(&tokens, task)?;
        let backtracker = Some(Backtracker::new(merges));
        Ok(Self::of(tokens, ids, table, backtracker))
    }

    /// Enters the tokens that stand for a piece among the words.
    pub(super) fn fill_words(&self) {
        let keys = self.bytes.spans().map(|span| WordKey::of_token(self.bytes.bytes(), span));
        let count = if self.whole.is_empty() { self.table.count() } else { self.ids.len() as u32 };
        self.words.fill(keys.zip(0..count));
    }

    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }

    pub(super) fn max_token(&self) -> TokenId {
        self.ids[self.by_id.last().map_or(self.ids.len() - 1, |&index| index as usize)]
    }

    pub(super) fn token(&self, bytes: &[u8]) -> Option<TokenId> {
        let index = self.table.get(bytes, 0, bytes.len()).or_else(|| self.whole.get(bytes).copied());
        index.map(|index| self.ids[index as usize])
    }

    #[inline]
    pub(super) fn bytes(&self, token: TokenId) -> Option<&[u8]> {
        let index = self.index(token)?;
        Some(self.bytes.get(index))
    }

    /// Appends the bytes of `token`; false if there is no such token. The caller has reserved capacity for
    /// [`SHORT`] bytes. For a longer token this reserves its length and `room` bytes more.
    #[inline]
    pub(super) fn append(&self, token: TokenId, out: &mut Vec<u8>, room: usize) -> Result<bool, OutOfMemory> {
        let Some(index) = self.index(token) else { return Ok(false) };
        let Range { start, end } = self.bytes.span(index);
        match self.bytes.bytes()[start..].first_chunk::<SHORT>() {
            // Copying a constant number of bytes needs no call to `memcpy`; the surplus is cut off again.
            Some(bytes) if end - start <= SHORT => {
                let length = out.len() + end - start;
                out.extend_from_slice(bytes);
                out.truncate(length);
            }
            _ => {
                memory::reserve(out, end - start + room)?;
                out.extend_from_slice(&self.bytes.bytes()[start..end]);
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
        if !self.by_id.is_empty() {
            return self.index_by_id(token);
        }
        match self.ids.get(likely) {
            Some(&id) if id == token => Some(likely),
            _ => self.ids.binary_search(&token).ok(),
        }
    }

    /// The same for a vocabulary whose order is not that of its tokens.
    fn index_by_id(&self, token: TokenId) -> Option<usize> {
        let id = |&index: &u32| self.ids[index as usize];
        let likely = self.by_id.get(token as usize).filter(|index| id(index) == token);
        let found = || self.by_id.binary_search_by_key(&token, id).ok().map(|place| &self.by_id[place]);
        likely.or_else(found).map(|&index| index as usize)
    }

    /// Whether the indices equal the tokens, as in most vocabularies.
    fn has_no_gaps(&self) -> bool {
        self.by_id.is_empty() && (self.max_token() as usize) < self.ids.len()
    }

    /// All tokens in the order of their ranks.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u8], TokenId)> {
        self.bytes.iter().zip(self.ids.iter().copied())
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

    /// Appends the indices of the tokens of `text[piece]`, which is not a token itself, to `out`. Returns whether the
    /// piece seems to occur often: the cache had it, or it is a run.
    pub(super) fn split(
        &self,
        text: &[u8],
        piece: Range<usize>,
        out: &mut Vec<u32>,
        cache: &mut Cache,
        task: &Task<'_>,
    ) -> Result<bool, Error> {
        if !self.whole.is_empty()
            && let Some(&index) = self.whole.get(&text[piece.clone()])
        {
            memory::push(out, index)?;
            return Ok(false);
        }
        match &self.backtracker {
            _ if piece.is_empty() => {}
            Some(backtracker) => return self.remembered(backtracker, text, piece, out, cache, task),
            None => match &self.list {
                Some(list) => self.join(list, &text[piece], out, task)?,
                None => self.merge(text, piece, out, task)?,
            },
        }
        Ok(false)
    }

    /// The index of the token that stands for a piece, if one does.
    pub(super) fn whole_piece(&self, text: &[u8], at: usize, length: usize) -> Option<u32> {
        self.table.get(text, at, length).or_else(|| self.whole.get(&text[at..at + length]).copied())
    }

    /// What encoding short pieces that no token stands for side by side needs; `None` if it does not apply.
    pub(super) fn tables(&self, task: &Task<'_>) -> Option<Tables<'_>> {
        let backtracker = self.backtracker.as_ref()?;
        // Without memory for them, or if the task is stopped, pieces are encoded one by one.
        let joins = backtracker.joins(task).ok()??;
        Some(Tables { table: &self.table, seeds: backtracker.seeds(&self.bytes, task).ok()?, joins })
    }

    /// As [`split`](Self::split), by a list of merges.
    fn join(&self, list: &MergeList, piece: &[u8], out: &mut Vec<u32>, task: &Task<'_>) -> Result<(), Error> {
        let mut joiner = Joiner::default();
        joiner.join(piece.iter().map(|&byte| self.table.byte(byte)), list, task)?;
        for token in joiner.tokens() {
            memory::push(out, token)?;
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
    ) -> Result<bool, Error> {
        let key = PieceKey::new(text, piece.start, piece.len());
        if key.is_some_and(|key| cache.pieces.recall(key, out)) {
            return Ok(true);
        }
        let before = out.len();
        let is_run = self.anew(backtracker, text, piece, out, cache, task)?;
        if let Some(key) = key.filter(|_| !is_run) {
            cache.pieces.remember(key, &out[before..]);
        }
        Ok(is_run)
    }

    /// The same without the cache of pieces. Returns whether the piece is a run.
    fn anew(
        &self,
        backtracker: &Backtracker,
        text: &[u8],
        piece: Range<usize>,
        out: &mut Vec<u32>,
        cache: &mut Cache,
        task: &Task<'_>,
    ) -> Result<bool, Error> {
        let is_run = self.run(text, &piece, out, task)?;
        let (at, length) = (piece.start, piece.len());
        let seeds = backtracker.seeds_if_worthwhile(&self.bytes, task)?;
        if !is_run && !simd_merge::encode(&self.table, seeds, text, at, length, out) {
            memory::append(out, backtracker.encode(&self.table, &self.bytes, text, piece, cache, task)?)?;
        }
        Ok(is_run)
    }

    /// As [`split`](Self::split), for a piece that may be a token nevertheless: the cache has the tokens of the others.
    pub(super) fn split_anyway(
        &self,
        text: &[u8],
        piece: Range<usize>,
        out: &mut Vec<u32>,
        cache: &mut Cache,
        task: &Task<'_>,
    ) -> Result<(), Error> {
        match &self.backtracker {
            Some(backtracker) if self.whole.is_empty() && !piece.is_empty() => {
                self.anew(backtracker, text, piece, out, cache, task).map(drop)
            }
            _ => self.split(text, piece, out, cache, task).map(drop),
        }
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

/// A list of merges with the indices of an order.
fn renumbered(list: &MergeList, order: &merge_list::Order) -> Result<MergeList, OutOfMemory> {
    let mut indices = memory::filled(0, order.made.len() + order.never.len())?;
    for (index, &number) in (0_u32..).zip(order.made.iter().chain(&order.never)) {
        indices[number as usize] = index;
    }
    list.renumbered(|number| indices[number as usize])
}

/// The indices in the order of the tokens; none if that is their own order.
fn by_id(ids: &[TokenId], task: &Task<'_>) -> Result<Vec<u32>, Error> {
    if ids.is_sorted() {
        return Ok(Vec::new());
    }
    let mut pairs = memory::collected::<_, Error>((0_u32..).zip(ids).map(|(index, &id)| Ok((id, index))))?;
    sort(&mut pairs, task)?;
    memory::collected(pairs.into_iter().map(|(_, index)| Ok(index)))
}

/// The tokens from index `made` on, by their bytes.
fn whole(tokens: &Strings, made: usize) -> Result<HashMap<Vec<u8>, u32>, Error> {
    let mut whole = HashMap::new();
    for (index, bytes) in (0..).zip(tokens.iter()).skip(made) {
        whole.try_reserve(1).map_err(|_| OutOfMemory)?;
        whole.insert(memory::copied(bytes)?, index);
    }
    Ok(whole)
}

/// No tokens, with room for `count` of `bytes` bytes together.
fn room_for(count: usize, bytes: usize) -> Result<Strings, Error> {
    if u32::try_from(bytes).is_err() {
        return Err(bad("the tokens are longer than 4 GB together".into()));
    }
    Ok(Strings::with_capacity(count, bytes)?)
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
