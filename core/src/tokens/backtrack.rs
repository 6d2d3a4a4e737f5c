//! Byte pair encoding from left to right.
//!
//! In an orderly vocabulary every token is the join of two tokens of lower rank. There, a sequence of tokens is what
//! byte pair encoding gives if and only if it gives each pair of neighbours for the text of just these two. (Look at
//! the first join across a boundary of the sequence: until then the two tokens at that boundary were made as they
//! would have been alone, so it would have happened to them alone as well.) So a piece can be encoded from left to
//! right, looking at one boundary at a time.

use super::Error;
use super::bits;
use super::boundary_ranks::BoundaryRanks;
use super::cache::{Cache, Pairs};
use super::char_seeds::CharSeeds;
use super::merges::Merge;
use super::table::{Table, Window};
use crate::memory::{self, OutOfMemory};
use crate::{Task, hash};
use std::ops::Range;

/// What an orderly vocabulary has in addition.
pub(super) struct Backtracker {
    merges: Vec<Merge>,
    /// One bit for each token that byte pair encoding never makes: small enough to stay near the processor.
    never: Vec<u64>,
    lengths: Lengths,
    boundary_ranks: BoundaryRanks,
    pub(super) seeds: CharSeeds,
}

/// How many steps are taken between two looks at the task.
const STRETCH: usize = 2048;

impl Backtracker {
    pub(super) fn new<'a>(
        tokens: impl Iterator<Item = &'a [u8]> + Clone,
        merges: Vec<Merge>,
    ) -> Result<Self, OutOfMemory> {
        let mut never = memory::filled(0, bits::words(merges.len()))?;
        for (index, _) in merges.iter().enumerate().filter(|(_, merge)| !merge.is_made()) {
            bits::set(&mut never, index);
        }
        let lengths = Lengths::new(tokens.clone())?;
        let boundary_ranks = BoundaryRanks::new(tokens.clone());
        let seeds = CharSeeds::new(tokens, &merges);
        Ok(Self { merges, never, lengths, boundary_ranks, seeds })
    }

    fn is_made(&self, index: u32) -> bool {
        !bits::has(&self.never, index as usize)
    }

    /// The tokens of `text[piece]`, which is not empty.
    pub(super) fn encode<'s>(
        &self,
        table: &Table,
        text: &[u8],
        piece: Range<usize>,
        cache: &'s mut Cache,
        task: &Task<'_>,
    ) -> Result<&'s [u32], Error> {
        let Range { start, end } = piece;
        let Cache { tokens, dead, pairs, .. } = cache;
        tokens.clear();
        dead.clear();
        memory::reserve(dead, bits::words(end - start + 1))?;
        dead.resize(bits::words(end - start + 1), 0);
        let (mut at, mut limit) = (start, end - start);
        for step in 1.. {
            if step % STRETCH == 0 {
                task.check()?;
            }
            if let Some((token, length)) = self.longest(table, text, at, limit) {
                let next = at + length;
                if bits::has(dead, next - start)
                    || tokens
                        .last()
                        .is_some_and(|last| !self.may_follow(table, text, at, *last, token, pairs))
                {
                    limit = length - 1;
                    continue;
                }
                memory::push(tokens, token)?;
                if next == end {
                    break;
                }
                (at, limit) = (next, end - next);
                continue;
            }
            bits::set(dead, at - start);
            let last = tokens.pop().expect("single bytes are tokens, so some sequence reaches the end");
            let length = self.merges[last as usize].length as usize;
            (at, limit) = (at - length, length - 1);
        }
        Ok(tokens)
    }

    /// The longest token that `text[at..]` begins with, at most `limit` bytes long, and its length.
    fn longest(&self, table: &Table, text: &[u8], at: usize, limit: usize) -> Option<(u32, usize)> {
        let window = Window::at(text, at);
        let token = |length: usize| {
            let index = table.get_in(window, text, at, length)?;
            self.is_made(index).then_some((index, length))
        };
        self.lengths.of(window, limit).find_map(token)
    }

    /// As [`fit`](Self::fit), which is asked only if `pairs` does not know.
    fn may_follow(
        &self,
        table: &Table,
        text: &[u8],
        boundary: usize,
        left: u32,
        right: u32,
        pairs: &mut Pairs,
    ) -> bool {
        let least = self.boundary_ranks.least(text, boundary);
        if least == u32::MAX {
            return true;
        }
        pairs.recall(left, right).unwrap_or_else(|| {
            let fit = self.fit(table, text, boundary, left, right, least);
            pairs.remember(left, right, fit);
            fit
        })
    }

    /// Whether byte pair encoding of the two tokens' text, which meet at `boundary`, gives these two.
    ///
    /// The joins that make them are undone, the latest first. What stands left and right of the boundary then has been
    /// neighbours, and must not make a token of lower rank than the join that parted them.
    fn fit(&self, table: &Table, text: &[u8], boundary: usize, left: u32, right: u32, least: u32) -> bool {
        let (mut x, mut y) = (left, right);
        let mut limit = u32::MAX;
        while limit > least {
            let (left, right) = (self.merges[x as usize], self.merges[y as usize]);
            let length = (left.length + right.length) as usize;
            let joined = table.get(text, boundary - left.length as usize, length);
            if joined.is_some_and(|joined| joined < limit) {
                return false;
            }
            if left.length > 1 && (x > y || right.length == 1) {
                limit = x;
                x = left.right;
            } else if right.length > 1 {
                // Of two equal joins the left one is made first.
                limit = y + 1;
                y = right.left;
            } else {
                break;
            }
        }
        true
    }
}

/// For the first bytes of a text the lengths of the tokens that it may begin with.
struct Lengths {
    /// By the hash of four bytes; bit n stands for length n, the last bit for all lengths from there on. Hashes
    /// collide, so there may be lengths too many, never too few.
    sets: Vec<u32>,
    /// The lengths from 31 on, the greatest first.
    great: Vec<usize>,
}

/// The first length that has no bit of its own.
const GREAT: usize = 31;

impl Lengths {
    const BITS: u32 = 16;

    fn new<'a>(tokens: impl Iterator<Item = &'a [u8]> + Clone) -> Result<Self, OutOfMemory> {
        let mut sets = vec![0; 1 << Self::BITS];
        let great = tokens.clone().map(<[u8]>::len).filter(|&length| length >= GREAT);
        let mut great = memory::collected::<_, OutOfMemory>(great.map(Ok))?;
        great.sort_unstable_by(|a, b| b.cmp(a));
        great.dedup();
        for token in tokens.filter(|token| token.len() >= 4) {
            sets[Self::hash(Window::at(token, 0))] |= 1 << token.len().min(GREAT);
        }
        Ok(Self { sets, great })
    }

    fn hash(window: Window) -> usize {
        hash::hash(window.first_four(), Self::BITS)
    }

    /// The lengths up to `limit`, the greatest first.
    fn of(&self, window: Window, limit: usize) -> impl Iterator<Item = usize> {
        let allowed = ((1_u64 << (limit + 1).min(32)) - 1) as u32;
        let mut set = (self.sets[Self::hash(window)] & !0b1111 | 0b1110) & allowed;
        let has_great = set >> GREAT == 1;
        set &= !(1 << GREAT);
        let great = if has_great { self.great.as_slice() } else { &[] };
        let others = std::iter::from_fn(move || {
            let length = set.checked_ilog2()?;
            set ^= 1 << length;
            Some(length as usize)
        });
        great.iter().copied().skip_while(move |&length| length > limit).chain(others)
    }
}
