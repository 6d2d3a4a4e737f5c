//! The least rank that a token across a seam can have.

use super::table::{Window, pair_index};
use crate::words;

/// For the bytes on both sides of a seam between two tokens the least place of all tokens that have these bytes next
/// to each other inside. Different bytes may share an entry, so an answer may be too small, never too great.
pub(super) struct Seams {
    /// By the hash of the two bytes on either side, for tokens that have that many.
    wide: Vec<u16>,
    /// By the byte on either side, for tokens that have only one byte on one side.
    narrow: Vec<u16>,
    /// Places are stored divided by 2^shift.
    shift: u32,
}

/// No token.
const NONE: u16 = u16::MAX;

impl Seams {
    const BITS: u32 = 17;

    /// From the tokens in the order of their places.
    pub(super) fn new<'a>(tokens: impl Iterator<Item = &'a [u8]> + Clone) -> Self {
        let count = tokens.clone().count() as u32;
        let shift = (u32::BITS - count.leading_zeros()).saturating_sub(u16::BITS);
        let mut seams = Self { wide: vec![NONE; 1 << Self::BITS], narrow: vec![NONE; 1 << 16], shift };
        for (place, token) in (0_u32..).zip(tokens) {
            seams.enter((place >> shift) as u16, token);
        }
        seams
    }

    /// Places come in ascending order, so the first that is entered stays.
    fn enter(&mut self, place: u16, token: &[u8]) {
        let first = |entry: &mut u16| *entry = (*entry).min(place);
        if let [left, right, ..] = token {
            first(&mut self.narrow[pair_index(*left, *right)]);
        }
        if let [.., left, right] = token {
            first(&mut self.narrow[pair_index(*left, *right)]);
        }
        for around in words::in_a_row(token) {
            first(&mut self.wide[Self::wide(around)]);
        }
    }

    #[inline]
    fn wide(around: u32) -> usize {
        words::hash(around, Self::BITS)
    }

    /// The least place that a token across `text[seam]` can have; there is text on both sides.
    #[inline]
    pub(super) fn least(&self, text: &[u8], seam: usize) -> u32 {
        let mut least = self.narrow[pair_index(text[seam - 1], text[seam])];
        if seam >= 2 && seam + 2 <= text.len() {
            least = least.min(self.wide[Self::wide(Window::at(text, seam - 2).first_four())]);
        }
        if least == NONE { u32::MAX } else { u32::from(least) << self.shift }
    }
}
