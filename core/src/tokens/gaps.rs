//! Pieces whose tokens are not known yet, and where in the output these belong.
//!
//! Most pieces are found among the words, and their tokens are written at once. The others leave a gap. Once there are
//! some, they are encoded together, so that they wait for memory together (`side_by_side.rs`), and the output is moved
//! apart to make room for them.

use super::piece_key::PieceKey;
use super::side_by_side::Rows;
use crate::memory::{self, OutOfMemory};
use std::ops::Range;

/// A piece, and the place of its tokens.
#[derive(Clone)]
pub(super) struct Gap {
    pub(super) piece: Range<usize>,
    /// The piece among those that are remembered, if it is short enough.
    pub(super) key: Option<PieceKey>,
    /// Whether the piece may be a token.
    pub(super) may_be_token: bool,
    /// The length of the output before it.
    before: usize,
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
}

impl Gaps {
    /// The most gaps at a time.
    const MOST: usize = 128;

    /// Adds a piece that belongs to the end of the output.
    #[inline]
    pub(super) fn add(
        &mut self,
        piece: Range<usize>,
        key: Option<PieceKey>,
        may_be_token: bool,
        out: &[u32],
    ) -> Result<(), OutOfMemory> {
        memory::push(&mut self.list, Gap { piece, key, may_be_token, before: out.len(), made: 0..0 })
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
        memory::reserve(out, self.made.len())?;
        out.resize(end + self.made.len(), 0);
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
