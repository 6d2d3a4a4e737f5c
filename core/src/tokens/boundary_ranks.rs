//! The least rank that a token across a boundary can have.

use super::table::{Window, pair_index};
use crate::hash;

/// For the bytes on both sides of a boundary between two tokens the least index of all tokens that have these bytes next
/// to each other inside. Different bytes may share an entry, so an answer may be too small, never too great.
pub(super) struct BoundaryRanks {
    /// By the hash of the two bytes on either side, for tokens that have that many.
    wide: Vec<u16>,
    /// By the byte on either side, for tokens that have only one byte on one side.
    narrow: Vec<u16>,
    /// Places are stored divided by 2^shift.
    shift: u32,
}

/// No token.
const NONE: u16 = u16::MAX;

impl BoundaryRanks {
    const BITS: u32 = 17;

    /// From the tokens in the order of their indices.
    pub(super) fn new<'a>(tokens: impl Iterator<Item = &'a [u8]> + Clone) -> Self {
        let count = tokens.clone().count() as u32;
        let shift = (u32::BITS - count.leading_zeros()).saturating_sub(u16::BITS);
        let mut boundary_ranks =
            Self { wide: vec![NONE; 1 << Self::BITS], narrow: vec![NONE; 1 << 16], shift };
        for (index, token) in (0_u32..).zip(tokens) {
            boundary_ranks.enter((index >> shift) as u16, token);
        }
        boundary_ranks
    }

    /// Places come in ascending order, so the first that is entered stays.
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

    /// The least index that a token across `text[boundary]` can have; there is text on both sides.
    #[inline]
    pub(super) fn least(&self, text: &[u8], boundary: usize) -> u32 {
        let mut least = self.narrow[pair_index(text[boundary - 1], text[boundary])];
        if boundary >= 2 && boundary + 2 <= text.len() {
            least = least.min(self.wide[Self::wide(Window::at(text, boundary - 2).first_four())]);
        }
        if least == NONE { u32::MAX } else { u32::from(least) << self.shift }
    }
}
