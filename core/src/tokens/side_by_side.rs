//! Byte pair encoding of several short pieces at a time.
//!
//! The algorithm is that of `simd_merge.rs`: each part has a lane with the token that it and its right neighbour make,
//! and the least lane is joined. But one join depends on the look-ups of the one before, and these wait for memory:
//! the tables are larger than the caches next to the processor, and it takes longer to read a line from elsewhere than
//! to do everything else. So some pieces are encoded side by side. In each round each piece has one join, has the
//! processor fetch the two lines of the table that its next look-ups read (`joins.rs`), and leaves it to the next
//! piece; when it is its turn again, the lines are there.

use super::char_seeds::CharSeeds;
use super::joins::{Joins, Place};
use super::simd_merge::{MOST, NONE, NUMBER, PARTS};
use super::table::Table;
use crate::memory::{self, OutOfMemory};
use std::ops::Range;

/// The pieces that are encoded at a time.
const ROWS: usize = 32;

/// The tables of a vocabulary that this needs.
#[derive(Clone, Copy)]
pub(super) struct Tables<'a> {
    pub(super) table: &'a Table,
    pub(super) seeds: &'a CharSeeds,
    pub(super) joins: &'a Joins,
}

/// Pieces that are encoded together.
#[derive(Default)]
pub(super) struct Rows {
    rows: Vec<Row>,
    filled: usize,
}

/// A piece.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Row {
    lanes: [i32; PARTS],
    /// The parts' tokens.
    tokens: [u32; PARTS],
    /// The end of each part, and the start of the part that ends at each boundary, in numbers of parts.
    ends: [u8; PARTS + 1],
    starts: [u8; PARTS + 1],
    count: usize,
    /// How many pairs are to be looked up at first: none if all parts are bytes, for whose pairs there is an array.
    expected: usize,
    /// The look-ups that the last join made necessary, and their lanes.
    awaited: [(Place, u32); 2],
    /// What the caller knows the piece by.
    name: usize,
}

impl Row {
    const EMPTY: Self = Self {
        lanes: [NONE; PARTS],
        tokens: [0; PARTS],
        ends: numbers(1),
        starts: numbers(u8::MAX),
        count: 0,
        expected: 0,
        awaited: [(Place::EMPTY, 0); 2],
        name: 0,
    };

    /// Divides `text[piece]` into parts, and prepares the look-ups of their neighbours; false if there are too many.
    fn start(&mut self, tables: Tables<'_>, text: &[u8], piece: Range<usize>) -> bool {
        // The ends of the parts in bytes; they are not needed here.
        let mut offsets = [0; PARTS + 1];
        let bytes = &text[piece.start..];
        let parts = tables.seeds.divide(tables.table, bytes, piece.len(), &mut self.tokens, &mut offsets);
        let Some(count) = parts else { return false };
        self.count = count;
        (self.ends, self.starts) = (Self::EMPTY.ends, Self::EMPTY.starts);
        self.lanes = [NONE; PARTS];
        let are_bytes = count == piece.len();
        self.expected = if are_bytes { 0 } else { count - 1 };
        for lane in 0..self.expected {
            tables.joins.expect(self.tokens[lane], self.tokens[lane + 1]);
        }
        if are_bytes {
            for (lane, pair) in bytes[..count].windows(2).enumerate() {
                self.lanes[lane] = in_lane(tables.table.pair(pair[0], pair[1]).unwrap_or(0), lane);
            }
        }
        true
    }

    /// Looks up the pairs that [`start`](Self::start) prepared.
    #[inline(always)]
    fn begin(&mut self, joins: &Joins) {
        for lane in 0..self.expected {
            self.lanes[lane] = in_lane(joins.of(self.tokens[lane], self.tokens[lane + 1]), lane);
        }
    }

    /// Joins the next pair, and prepares the look-ups of its neighbours; false if there is none.
    #[inline(always)]
    fn join<const WIDE: bool>(&mut self, joins: &Joins) -> bool {
        let Some((token, start)) = self.least::<WIDE>() else { return false };
        self.tokens[start] = token;
        let boundary = usize::from(self.ends[start]) & (PARTS - 1);
        let end = usize::from(self.ends[boundary]);
        self.ends[start] = end as u8;
        self.starts[end] = start as u8;
        self.lanes[boundary] = NONE;
        self.lanes[start] = NONE;
        if start == 0 && end == self.count {
            return false;
        }
        // At an end of the piece both are the same look-up: that is cheaper than a branch that cannot be predicted.
        let left = usize::from(self.starts[start]) & (PARTS - 1);
        let behind = (token, self.tokens[end & (PARTS - 1)], start);
        let before = (self.tokens[left], token, left);
        let [behind, before] =
            [if end < self.count { behind } else { before }, if start > 0 { before } else { behind }];
        self.awaited = [behind, before].map(|(left, right, lane)| (joins.expect(left, right), lane as u32));
        true
    }

    /// Does the look-ups that the last join made necessary.
    #[inline(always)]
    fn look_up(&mut self, joins: &Joins) {
        for (place, lane) in self.awaited {
            self.lanes[lane as usize & (PARTS - 1)] = in_lane(joins.get(place), lane as usize);
        }
    }

    /// The tokens of the parts that are left.
    fn made(&self) -> impl Iterator<Item = u32> {
        let mut start = 0;
        std::iter::from_fn(move || {
            let token = (start < self.count).then(|| self.tokens[start])?;
            start = usize::from(self.ends[start]);
            Some(token)
        })
    }

    /// The least token and its lane; of equal tokens the leftmost.
    #[inline(always)]
    fn least<const WIDE: bool>(&self) -> Option<(u32, usize)> {
        // Half of the lanes may do, but this cannot be predicted; with wide registers the other half costs less.
        let lanes = if !WIDE && self.count <= PARTS / 2 { &self.lanes[..PARTS / 2] } else { &self.lanes[..] };
        let least = lanes.iter().copied().fold(NONE, i32::min);
        (least != NONE).then_some((least as u32 >> NUMBER, least as usize & (PARTS - 1)))
    }
}

/// Numbers from `first` on, where 0 follows the greatest.
const fn numbers(first: u8) -> [u8; PARTS + 1] {
    let mut numbers = [first; PARTS + 1];
    let mut at = 1;
    while at < numbers.len() {
        numbers[at] = numbers[at - 1].wrapping_add(1);
        at += 1;
    }
    numbers
}

/// The value of a lane for the token that its part and the right neighbour make; 0 is no such token.
#[inline]
fn in_lane(token: u32, lane: usize) -> i32 {
    if token == 0 { NONE } else { (token << NUMBER | lane as u32) as i32 }
}

impl Rows {
    /// Adds a piece, which has at least one byte, and is known by `name` from now on. Returns false if it is too long
    /// or has too many parts. If there is no more room then, the caller has to [`finish`](Self::finish).
    pub(super) fn add(
        &mut self,
        tables: Tables<'_>,
        text: &[u8],
        piece: Range<usize>,
        name: usize,
    ) -> Result<bool, OutOfMemory> {
        if self.rows.is_empty() {
            self.rows = memory::filled(Row::EMPTY, ROWS)?;
        }
        if piece.len() > MOST || !self.rows[self.filled].start(tables, text, piece) {
            return Ok(false);
        }
        self.rows[self.filled].name = name;
        self.filled += 1;
        Ok(true)
    }

    /// Forgets all pieces, as after an error.
    pub(super) fn clear(&mut self) {
        self.filled = 0;
    }

    /// Whether no more piece can be added.
    pub(super) fn is_full(&self) -> bool {
        self.filled == ROWS
    }

    /// Encodes the pieces, and appends their tokens to `made`. Calls `with` with the name of each, where its tokens
    /// begin, and `made` up to its last one.
    pub(super) fn finish(
        &mut self,
        joins: &Joins,
        made: &mut Vec<u32>,
        mut with: impl FnMut(usize, usize, &[u32]),
    ) -> Result<(), OutOfMemory> {
        memory::reserve(made, self.filled * PARTS)?;
        let rows = &mut self.rows[..self.filled];
        self.filled = 0;
        join_all(rows, joins);
        for row in rows {
            let before = made.len();
            made.extend(row.made());
            with(row.name, before, made);
        }
        Ok(())
    }
}

/// Joins all that is to be joined, with the best instructions that this processor has.
#[allow(unsafe_code)]
fn join_all(rows: &mut [Row], joins: &Joins) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi1") {
        // SAFETY: the processor has what it needs.
        return unsafe { join_all_with_avx2(rows, joins) };
    }
    join_all_with::<false>(rows, joins);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1")]
fn join_all_with_avx2(rows: &mut [Row], joins: &Joins) {
    join_all_with::<true>(rows, joins);
}

/// See [`join_all`]. `WIDE` is whether registers have 32 bytes.
#[inline(always)]
fn join_all_with<const WIDE: bool>(rows: &mut [Row], joins: &Joins) {
    rows.iter_mut().for_each(|row| row.begin(joins));
    let (mut busy, mut count): ([u8; ROWS], usize) = (std::array::from_fn(|row| row as u8), rows.len());
    while count > 0 {
        let mut left = 0;
        for place in 0..count {
            let number = busy[place];
            busy[left] = number;
            left += usize::from(rows[usize::from(number)].join::<WIDE>(joins));
        }
        count = left;
        busy[..count].iter().for_each(|&row| rows[usize::from(row)].look_up(joins));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Task;
    use crate::tokens::merge::merge;
    use crate::tokens::test_pieces::{pieces, vocabulary};
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2048))]

        #[test]
        fn pieces_side_by_side_get_the_tokens_of_the_plain_algorithm(
            joins in prop::collection::vec((any::<usize>(), any::<usize>()), 0..40),
            parts in prop::collection::vec(pieces(1..25), 1..ROWS),
        ) {
            let vocabulary = vocabulary(&joins);
            prop_assume!(vocabulary.backtracker.is_some());
            let (tables, text) = (vocabulary.tables(&Task::new()).unwrap(), parts.concat());
            let (mut rows, mut made, mut seen) = (Rows::default(), vec![7], Vec::new());
            let mut at = 0;
            for part in &parts {
                let range = at..at + part.len();
                at = range.end;
                if rows.add(tables, &text, range.clone(), seen.len()).unwrap() {
                    seen.push((range, Vec::new()));
                } else {
                    prop_assert!(part.len() > PARTS);
                }
            }
            let mut portable = rows.rows[..rows.filled].to_vec();
            join_all_with::<false>(&mut portable, tables.joins);
            rows.finish(tables.joins, &mut made, |name, before, made| seen[name].1 = made[before..].to_vec()).unwrap();
            for ((range, tokens), row) in seen.into_iter().zip(portable) {
                prop_assert!(row.made().eq(tokens.iter().copied()));
                let index = |from, to| tables.table.get(&text[range.clone()], from, to - from);
                let parts = merge(range.len(), index, &Task::new()).unwrap();
                let expected: Vec<_> = parts.spans().map(|(from, to)| index(from, to).unwrap()).collect();
                prop_assert_eq!(tokens, expected);
            }
        }
    }
}
