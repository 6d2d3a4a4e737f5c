//! Characters that byte pair encoding always joins first, so that encoding may start from them instead of
//! from bytes.
//!
//! A character of several bytes is a *seed* if byte pair encoding of its bytes makes it a token and if every
//! token that contains it and more has a higher rank. In a text, another token might reach into the character
//! from outside and end halfway. Such a token is not valid UTF-8, and vocabularies have few of them
//! (o200k_base: 1,562 of 199,998). A boundary across which such a token may lie is called *ragged*.
//!
//! A seed between two boundaries at which all ragged tokens have a higher rank is joined from its bytes in
//! any case: all joins across its boundaries come later, and until the character is whole, the next join
//! inside it is possible and comes earlier. So starting from the whole character changes neither the other
//! joins nor their order.
//!
//! This shortens the first phase of encoding for every script other than Latin: a CJK character of three
//! bytes starts as one part instead of three. Looking up a seed takes a few loads: one table entry for the
//! character and up to five for each of its two boundaries.

use super::Error;
use super::bits::{self, has, set};
use super::merges::Merge;
use super::table::{Table, Window, pair_index};
use crate::task::Stretches;
use crate::{Task, hash, memory};
use std::ops::Range;
use std::str;

/// The seeds of an orderly vocabulary.
pub(super) struct CharSeeds {
    /// For each character of the Basic Multilingual Plane: its token's index plus one if it is a seed;
    /// otherwise 0 or [`NOT`]. Empty if there are no seeds at all.
    tokens: Vec<u32>,
    /// One bit for each pair of bytes that are adjacent at a character boundary inside a token that is not
    /// valid UTF-8.
    pairs: Vec<u64>,
    /// The least index of all these tokens, indexed by a hash of one or two bytes on each side of such a
    /// boundary. An entry may be too small because of hash collisions, never too great.
    ragged: Vec<u32>,
}

/// No token.
const NONE: u32 = u32::MAX;

/// The character is not a seed.
const NOT: u32 = u32::MAX;

impl CharSeeds {
    /// 2^BITS entries. o200k_base has 736 different surroundings in its 1,562 tokens that are not valid
    /// UTF-8.
    const BITS: u32 = 13;

    /// No character is a seed: encoding starts from bytes.
    pub(super) const NONE: &Self = &Self { tokens: Vec::new(), pairs: Vec::new(), ragged: Vec::new() };

    /// Makes the tables from the tokens in the order of their indices, and their merges.
    pub(super) fn new<'a>(
        tokens: impl Iterator<Item = &'a [u8]>,
        merges: &[Merge],
        task: &Task<'_>,
    ) -> Result<Self, Error> {
        let mut seeds = Self {
            tokens: memory::filled(0, 1 << 16)?,
            pairs: memory::filled(0, bits::words(1 << 16))?,
            ragged: memory::filled(NONE, 1 << Self::BITS)?,
        };
        let mut stretches = Stretches::of_items(task);
        for ((index, token), merge) in (0_u32..).zip(tokens).zip(merges) {
            stretches.check(index as usize)?;
            match str::from_utf8(token) {
                Ok(text) => seeds.enter(index, text, merge),
                Err(_) => seeds.enter_ragged(index, token),
            }
        }
        Ok(seeds)
    }

    /// Tokens arrive in ascending order, so a character that first occurs in a longer token is not a seed.
    fn enter(&mut self, index: u32, token: &str, merge: &Merge) {
        let first = token.chars().next().map_or(0, char::len_utf8);
        let is_made = first == token.len() && merge.is_made();
        for character in token.chars().filter(|character| !character.is_ascii()) {
            if let Some(entry) = self.tokens.get_mut(character as usize)
                && *entry == 0
            {
                *entry = if is_made { index + 1 } else { NOT };
            }
        }
    }

    /// Tokens arrive in ascending order, so the first entry is the least.
    fn enter_ragged(&mut self, index: u32, token: &[u8]) {
        for boundary in (1..token.len()).filter(|&boundary| !continues(token[boundary])) {
            let mut sides = [0; 4];
            let (left, right) = (boundary.min(2), (token.len() - boundary).min(2));
            sides[2 - left..2 + right].copy_from_slice(&token[boundary - left..boundary + right]);
            set(&mut self.pairs, pair_index(sides[1], sides[2]));
            let least = &mut self.ragged[Self::hash(u32::from_le_bytes(sides), left, right)];
            *least = (*least).min(index);
        }
    }

    /// A hash of `left` bytes before and `right` bytes after a boundary.
    #[inline]
    fn hash(around: u32, left: usize, right: usize) -> usize {
        let kept = around & (u32::MAX << (16 - 8 * left)) & (u32::MAX >> (16 - 8 * right));
        hash::hash(kept, Self::BITS)
    }

    /// A lower bound on the index of a token that lies across `text[boundary]`, where there is text on both
    /// sides, and that ends or begins within a character. [`NONE`] if there is no such token, 0 if the
    /// boundary itself is within a character.
    #[inline]
    pub(super) fn least_ragged(&self, text: &[u8], boundary: usize) -> u32 {
        if continues(text[boundary]) {
            return 0;
        }
        if !has(&self.pairs, pair_index(text[boundary - 1], text[boundary])) {
            return NONE;
        }
        let around = match boundary {
            1 => Window::at(text, 0).first_four() << 8,
            _ => Window::at(text, boundary - 2).first_four(),
        };
        let least = |left, right| self.ragged[Self::hash(around, left, right)];
        least(2, 2).min(least(2, 1)).min(least(1, 1)).min(least(1, 2))
    }

    /// Divides the first `length` of these bytes into the parts from which their encoding starts; `offsets` gets the
    /// start of each, followed by `length`. Returns the number of parts; `None` if there are too many.
    #[inline]
    pub(super) fn divide<const MOST: usize, const OFFSETS: usize>(
        &self,
        table: &Table,
        bytes: &[u8],
        length: usize,
        tokens: &mut [u32; MOST],
        offsets: &mut [u8; OFFSETS],
    ) -> Option<usize> {
        let (mut offset, mut count) = (0, 0);
        // What `least_ragged` says about the boundary before the part, if that is known.
        let mut before = Some(NONE);
        while offset < length {
            if count == MOST {
                return None;
            }
            let byte = bytes[offset];
            let (own, token, behind) = match self.seed(bytes, offset..length, before) {
                Some(seed) => seed,
                None => (1, table.byte(byte), None),
            };
            (tokens[count], before) = (token, behind);
            (offset, count) = (offset + own, count + 1);
            offsets[count] = offset as u8;
        }
        Some(count)
    }

    /// The length and the token of the character at the beginning of `bytes[range]` if it can be a part at the start,
    /// and what [`least_ragged`](Self::least_ragged) says about the boundary behind it.
    #[inline]
    fn seed(
        &self,
        bytes: &[u8],
        range: Range<usize>,
        before: Option<u32>,
    ) -> Option<(usize, u32, Option<u32>)> {
        if bytes[range.start].is_ascii() {
            return None;
        }
        let (own, token) = self.at(bytes, range.start)?;
        let end = range.start + own;
        if end > range.end || token >= before.unwrap_or_else(|| self.least_ragged(bytes, range.start)) {
            return None;
        }
        let behind = if end == range.end { NONE } else { self.least_ragged(bytes, end) };
        (token < behind).then_some((own, token, Some(behind)))
    }

    /// The length and the token's index of the character at `text[at]`, which is not ASCII, if it is a seed.
    #[inline]
    pub(super) fn at(&self, text: &[u8], at: usize) -> Option<(usize, u32)> {
        let (character, length) = match text[at..] {
            [a @ 0xc2..0xe0, b, ..] if continues(b) => (low(a, 5) << 6 | low(b, 6), 2),
            [a @ 0xe0..0xf0, b, c, ..] if continues(b) && continues(c) => {
                (low(a, 4) << 12 | low(b, 6) << 6 | low(c, 6), 3)
            }
            _ => return None,
        };
        // An overlong encoding of three bytes is not a character.
        let is_shortest = length == 2 || character >= 0x800;
        let index = self.tokens.get(character).map_or(NOT, |index| index.wrapping_sub(1));
        (is_shortest && index < NOT - 1).then_some((length, index))
    }
}

/// The lowest `bits` bits of a byte.
#[inline]
fn low(byte: u8, bits: u32) -> usize {
    usize::from(byte) & ((1 << bits) - 1)
}

/// Whether the byte is a continuation byte of UTF-8.
#[inline]
fn continues(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::vocabulary::Vocabulary;

    /// The seeds of all bytes and these tokens.
    fn seeds(more: &[&[u8]]) -> CharSeeds {
        let bytes = (0..=255).map(|byte: u8| vec![byte]);
        let tokens: Vec<_> = bytes.chain(more.iter().map(|token| token.to_vec())).collect();
        let vocabulary = Vocabulary::new(tokens.iter().cloned().zip(0..), &Task::new()).unwrap();
        let merges = &vocabulary.backtracker.unwrap().merges;
        CharSeeds::new(tokens.iter().map(|token| &token[..]), merges, &Task::new()).unwrap()
    }

    #[test]
    fn a_character_is_an_seed_if_its_token_comes_before_all_that_have_it() {
        let e = "é".as_bytes();
        assert_eq!(seeds(&[e, b"\xc3\xa9a"]).at(e, 0), Some((2, 256)));
        assert_eq!(seeds(&[b"\xa9a", b"\xc3\xa9a", e]).at(e, 0), None, "its token comes too late");
        assert_eq!(seeds(&[]).at(e, 0), None, "it is no token");
        let two = seeds(&[b"\xe3\x81", "ぁ".as_bytes()]);
        assert_eq!(two.at("aぁ".as_bytes(), 1), Some((3, 257)));
        assert_eq!(two.at("aぁ".as_bytes(), 0), None, "ASCII");
        assert_eq!(two.at(b"\xe3\x81", 0), None, "cut off");
        assert_eq!(two.at(b"\xe3\x81a", 0), None, "not UTF-8");
    }

    #[test]
    fn there_may_be_none() {
        assert_eq!(CharSeeds::NONE.at("é".as_bytes(), 0), None);
        assert_eq!(CharSeeds::NONE.at("\u{ffff}".as_bytes(), 0), None);
    }

    #[test]
    fn two_spellings_of_a_number_are_not_the_same_character() {
        let seeds = seeds(&["é".as_bytes()]);
        assert_eq!(seeds.at(b"\xe0\x83\xa9", 0), None, "three bytes where two would do");
    }

    #[test]
    fn a_seam_is_ragged_where_a_token_stops_halfway() {
        let seeds = seeds(&["é".as_bytes(), b"a\xc3", b"\xa9b", b"xa\xc3", "éé".as_bytes()]);
        assert_eq!(seeds.least_ragged("aé".as_bytes(), 1), 257);
        assert_eq!(seeds.least_ragged("xaé".as_bytes(), 2), 257, "the least one");
        assert_eq!(seeds.least_ragged("éb".as_bytes(), 2), 258);
        assert_eq!(seeds.least_ragged("bé".as_bytes(), 1), NONE);
        assert_eq!(seeds.least_ragged("éa".as_bytes(), 2), NONE);
        assert_eq!(seeds.least_ragged("éé".as_bytes(), 2), NONE, "only whole characters");
        assert_eq!(seeds.least_ragged(b"\xc3\xa9\xa9", 2), 0, "not UTF-8");
    }
}
