//! Byte pair encoding of short pieces: the plain way, on a few registers.
//!
//! What is looked up here are mostly tokens of low rank, which stay near the processor because every text needs
//! them; that outweighs the squared time as long as a piece is short. Each part has a lane, the one of its first byte,
//! for the token that it and the next part make together; the least of all lanes is joined. Lanes stay in registers:
//! read again as a vector right after one of them was written, memory would make each step wait.

use super::table::{Table, Window};
use wide::i32x4;

/// The longest piece, in bytes.
pub(super) const MOST: usize = 16;

/// The lowest bits of a lane hold its number.
const NUMBER: u32 = MOST.ilog2();

/// All places are below this, so that a lane has room for one.
pub(super) const LIMIT: u32 = 1 << (31 - NUMBER);

/// No token.
const NONE: i32 = i32::MAX;

/// What two neighbours make together, for each part of a piece: the place of the token and the lane's own number.
struct Lanes([i32x4; 4]);

impl Lanes {
    fn new(joined: &[i32; MOST]) -> Self {
        let (fours, _) = joined.as_chunks();
        Self(std::array::from_fn(|index| i32x4::new(fours[index])))
    }

    /// The least token and its lane; the left one of two.
    #[inline]
    fn least(&self) -> Option<(u32, usize)> {
        let [a, b, c, d] = self.0;
        let least = a.min(b).min(c.min(d)).to_array().into_iter().fold(NONE, i32::min);
        (least != NONE).then_some((least as u32 >> NUMBER, least as usize & (MOST - 1)))
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

/// A piece, and what is behind it, as far as the longest piece and a window go.
struct Piece<'a> {
    table: &'a Table,
    bytes: [u8; MOST + Window::SIZE],
    length: usize,
}

impl Piece<'_> {
    /// What the token `bytes[start..end]` is in lane `start`; nothing if there is no such part.
    #[inline]
    fn joined(&self, start: usize, end: usize) -> i32 {
        if end > self.length {
            return NONE;
        }
        let place = self.table.get_in(Window::at(&self.bytes, start), &self.bytes, start, end - start);
        place.map_or(NONE, |place| in_lane(place, start))
    }
}

#[inline]
fn in_lane(place: u32, lane: usize) -> i32 {
    (place << NUMBER | lane as u32) as i32
}

/// Appends the tokens of `text[at..at + length]`, which are all bytes that are tokens, at least one and at most [`MOST`].
/// All places of the table are below [`LIMIT`].
pub(super) fn encode(table: &Table, text: &[u8], at: usize, length: usize, out: &mut Vec<u32>) {
    let mut piece = Piece { table, bytes: [0; MOST + Window::SIZE], length };
    match text[at..].first_chunk::<MOST>() {
        Some(bytes) => piece.bytes[..MOST].copy_from_slice(bytes),
        None => piece.bytes[..length].copy_from_slice(&text[at..at + length]),
    }
    let mut tokens: [u32; MOST] = std::array::from_fn(|lane| table.byte(piece.bytes[lane]));
    let mut joined = [NONE; MOST];
    for (lane, joined) in joined[..length - 1].iter_mut().enumerate() {
        let pair = table.pair(piece.bytes[lane], piece.bytes[lane + 1]);
        *joined = pair.map_or(NONE, |place| in_lane(place, lane));
    }
    let mut lanes = Lanes::new(&joined);
    // Where each part ends, and where the part that ends somewhere starts. One more end makes the last part's neighbour
    // end beyond the piece.
    let mut ends: [u8; MOST + 1] = std::array::from_fn(|lane| lane as u8 + 1);
    ends[length] = u8::MAX;
    let mut starts: [u8; MOST + 1] = std::array::from_fn(|lane| (lane as u8).wrapping_sub(1));
    while let Some((token, start)) = lanes.least() {
        tokens[start] = token;
        let seam = usize::from(ends[start]);
        let end = usize::from(ends[seam]);
        ends[start] = end as u8;
        starts[end] = start as u8;
        lanes.set(seam, NONE);
        lanes.set(start, piece.joined(start, usize::from(ends[end])));
        if start > 0 {
            let before = usize::from(starts[start]);
            lanes.set(before, piece.joined(before, end));
        }
    }
    let next = |&start: &usize| Some(usize::from(ends[start])).filter(|&end| end < length);
    out.extend(std::iter::successors(Some(0), next).map(|start| tokens[start]));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Task;
    use crate::tokens::merge::merge;
    use crate::tokens::vocabulary::Vocabulary;
    use proptest::prelude::*;

    /// All bytes, and some of the tokens that a few letters can make, in an order that the numbers give.
    fn vocabulary(order: &[(Vec<u8>, u32)]) -> Vocabulary {
        let bytes = (0..=255).map(|byte: u8| vec![byte]);
        let mut more = order.to_vec();
        more.sort_by_key(|&(_, rank)| rank);
        let mut tokens: Vec<Vec<u8>> = bytes.chain(more.into_iter().map(|(token, _)| token)).collect();
        let mut seen = std::collections::HashSet::new();
        tokens.retain(|token| seen.insert(token.clone()));
        Vocabulary::new(tokens.into_iter().zip(0..)).unwrap()
    }

    proptest! {
        #[test]
        fn short_pieces_are_joined_by_the_book(
            order in prop::collection::vec((prop::collection::vec(b'a'..b'd', 2..6), any::<u32>()), 0..40),
            piece in prop::collection::vec(b'a'..b'e', 1..=MOST),
            before in prop::collection::vec(b'a'..b'e', 0..20),
            behind in prop::collection::vec(b'a'..b'e', 0..40),
        ) {
            let table = vocabulary(&order).table;
            let parts = merge(piece.len(), |from, to| table.get(&piece, from, to - from), &Task::new()).unwrap();
            let expected: Vec<_> =
                parts.spans().map(|(from, to)| table.get(&piece, from, to - from).unwrap()).collect();
            let text = [&before[..], &piece, &behind].concat();
            let mut tokens = vec![7];
            encode(&table, &text, before.len(), piece.len(), &mut tokens);
            prop_assert_eq!(tokens, [&[7], &expected[..]].concat());
        }
    }
}
