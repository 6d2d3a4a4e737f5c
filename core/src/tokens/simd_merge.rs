//! Byte pair encoding of short pieces: the plain algorithm in SIMD registers.
//!
//! Each part of the piece has a lane that holds the rank of the token which the part and its right neighbour
//! form, with the lane's own number in the lowest bits. A step takes the minimum over all lanes, which is
//! both the lowest rank and, among equals, the leftmost pair; joins that pair; and looks up the two new
//! pairs. Parts start as bytes, or as whole characters where [`char_seeds`](super::char_seeds) proves that
//! these are joined first.
//!
//! At most [`PARTS`] parts and [`MOST`] bytes: 4 or 8 registers of four lanes. The number of steps times the
//! number of registers makes the time quadratic, but for up to 32 parts this is less than the cost of the
//! lookups. Those mostly find tokens of low rank, which stay in the caches because every text needs them;
//! left-to-right encoding looks up long and rare candidates instead. The lanes are updated by masked selects
//! and stay in registers: storing one lane to memory and loading the vector again would stall each step.

use super::char_seeds::CharSeeds;
use super::table::{Table, Window};
use wide::i32x4;

/// The most bytes in a piece.
pub(super) const MOST: usize = 96;

/// The most parts at the start.
pub(super) const PARTS: usize = 32;

/// The number of bits at the bottom of a lane that hold the lane's number.
pub(super) const NUMBER: u32 = PARTS.ilog2();

/// An upper bound on token indices, exclusive: larger ones do not fit into a lane.
pub(super) const LIMIT: u32 = 1 << (31 - NUMBER);

/// No token.
pub(super) const NONE: i32 = i32::MAX;

/// For each part, four to a register: the index of the token that it forms with its right neighbour, and the
/// lane's number.
struct Lanes<const FOURS: usize>([i32x4; FOURS]);

impl<const FOURS: usize> Lanes<FOURS> {
    fn new(joined: &[i32; PARTS]) -> Self {
        let (fours, _) = joined.as_chunks();
        Self(std::array::from_fn(|index| i32x4::new(fours[index])))
    }

    /// The least token and its lane; of equal tokens the leftmost.
    #[inline]
    fn least(&self) -> Option<(u32, usize)> {
        let least = self.0.into_iter().reduce(i32x4::min)?.to_array().into_iter().fold(NONE, i32::min);
        (least != NONE).then_some((least as u32 >> NUMBER, least as usize & (PARTS - 1)))
    }

    #[inline]
    fn set(&mut self, lane: usize, joined: i32) {
        let own = i32x4::splat(lane as i32);
        for (index, four) in (0..).step_by(4).zip(&mut self.0) {
            let numbers = i32x4::new([index, index + 1, index + 2, index + 3]);
            *four = numbers.simd_eq(own).bitselect(i32x4::splat(joined), *four);
        }
    }
}

/// A piece and its parts at the start.
struct Piece<'a> {
    table: &'a Table,
    /// The piece, and the text after it that a window may read.
    bytes: [u8; MOST + Window::SIZE],
    /// The parts' tokens.
    tokens: [u32; PARTS],
    /// The start of each part, followed by the end of the piece.
    offsets: [u8; PARTS + 1],
    count: usize,
}

impl<'a> Piece<'a> {
    #[inline]
    fn new(table: &'a Table, text: &[u8], at: usize, length: usize) -> Self {
        let mut bytes = [0; MOST + Window::SIZE];
        match text[at..].first_chunk::<MOST>() {
            Some(text) => bytes[..MOST].copy_from_slice(text),
            None => bytes[..length].copy_from_slice(&text[at..at + length]),
        }
        Self { table, bytes, tokens: [0; PARTS], offsets: [0; PARTS + 1], count: 0 }
    }

    /// The lanes for the current parts.
    #[inline]
    fn lanes<const FOURS: usize>(&self) -> Lanes<FOURS> {
        let mut joined = [NONE; PARTS];
        for (lane, joined) in joined[..self.count - 1].iter_mut().enumerate() {
            let start = usize::from(self.offsets[lane]);
            *joined = match usize::from(self.offsets[lane + 2]) - start {
                2 => in_lane(self.table.pair(self.bytes[start], self.bytes[start + 1]), lane),
                _ => self.joined(lane, lane + 2),
            };
        }
        Lanes::new(&joined)
    }

    /// The value of lane `start` for the token formed by the parts from `start` to `end`; [`NONE`] if there
    /// is no such token.
    #[inline]
    fn joined(&self, start: usize, end: usize) -> i32 {
        if end > self.count {
            return NONE;
        }
        let (at, behind) = (usize::from(self.offsets[start]), usize::from(self.offsets[end]));
        in_lane(self.table.get_in(Window::at(&self.bytes, at), &self.bytes, at, behind - at), start)
    }
}

#[inline]
fn in_lane(index: Option<u32>, lane: usize) -> i32 {
    index.map_or(NONE, |index| (index << NUMBER | lane as u32) as i32)
}

/// Appends the tokens of `text[at..at + length]`, at most [`MOST`], for which the caller has reserved
/// capacity. Returns false, with nothing appended, if the piece is too long or has too many parts. The piece
/// has at least one byte, all bytes are tokens, and all indices of the table are below [`LIMIT`].
#[must_use]
pub(super) fn encode(
    table: &Table,
    seeds: &CharSeeds,
    text: &[u8],
    at: usize,
    length: usize,
    out: &mut Vec<u32>,
) -> bool {
    if length > MOST {
        return false;
    }
    let mut piece = Piece::new(table, text, at, length);
    let parts = seeds.divide(table, &piece.bytes, length, &mut piece.tokens, &mut piece.offsets);
    let Some(count) = parts else { return false };
    piece.count = count;
    // Fewer registers make the minimum cheaper.
    match piece.count {
        ..=16 => join::<4>(&mut piece, out),
        _ => join::<8>(&mut piece, out),
    }
    true
}

/// Joins the parts, which have a lane each, and appends the resulting tokens.
fn join<const FOURS: usize>(piece: &mut Piece<'_>, out: &mut Vec<u32>) {
    let count = piece.count;
    let mut lanes = piece.lanes::<FOURS>();
    // The end of each part, and the start of the part that ends at each boundary. The additional end makes
    // the last part's neighbour end beyond the piece.
    let mut ends: [u8; PARTS + 1] = std::array::from_fn(|lane| lane as u8 + 1);
    ends[count] = u8::MAX;
    let mut starts: [u8; PARTS + 1] = std::array::from_fn(|lane| (lane as u8).wrapping_sub(1));
    while let Some((token, start)) = lanes.least() {
        piece.tokens[start] = token;
        let boundary = usize::from(ends[start]);
        let end = usize::from(ends[boundary]);
        ends[start] = end as u8;
        starts[end] = start as u8;
        lanes.set(boundary, NONE);
        lanes.set(start, piece.joined(start, usize::from(ends[end])));
        if start > 0 {
            let before = usize::from(starts[start]);
            lanes.set(before, piece.joined(before, end));
        }
    }
    let next = |&start: &usize| Some(usize::from(ends[start])).filter(|&end| end < count);
    out.extend(std::iter::successors(Some(0), next).map(|start| piece.tokens[start]));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Task;
    use crate::tokens::merge::merge;
    use crate::tokens::test_pieces::{pieces, vocabulary};
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]

        #[test]
        fn short_pieces_get_the_tokens_of_the_plain_algorithm(
            joins in prop::collection::vec((any::<usize>(), any::<usize>()), 0..40),
            piece in pieces(1..25),
            before in pieces(0..10),
            behind in pieces(0..20),
        ) {
            let vocabulary = vocabulary(&joins);
            prop_assume!(vocabulary.backtracker.is_some());
            let (table, tables) = (&vocabulary.table, vocabulary.tables(&Task::new()).unwrap());
            let parts = merge(piece.len(), |from, to| table.get(&piece, from, to - from), &Task::new()).unwrap();
            let expected: Vec<_> =
                parts.spans().map(|(from, to)| table.get(&piece, from, to - from).unwrap()).collect();
            let text = [&before[..], &piece, &behind].concat();
            for seeds in [tables.seeds, CharSeeds::NONE] {
                let mut tokens = vec![7];
                if encode(table, seeds, &text, before.len(), piece.len(), &mut tokens) {
                    prop_assert_eq!(tokens, [&[7], &expected[..]].concat());
                } else {
                    prop_assert!(piece.len() > PARTS);
                    prop_assert_eq!(tokens, [7]);
                }
            }
        }
    }
}
