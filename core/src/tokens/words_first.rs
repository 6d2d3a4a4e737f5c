//! A run over a text that looks for pieces among the words first.
//!
//! The processor fetches the lines of the words some pieces ahead. What is found is written at once, and what is not
//! leaves a gap (`gaps.rs`).

use super::Error;
use super::cache::Cache;
use super::capacity::most_tokens;
use super::gaps::{Gap, Gaps};
use super::piece_key::PieceKey;
use super::runs;
use super::simd_merge;
use super::split::{CutMany, Ends};
use super::vocabulary::Vocabulary;
use super::words::WordKey;
use crate::{Task, memory};
use std::ops::Range;

/// How many pieces ahead the processor fetches the words, and the places that are kept meanwhile: a power of two.
const AHEAD: usize = 24;
const PLACES: usize = 32;

/// What encoding a stretch of text needs.
pub(super) struct Run<'r> {
    pub(super) vocabulary: &'r Vocabulary,
    pub(super) cache: &'r mut Cache,
    pub(super) task: &'r Task<'r>,
    /// Whether the vocabulary was entered among the words before.
    pub(super) has_all: bool,
}

impl Run<'_> {
    /// Appends the tokens of the pieces that begin in `range`; returns where the next one begins.
    pub(super) fn pieces(
        &mut self,
        text: &[u8],
        range: Range<usize>,
        out: &mut Vec<u32>,
        cut: CutMany,
    ) -> Result<usize, Error> {
        self.cache.gaps.clear();
        let mut ends = Ends::new();
        let mut at = range.start;
        while at < range.end {
            cut(text, at..range.end, &mut ends);
            at = self.append(text, at, ends.as_slice(), out)?;
        }
        self.close_gaps(text, out)?;
        Ok(at)
    }

    /// Appends the tokens of pieces, of which the first begins at `first`, or leaves gaps. Returns where the last ends.
    fn append(
        &mut self,
        text: &[u8],
        first: usize,
        ends: &[usize],
        out: &mut Vec<u32>,
    ) -> Result<usize, Error> {
        let words = &self.vocabulary.words;
        self.reserve(ends.last().map_or(0, |end| end - first), out)?;
        let mut places = [words.expect(WordKey::NONE); PLACES];
        let mut expected = first;
        let mut expect = |end: usize| {
            let key = WordKey::new(text, expected, end - expected);
            expected = end;
            words.expect(key)
        };
        for (place, &end) in places.iter_mut().zip(&ends[..ends.len().min(AHEAD)]) {
            *place = expect(end);
        }
        let mut start = first;
        for (number, &end) in ends.iter().enumerate() {
            if let Some(&end) = ends.get(number + AHEAD) {
                places[(number + AHEAD) % PLACES] = expect(end);
            }
            let place = places[number % PLACES];
            match words.find(place) {
                Some(found) => found.append(out),
                None => {
                    self.leave_gap(text, start..end, place.key, out)?;
                    self.reserve(ends[ends.len() - 1] - end, out)?;
                }
            }
            start = end;
        }
        Ok(start)
    }

    /// Reserves capacity for the tokens of all gaps and of `bytes` more of text.
    #[inline]
    fn reserve(&self, bytes: usize, out: &mut Vec<u32>) -> Result<(), Error> {
        Ok(memory::reserve(out, most_tokens(bytes) + self.cache.gaps.bytes)?)
    }

    /// Leaves a gap for a piece that is not among the words. A long one is encoded at once.
    #[inline(never)]
    fn leave_gap(
        &mut self,
        text: &[u8],
        piece: Range<usize>,
        key: WordKey,
        out: &mut Vec<u32>,
    ) -> Result<(), Error> {
        let may_be_token = !self.has_all || self.vocabulary.words.may_lack(key);
        if piece.len() > simd_merge::MOST {
            self.close_gaps(text, out)?;
            return self.encode(text, piece, None, may_be_token, out).map(drop);
        }
        let key = PieceKey::new(text, piece.start, piece.len());
        if let Some(key) = key {
            self.cache.pieces.expect(key);
        }
        self.cache.gaps.add(piece, key, may_be_token, out)?;
        if self.cache.gaps.is_full() { self.close_gaps(text, out) } else { Ok(()) }
    }

    /// Appends the tokens of a piece that is not among the words. Returns whether it seems to occur often.
    fn encode(
        &mut self,
        text: &[u8],
        piece: Range<usize>,
        key: Option<PieceKey>,
        may_be_token: bool,
        out: &mut Vec<u32>,
    ) -> Result<bool, Error> {
        if !may_be_token {
            return self.vocabulary.split(text, piece, out, self.cache, self.task);
        }
        if key.is_some_and(|key| self.cache.pieces.recall(key, out)) {
            return Ok(true);
        }
        let Some(token) = self.vocabulary.whole_piece(text, piece.start, piece.len()) else {
            return self.vocabulary.split(text, piece, out, self.cache, self.task);
        };
        memory::push(out, token)?;
        if let Some(key) = key {
            self.cache.pieces.remember(key, &[token]);
        }
        Ok(true)
    }

    /// Encodes what has left gaps.
    fn close_gaps(&mut self, text: &[u8], out: &mut Vec<u32>) -> Result<(), Error> {
        let mut gaps = std::mem::take(&mut self.cache.gaps);
        let result = self.fill(text, &mut gaps);
        self.cache.gaps = gaps;
        result?;
        Ok(self.cache.gaps.close(out)?)
    }

    fn fill(&mut self, text: &[u8], gaps: &mut Gaps) -> Result<(), Error> {
        let tables = self.vocabulary.tables(self.task);
        for number in 0..gaps.list.len() {
            let Gap { piece, key, may_be_token, .. } = gaps.list[number].clone();
            if let Some(tables) = tables
                && !self.is_known(text, &piece, key, may_be_token)
                && gaps.rows.add(tables, text, piece.clone(), number)?
            {
                if gaps.rows.is_full() {
                    self.finish(gaps)?;
                }
                continue;
            }
            let before = gaps.made.len();
            memory::reserve(&mut gaps.made, simd_merge::MOST)?;
            if self.encode(text, piece.clone(), key, may_be_token, &mut gaps.made)? {
                let key = WordKey::new(text, piece.start, piece.len());
                self.vocabulary.words.enter(key, &gaps.made[before..]);
            }
            gaps.have_made(number, before);
        }
        self.finish(gaps)
    }

    /// Whether the tokens of a piece are found elsewhere, or the piece may be a run.
    fn is_known(
        &mut self,
        text: &[u8],
        piece: &Range<usize>,
        key: Option<PieceKey>,
        may_be_token: bool,
    ) -> bool {
        let (at, length) = (piece.start, piece.len());
        key.is_some_and(|key| self.cache.pieces.has(key))
            || may_be_token && self.vocabulary.whole_piece(text, at, length).is_some()
            || runs::may_apply(&text[piece.clone()])
    }

    /// Encodes the pieces that are to be encoded side by side.
    fn finish(&mut self, gaps: &mut Gaps) -> Result<(), Error> {
        let Some(tables) = self.vocabulary.tables(self.task) else { return Ok(()) };
        let Gaps { list, made, rows, .. } = gaps;
        rows.finish(tables.joins, made, |number, before, made| {
            list[number].made = before..made.len();
            if let Some(key) = list[number].key {
                self.cache.pieces.remember(key, &made[before..]);
            }
        })?;
        Ok(())
    }
}
