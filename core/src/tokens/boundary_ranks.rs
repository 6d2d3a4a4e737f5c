//! A lower bound on the ranks of tokens across a boundary, from the bytes around it.
//!
//! Left-to-right encoding (`backtrack.rs`) asks at each boundary whether some token of low rank lies across
//! it. For nearly all boundaries in ordinary text, the two bytes on each side already rule that out: no token
//! of low rank has these four bytes inside. The table holds, for the bytes around a boundary, the least rank
//! of all such tokens. It is a one-sided filter, as a Bloom filter is: because of hash collisions the answer
//! may be too small, never too great. 2^17 entries of 16 bits (256 KB), plus 128 KB for the boundaries with
//! only one byte on one side.

use super::Error;
use super::table::{Window, pair_index};
use crate::task::Stretches;
use crate::{Task, hash, memory};

/// For the bytes on both sides of a boundary, the least index of all tokens in which these bytes are
/// adjacent. The answer may be too small because of hash collisions, never too great.
pub(super) struct BoundaryRanks {
    /// Indexed by a hash of the two bytes on each side, for tokens that have that many.
    wide: Vec<u16>,
    /// Indexed by the byte on each side, for tokens that have only one byte on one of the sides.
    narrow: Vec<u16>,
    /// Indices are stored divided by 2^shift, rounded down.
    shift: u32,
}

/// No token.
const NONE: u16 = u16::MAX;

impl BoundaryRanks {
    const BITS: u32 = 17;

    /// Makes the table from the tokens in the order of their indices.
    pub(super) fn new<'a>(
        tokens: impl Iterator<Item = &'a [u8]> + Clone,
        task: &Task<'_>,
    ) -> Result<Self, Error> {
        let count = tokens.clone().count() as u32;
        let shift = (u32::BITS - count.leading_zeros()).saturating_sub(u16::BITS);
        let (wide, narrow) = (memory::filled(NONE, 1 << Self::BITS)?, memory::filled(NONE, 1 << 16)?);
        let mut boundary_ranks = Self { wide, narrow, shift };
        let mut stretches = Stretches::of_items(task);
        for (index, token) in (0_u32..).zip(tokens) {
            stretches.check(index as usize)?;
            boundary_ranks.enter((index >> shift) as u16, token);
        }
        Ok(boundary_ranks)
    }

    /// Enters the boundaries inside a token.
    fn enter(&mut self, index: u16, token: &[u8]) {
        let first = |entry: &mut u16| *entry = (*entry).min(index);
        if let [left, right, ..] = token {
            first(&mut self.narrow[pair_index(*left, *right)]);
        }
        if let [.., left, right] = token {
            first(&mut self.narrow[pair_index(*left, *right)]);
        }
        for around in hash::in_a_row(token) {
            first(&mut self.wide[Self::wide(around)]);
        }
    }

    #[inline]
    fn wide(around: u32) -> usize {
        hash::hash(around, Self::BITS)
    }

    /// A lower bound on the index of a token across `text[boundary]`, which has text on both sides.
    #[inline]
    pub(super) fn least(&self, text: &[u8], boundary: usize) -> u32 {
        let mut least = self.narrow[pair_index(text[boundary - 1], text[boundary])];
        if boundary >= 2 && boundary + 2 <= text.len() {
            least = least.min(self.wide[Self::wide(Window::at(text, boundary - 2).first_four())]);
        }
        if least == NONE { u32::MAX } else { u32::from(least) << self.shift }
    }
}
