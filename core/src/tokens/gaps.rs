//! Pieces whose tokens are not known yet, and where in the output these belong.
//!
//! Most pieces are found among the words, and their tokens are written at once. The others leave a gap. Once there are
//! some, they are encoded together, so that they wait for memory together (`side_by_side.rs`), and the output is moved
//! apart to make room for them. A word that is new often comes again soon, such as a name in a program: it is encoded
//! once for all gaps of that time.

use super::piece_key::PieceKey;
use super::side_by_side::Rows;
use super::words::WordKey;
use crate::memory::{self, OutOfMemory};
use std::ops::Range;

/// A piece, and the place of its tokens.
#[derive(Clone)]
pub(super) struct Gap {
    pub(super) piece: Range<usize>,
    /// The piece among the words.
    pub(super) word: WordKey,
    /// The piece among those that are remembered, if it is short enough.
    pub(super) key: Option<PieceKey>,
    /// Whether the piece may be a token.
    pub(super) may_be_token: bool,
    /// The length of the output before it.
    before: usize,
    /// The gap before it with the same piece, if there is one.
    pub(super) same: Option<u8>,
    /// Whether there is such a gap behind it.
    pub(super) comes_again: bool,
    /// Where its tokens are among those that were made.
    pub(super) made: Range<usize>,
}

/// Gaps in the order of the text.
#[derive(Default)]
pub(super) struct Gaps {
    pub(super) list: Vec<Gap>,
    /// The tokens of all, in any order.
    pub(super) made: Vec<u32>,
    pub(super) rows: Rows,
    latest: Latest,
}

/// For each of the places that words share, the latest gap that is not the same as one before. It may be forgotten since.
struct Latest([u8; Self::PLACES]);

impl Latest {
    const PLACES: usize = 256;
}

impl Default for Latest {
    fn default() -> Self {
        Self([0; Self::PLACES])
    }
}

impl Gaps {
    /// The most gaps at a time.
    const MOST: usize = 128;

    /// Adds a gap at the end of the output for a piece that no other gap has, or that is no word.
    #[inline]
    pub(super) fn add(
        &mut self,
        piece: Range<usize>,
        word: WordKey,
        key: Option<PieceKey>,
        may_be_token: bool,
        out: &[u32],
    ) -> Result<(), OutOfMemory> {
        self.latest.0[word.line() % Latest::PLACES] = self.list.len() as u8;
        let before = out.len();
        let (same, comes_again, made) = (None, false, 0..0);
        memory::push(&mut self.list, Gap { piece, word, key, may_be_token, before, same, comes_again, made })
    }

    /// Adds a gap at the end of the output if one with the same word is known; false if not.
    #[inline]
    pub(super) fn add_same(&mut self, word: WordKey, out: &[u32]) -> Result<bool, OutOfMemory> {
        let first = self.latest.0[word.line() % Latest::PLACES];
        let Some(gap) = self.list.get_mut(usize::from(first)) else { return Ok(false) };
        if gap.word != word || word.is_none() {
            return Ok(false);
        }
        gap.comes_again = true;
        let gap = Gap { before: out.len(), same: Some(first), key: None, piece: 0..0, made: 0..0, ..*gap };
        memory::push(&mut self.list, gap)?;
        Ok(true)
    }

    /// Whether the gaps have to be closed.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.list.len() == Self::MOST
    }

    /// Notes that the tokens of a gap are those that were made from number `before` on.
    pub(super) fn have_made(&mut self, gap: usize, before: usize) {
        self.list[gap].made = before..self.made.len();
    }

    /// Moves the tokens that were made into the output, and forgets the gaps.
    pub(super) fn close(&mut self, out: &mut Vec<u32>) -> Result<(), OutOfMemory> {
        let mut end = out.len();
        let more = self.list.iter().map(|gap| gap.made.len()).sum();
        memory::reserve(out, more)?;
        out.resize(end + more, 0);
        let mut to = out.len();
        for gap in self.list.drain(..).rev() {
            to -= end - gap.before;
            out.copy_within(gap.before..end, to);
            to -= gap.made.len();
            // Mostly two or three, for which a call to copy them would take longer.
            out[to..].iter_mut().zip(&self.made[gap.made]).for_each(|(place, &token)| *place = token);
            end = gap.before;
        }
        self.clear();
        Ok(())
    }

    /// Forgets all gaps, as after an error.
    pub(super) fn clear(&mut self) {
        self.list.clear();
        self.made.clear();
        self.rows.clear();
    }
}
