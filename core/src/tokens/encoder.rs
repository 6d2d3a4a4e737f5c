//! One run over a text: from pieces to tokens.
//!
//! Works in stretches of 16 KB, between which the task is checked. Within a stretch, some 256 pieces are first cut
//! (`split/bitmap/`). Then, for 64 of them at a time, their home slots in the vocabulary are read, and after that
//! the results are used: the reads are independent of each other, so the processor overlaps the cache misses. Once
//! the vocabulary has encoded much text, pieces are looked for among its words first
//! (`words_first.rs`).

use super::cache::Cache;
use super::capacity::most_tokens;
use super::piece_key::PieceKey;
use super::simd_merge;
use super::split::{CutMany, Ends, Place, Splitter};
use super::table::Table;
use super::vocabulary::Vocabulary;
use super::words::Use;
use super::words_first::Run;
use super::{Error, TokenId};
use crate::{Task, memory};
use std::ops::Range;

pub(super) use super::capacity::{STRETCH, usual_tokens};

/// The number of pieces that are looked up together.
const BATCH: usize = 64;

/// For a shorter text the words are not worth the preparations.
const LONG: usize = 64;

/// What no home slot held.
const NONE: u64 = 0;

/// The state of a run, besides the text.
pub(super) struct Encoder<'a> {
    splitter: &'a Splitter,
    vocabulary: &'a Vocabulary,
    task: &'a Task<'a>,
    /// Taken from the pool for the first piece that is no token: short texts often have none.
    cache: Option<Cache>,
    /// How far the text has been cut, for patterns that are not matched by hand.
    place: Place,
}

impl<'a> Encoder<'a> {
    pub(super) fn new(splitter: &'a Splitter, vocabulary: &'a Vocabulary, task: &'a Task<'a>) -> Self {
        Self { splitter, vocabulary, task, cache: None, place: Place::default() }
    }

    /// Appends the tokens of the pieces that start within `STRETCH` bytes from `at`; returns where the next
    /// piece starts.
    pub(super) fn stretch(&mut self, text: &str, at: usize, out: &mut Vec<TokenId>) -> Result<usize, Error> {
        self.until(text, at..text.len(), out)
    }

    /// The same for the pieces that start in `range`. They may end, and the pattern looks, behind it.
    pub(super) fn until(
        &mut self,
        text: &str,
        range: Range<usize>,
        out: &mut Vec<TokenId>,
    ) -> Result<usize, Error> {
        self.task.check()?;
        let (at, bytes) = (range.start, text.as_bytes());
        let limit = range.end.min(at + STRETCH);
        let before = out.len();
        let next = match self.splitter.cut_many() {
            Some(cut) => self.pieces(bytes, at..limit, out, cut),
            None => self.matches(text, at..limit, out),
        }?;
        self.vocabulary.name(&mut out[before..]);
        self.task.advance((next - at) as u64);
        Ok(next)
    }

    fn pieces(
        &mut self,
        text: &[u8],
        range: Range<usize>,
        out: &mut Vec<u32>,
        cut: CutMany,
    ) -> Result<usize, Error> {
        if range.len() >= LONG {
            let words = self.vocabulary.words.use_for(range.len());
            if words == Use::ToFill {
                self.vocabulary.fill_words();
            }
            if words != Use::No {
                let (vocabulary, task) = (self.vocabulary, self.task);
                let cache = self.cache.get_or_insert_with(|| vocabulary.pool.take());
                let mut run = Run { vocabulary, cache, task, has_all: words != Use::Partly };
                return run.pieces(text, range, out, cut);
            }
        }
        memory::reserve(out, most_tokens(text.len() - range.start))?;
        let mut ends = Ends::new();
        let mut at = range.start;
        while at < range.end {
            cut(text, at..range.end, &mut ends);
            for ends in ends.as_slice().chunks(BATCH) {
                at = self.batch(text, at, ends, out)?;
            }
        }
        Ok(at)
    }

    /// Looks up several pieces at a time, of which the first begins at `first`, so that their cache misses overlap.
    #[inline]
    fn batch(
        &mut self,
        text: &[u8],
        first: usize,
        ends: &[usize],
        out: &mut Vec<u32>,
    ) -> Result<usize, Error> {
        let table = &self.vocabulary.table;
        let mut found = [NONE; BATCH];
        let mut start = first;
        for (found, &end) in found.iter_mut().zip(ends) {
            *found = table.glance(text, start, end - start);
            start = end;
        }
        let mut start = first;
        for (found, &end) in found.iter_mut().zip(ends) {
            if table.seen(*found).is_none() {
                *found = self.expect(text, start..end);
            }
            start = end;
        }
        let mut start = first;
        for (&found, &end) in found.iter().zip(ends) {
            match table.seen(found) {
                Some(place) => out.push(place),
                None => drop(self.parts(text, start..end, out)?),
            }
            start = end;
        }
        Ok(start)
    }

    /// Has the processor fetch the place in the cache of a piece.
    fn expect_parts(&mut self, text: &[u8], piece: Range<usize>) {
        if let Some(key) = PieceKey::new(text, piece.start, piece.len()) {
            self.cache.get_or_insert_with(|| self.vocabulary.pool.take()).pieces.expect(key);
        }
    }

    fn matches(&mut self, text: &str, range: Range<usize>, out: &mut Vec<u32>) -> Result<usize, Error> {
        memory::reserve(out, most_tokens(text.len() - range.start))?;
        if range.start == 0 {
            self.place = Place::default();
        }
        while self.place.at < range.end {
            let Some(piece) = self.splitter.next(text, &mut self.place, self.task)? else {
                return Ok(text.len());
            };
            self.piece(text.as_bytes(), piece, out)?;
        }
        Ok(self.place.at)
    }

    fn piece(&mut self, text: &[u8], piece: Range<usize>, out: &mut Vec<u32>) -> Result<(), Error> {
        match self.vocabulary.table.get(text, piece.start, piece.len()) {
            Some(place) => out.push(place),
            None => drop(self.parts(text, piece, out)?),
        }
        Ok(())
    }

    /// What [`Table::seen`] understands, for a piece that its home slot does not hold. If the piece is not a token,
    /// its place in the cache is fetched meanwhile.
    #[inline(never)]
    fn expect(&mut self, text: &[u8], piece: Range<usize>) -> u64 {
        if let Some(place) = self.vocabulary.table.get(text, piece.start, piece.len()) {
            return Table::as_seen(place);
        }
        self.expect_parts(text, piece);
        NONE
    }

    /// Appends the tokens of a piece that is not to be one token. Returns whether the piece seems to
    /// occur often, as [`Vocabulary::split`] does.
    fn parts(&mut self, text: &[u8], piece: Range<usize>, out: &mut Vec<u32>) -> Result<bool, Error> {
        let cache = self.cache.get_or_insert_with(|| self.vocabulary.pool.take());
        self.vocabulary.split(text, piece, out, cache, self.task)
    }

    /// Appends the tokens of `text[piece]`.
    pub(super) fn one(
        &mut self,
        text: &[u8],
        piece: Range<usize>,
        out: &mut Vec<TokenId>,
    ) -> Result<(), Error> {
        memory::reserve(out, simd_merge::MOST)?;
        let before = out.len();
        self.piece(text, piece, out)?;
        self.vocabulary.name(&mut out[before..]);
        Ok(())
    }

    /// The same for a piece that must be split even if it is a token.
    pub(super) fn split(
        &mut self,
        text: &[u8],
        piece: Range<usize>,
        out: &mut Vec<TokenId>,
    ) -> Result<(), Error> {
        memory::reserve(out, simd_merge::MOST)?;
        let before = out.len();
        let cache = self.cache.get_or_insert_with(|| self.vocabulary.pool.take());
        self.vocabulary.split_anyway(text, piece, out, cache, self.task)?;
        self.vocabulary.name(&mut out[before..]);
        Ok(())
    }
}

impl Drop for Encoder<'_> {
    fn drop(&mut self) {
        if let Some(cache) = self.cache.take() {
            self.vocabulary.pool.give_back(cache);
        }
    }
}
