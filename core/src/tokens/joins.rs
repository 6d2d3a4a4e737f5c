//! The token that two neighbours make, found by their numbers.
//!
//! Byte pair encoding joins two neighbours if their bytes together are a token. In an orderly vocabulary each token is
//! only ever made of the same two others (see `merge_list.rs`), so these two can stand for the bytes: a short key of a
//! fixed size, in place of the bytes of a text.
//!
//! A line of the processor's caches has eight pairs, which are compared at once: a look-up has no branch that depends
//! on what is found, and reads one line, whether the pair is there or not. So the processor works on several look-ups
//! at a time. Where a line lies tells a part of the right number (quotienting, as in `compact_map.rs`); the rest is the
//! pair's *tag*. The lines are half full at most. A pair whose line is full lies in one of the three beside it.
//! A vocabulary made so that this does not suffice has no such table, and is encoded with the slower methods.

use super::merges::Merge;
use crate::Task;
use crate::pages::{Pages, prefetch};
use crate::task::Stretches;
use bytemuck::Zeroable;

/// The pairs in a line.
const PLACES: usize = 8;

/// A table may have up to 2^LARGER times the fewest lines, if otherwise some pairs find no room.
const LARGER: u32 = 1;

/// The lines that a pair may lie in: its own, and those whose numbers differ in the lowest bits. The lowest bits of the
/// tag tell which.
const REACH: u32 = 4;

/// Which token two others make.
pub(super) struct Joins {
    lines: Pages<Line>,
    /// There are 2^bits lines.
    bits: u32,
    /// The bits of the right number that the tag has.
    rest: u32,
}

/// Where the token of a pair is.
#[derive(Clone, Copy)]
pub(super) struct Place {
    line: u32,
    tag: i32,
}

impl Place {
    pub(super) const EMPTY: Self = Self { line: 0, tag: 0 };

    /// The place for a pair that finds no room in `number` lines before.
    #[inline]
    fn beside(self, number: u32) -> Self {
        Self { line: self.line ^ number, tag: self.tag | number as i32 }
    }
}

/// The tags of pairs, and the tokens that they make: 0 where there is no pair, because 0 is a single byte.
#[derive(Clone, Copy, Zeroable)]
#[repr(C, align(64))]
struct Line {
    tags: [i32; PLACES],
    tokens: [i32; PLACES],
}

impl Joins {
    /// The joins that make the tokens of an orderly vocabulary; `None` if some find no room, or a tag has too few bits.
    pub(super) fn new(merges: &[Merge], task: &Task<'_>) -> Result<Option<Self>, super::Error> {
        let joins = merges.iter().filter(|merge| merge.is_made() && merge.length > 1).count();
        let numbers = usize::BITS - merges.len().leading_zeros();
        let bits = joins.div_ceil(PLACES / 2).next_power_of_two().ilog2().max(REACH.ilog2());
        for bits in bits..=bits + LARGER {
            let rest = numbers.saturating_sub(bits);
            if numbers + rest + REACH.ilog2() > u32::BITS {
                return Ok(None);
            }
            let mut table = Self { lines: Pages::zeroed(1 << bits)?, bits, rest };
            if table.enter_all(merges, task)? {
                return Ok(Some(table));
            }
        }
        Ok(None)
    }

    fn enter_all(&mut self, merges: &[Merge], task: &Task<'_>) -> Result<bool, super::Error> {
        let mut stretches = Stretches::of_items(task);
        for (token, merge) in (0..).zip(merges) {
            stretches.check(token as usize)?;
            let is_join = merge.is_made() && merge.length > 1;
            if is_join && !self.enter(merge.left, merge.right, token) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Enters a pair; false if there is no room.
    fn enter(&mut self, left: u32, right: u32, token: i32) -> bool {
        let place = self.place(left, right);
        for number in 0..REACH {
            let Place { line, tag } = place.beside(number);
            let Line { tags, tokens } = &mut self.lines[line as usize];
            if let Some(free) = tokens.iter().position(|&token| token == 0) {
                (tags[free], tokens[free]) = (tag, token);
                return true;
            }
        }
        false
    }

    /// The line and the tag of a pair, which together have only this pair.
    #[inline]
    fn place(&self, left: u32, right: u32) -> Place {
        let line = left.wrapping_mul(0x9e37_79b1) >> (u32::BITS - self.bits);
        let within = (1 << self.bits) - 1;
        let high = right.checked_shr(self.bits).unwrap_or(0);
        Place { line: (line ^ right) & within, tag: ((left << self.rest | high) << REACH.ilog2()) as i32 }
    }

    /// Where the token of two neighbours is. Has the processor fetch what [`get`](Self::get) reads.
    #[inline(always)]
    pub(super) fn expect(&self, left: u32, right: u32) -> Place {
        let place = self.place(left, right);
        prefetch(&self.lines[place.line as usize]);
        place
    }

    /// The token that the two make when they are neighbours; 0 if they make none.
    #[inline(always)]
    pub(super) fn of(&self, left: u32, right: u32) -> u32 {
        self.get(self.place(left, right))
    }

    /// The same for two whose place is known.
    #[inline(always)]
    pub(super) fn get(&self, place: Place) -> u32 {
        let line = &self.lines[place.line as usize];
        let token = line.find(place.tag);
        // Rarely, unlike that there is no token.
        if line.is_full() { token | self.get_beside(place) } else { token }
    }

    /// The token of a pair that may lie beside its own line.
    #[cold]
    fn get_beside(&self, place: Place) -> u32 {
        let mut token = 0;
        for number in 1..REACH {
            let Place { line, tag } = place.beside(number);
            let line = &self.lines[line as usize];
            token |= line.find(tag);
            if !line.is_full() {
                break;
            }
        }
        token
    }
}

impl Line {
    #[inline(always)]
    fn find(&self, tag: i32) -> u32 {
        let found = |(&other, &token)| if other == tag { token } else { 0 };
        self.tags.iter().zip(&self.tokens).map(found).fold(0, |all, token| all | token) as u32
    }

    #[inline]
    fn is_full(&self) -> bool {
        self.tokens[PLACES - 1] != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Single bytes, and a token of each pair.
    fn merges(pairs: &[(u32, u32)]) -> Vec<Merge> {
        let single = |index| Merge { left: index, right: index, length: 1 };
        let joins = pairs.iter().map(|&(left, right)| Merge { left, right, length: 2 });
        (0..256).map(single).chain(joins).collect()
    }

    #[test]
    fn each_pair_has_its_token_and_no_other_has_one() {
        let pairs: Vec<(u32, u32)> = (0..20_000).map(|n| (n % 141 * 3, n / 141 * 7 % 20_256)).collect();
        let joins = Joins::new(&merges(&pairs), &Task::new()).unwrap().unwrap();
        for (token, &(left, right)) in (256..).zip(&pairs) {
            joins.expect(left, right);
            assert_eq!(joins.of(left, right), token);
        }
        let entered: std::collections::HashSet<_> = pairs.iter().collect();
        let all = (0..600).flat_map(|left| (0..1500).map(move |right| (left, right)));
        assert!(all.filter(|pair| !entered.contains(pair)).all(|(left, right)| joins.of(left, right) == 0));
    }

    #[test]
    fn a_full_line_goes_on_beside() {
        let mut joins = Joins { lines: Pages::zeroed(1 << 8).unwrap(), bits: 8, rest: 12 };
        let most = PLACES * REACH as usize;
        let right = |high: u32| high << 8 | 77;
        let entered = (0..40).map(|high| joins.enter(5, right(high), high as i32 + 1));
        assert_eq!(entered.filter(|&entered| entered).count(), most);
        for high in 0..40 {
            let token = if (high as usize) < most { high + 1 } else { 0 };
            assert_eq!(joins.of(5, right(high)), token);
            assert!(
                (1..REACH).all(|beside| joins.of(5, right(high) ^ beside) == 0),
                "their lines are those beside"
            );
        }
    }

    #[test]
    fn the_tables_of_public_vocabularies_have_the_fewest_lines() {
        for (name, bits) in [("cl100k_base", 15), ("o200k_base", 16)] {
            let ranks = crate::tokens::get(name).unwrap().ranks();
            let ranks: Vec<_> = ranks.map(|(bytes, id)| (bytes.to_vec(), id)).collect();
            let vocabulary = crate::tokens::vocabulary::Vocabulary::new(ranks, &Task::new()).unwrap();
            assert_eq!(vocabulary.tables(&Task::new()).unwrap().joins.bits, bits, "{name}");
        }
    }

    #[test]
    fn a_vocabulary_made_for_collisions_has_no_table() {
        // Multiples of 2^bits as right numbers, so that all pairs of a left one meet in its line.
        let pairs: Vec<(u32, u32)> =
            (0..20_000).map(|n| (n / 2 % 300, ((n / 600 % 33) << 14) | (n % 2))).collect();
        let mut merges = merges(&pairs);
        merges.resize(1 << 20, Merge { left: super::super::merges::NEVER, right: 0, length: 2 });
        assert!(Joins::new(&merges, &Task::new()).unwrap().is_none());
    }
}
