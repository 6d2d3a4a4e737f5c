//! A run over a text that looks for pieces among the words first.
//!
//! The processor fetches the lines of the words for some pieces together. What is found is written at once, and what is
//! not leaves a gap (`gaps.rs`).

use super::Error;
use super::cache::Cache;
use super::gaps::{Gap, Gaps};
use super::piece_key::PieceKey;
use super::runs;
use super::side_by_side::Tables;
use super::simd_merge;
use super::split::{CutMany, Ends};
use super::vocabulary::Vocabulary;
use super::words::{MANY, WordKey};
use crate::{Task, memory};
use std::ops::Range;

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
        let mut places = [words.expect(WordKey::NONE); MANY];
        let mut start = first;
        for ends in ends.chunks(MANY) {
            words.expect_all(text, start, ends, &mut places);
            let mut done = 0;
            while done < ends.len() {
                done += words.append(&places[done..ends.len()], out)?;
                if done > 0 {
                    start = ends[done - 1];
                }
                if let Some(&end) = ends.get(done) {
                    self.leave_gap(text, start..end, places[done].key, out)?;
                    start = end;
                    done += 1;
                }
            }
        }
        Ok(start)
    }

    /// Leaves a gap for a piece that is not among the words. A long one is encoded at once.
    #[inline(never)]
    fn leave_gap(
        &mut self,
        text: &[u8],
        piece: Range<usize>,
        word: WordKey,
        out: &mut Vec<u32>,
    ) -> Result<(), Error> {
        if self.cache.gaps.add_same(word, out)? {
            return self.close_full_gaps(text, out);
        }
        let may_be_token = !self.has_all || self.vocabulary.words.may_lack(word);
        if piece.len() > simd_merge::MOST {
            self.close_gaps(text, out)?;
            return self.encode(text, piece, None, may_be_token, out).map(drop);
        }
        // A piece that was here before would have found the room that there is.
        let is_new = self.vocabulary.words.has_room_for_new(word);
        let key = if is_new { None } else { PieceKey::new(text, piece.start, piece.len()) };
        if let Some(key) = key {
            self.cache.pieces.expect(key);
        }
        self.cache.gaps.add(piece, word, key, may_be_token, out)?;
        self.close_full_gaps(text, out)
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

    fn close_full_gaps(&mut self, text: &[u8], out: &mut Vec<u32>) -> Result<(), Error> {
        if self.cache.gaps.is_full() { self.close_gaps(text, out) } else { Ok(()) }
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
            if gaps.list[number].same.is_some() {
                continue;
            }
            let Gap { piece, word, key, may_be_token, comes_again, .. } = gaps.list[number].clone();
            if let Some(tables) = tables
                && !self.is_known(text, &piece, key, may_be_token)
                && gaps.rows.add(tables, text, piece.clone(), number)?
            {
                if gaps.rows.is_full() {
                    self.finish(tables, gaps)?;
                }
                continue;
            }
            let before = gaps.made.len();
            memory::reserve(&mut gaps.made, simd_merge::MOST)?;
            if self.encode(text, piece.clone(), key, may_be_token, &mut gaps.made)? || comes_again {
                self.vocabulary.words.enter(word, &gaps.made[before..]);
            }
            gaps.have_made(number, before);
        }
        if let Some(tables) = tables {
            self.finish(tables, gaps)?;
        }
        // Gaps with the piece of another one have its tokens.
        for number in 0..gaps.list.len() {
            if let Some(first) = gaps.list[number].same {
                gaps.list[number].made = gaps.list[usize::from(first)].made.clone();
            }
        }
        Ok(())
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
    fn finish(&mut self, tables: Tables<'_>, gaps: &mut Gaps) -> Result<(), Error> {
        let Gaps { list, made, rows, .. } = gaps;
        rows.finish(tables.joins, made, |number, before, made| {
            let gap = &mut list[number];
            gap.made = before..made.len();
            let tokens = &made[before..];
            if let Some(key) = gap.key {
                self.cache.pieces.remember(key, tokens);
            }
            if gap.key.is_none() || gap.comes_again {
                self.vocabulary.words.enter(gap.word, tokens);
            }
        })?;
        Ok(())
    }
}
