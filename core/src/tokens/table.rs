//! Finds a token by its bytes.
//!
//! Most pieces of text are short. Tokens of up to 7 and of 8 to 15 bytes have their bytes and length packed
//! into one or two words, which are the keys of two [`CompactMap`]s; only tokens of [`LONG`] bytes and more
//! are compared as slices, in an ordinary hash map. Tokens of one and two bytes are also in arrays, which
//! need no hash. A lookup takes constant time, mostly one cache miss.

use super::Error;
use super::compact_map::{CompactMap, MediumKey, ShortKey};
use super::strings::Strings;
use crate::Task;
use crate::memory::{self, OutOfMemory};
use crate::task::Stretches;
use foldhash::{HashMap, HashMapExt};
use std::ops::Range;

/// Tokens of this length and more do not fit into two words.
const LONG: usize = 16;

/// Tokens by their bytes. A token is known by its index in the order of the ranks.
pub(super) struct Table {
    /// Up to 7 bytes.
    short: CompactMap<ShortKey>,
    /// 8 to 15 bytes.
    medium: CompactMap<MediumKey>,
    /// The hash function has a secret: no vocabulary can be made so that many tokens have the same hash. That of the
    /// standard library would make the encoding of long words in many scripts take three times as long.
    long: HashMap<Box<[u8]>, u32>,
    /// The number of tokens, and the length of the longest one.
    count: u32,
    longest: usize,
    /// Tokens of one and of two bytes once more, for the first lookups of byte pair encoding. [`NONE`] if
    /// there is no token.
    bytes: Box<[u32; 1 << 8]>,
    pairs: Box<[u32]>,
}

/// No token.
const NONE: u32 = u32::MAX;

impl Table {
    /// Makes the table of the tokens, which are in the order of their ranks.
    pub(super) fn new(tokens: &Strings, task: &Task<'_>) -> Result<Self, Error> {
        let placed = || (0..).zip(tokens.spans());
        let of_length =
            |from: usize, to: usize| placed().filter(move |(_, span)| (from..to).contains(&span.len()));
        let window = |span: &Range<usize>| Window::at(tokens.bytes(), span.start);
        let short = of_length(1, 8).map(|(index, span)| (window(&span).short(span.len()), index));
        let medium = of_length(8, LONG).map(|(index, span)| (window(&span).medium(span.len()), index));
        let mut bytes = Box::new([NONE; 1 << 8]);
        let mut pairs = vec![NONE; 1 << 16].into_boxed_slice();
        let (mut shorts, mut mediums, mut longs, mut longest) = (0, 0, 0, 0);
        for (index, span) in placed() {
            longest = longest.max(span.len());
            *match span.len() {
                0..8 => &mut shorts,
                8..LONG => &mut mediums,
                _ => &mut longs,
            } += 1;
            match tokens.bytes()[span] {
                [byte] => bytes[usize::from(byte)] = index,
                [left, right] => pairs[pair_index(left, right)] = index,
                _ => {}
            }
        }
        let mut long = HashMap::new();
        long.try_reserve(longs).map_err(OutOfMemory::from)?;
        let mut stretches = Stretches::of_items(task);
        for (number, (index, span)) in of_length(LONG, usize::MAX).enumerate() {
            stretches.check(number)?;
            long.insert(memory::copied(&tokens.bytes()[span])?.into_boxed_slice(), index);
        }
        let count = tokens.len() as u32;
        let (short, medium) =
            (CompactMap::new(short, shorts, count, task)?, CompactMap::new(medium, mediums, count, task)?);
        Ok(Self { short, medium, long, count, longest, bytes, pairs })
    }

    /// The number of tokens. They have the indices below it.
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// The index of the token of one byte, which must exist.
    #[inline]
    pub(super) fn byte(&self, byte: u8) -> u32 {
        self.bytes[usize::from(byte)]
    }

    /// The index of the token of two bytes.
    #[inline]
    pub(super) fn pair(&self, left: u8, right: u8) -> Option<u32> {
        Some(self.pairs[pair_index(left, right)]).filter(|&index| index != NONE)
    }

    /// The index of the token `text[at..at + length]`.
    #[inline]
    pub(super) fn get(&self, text: &[u8], at: usize, length: usize) -> Option<u32> {
        self.get_in(Window::at(text, at), text, at, length)
    }

    /// The same, if the window at `at` has been read already.
    #[inline]
    pub(super) fn get_in(&self, window: Window, text: &[u8], at: usize, length: usize) -> Option<u32> {
        match length {
            1..8 => self.short.get(window.short(length)),
            8..LONG => self.medium.get(window.medium(length)),
            _ => self.get_long(text, at, length),
        }
    }

    /// Not inlined, so that the callers need no stack frame for it.
    #[inline(never)]
    fn get_long(&self, text: &[u8], at: usize, length: usize) -> Option<u32> {
        if length > self.longest {
            return None;
        }
        self.long.get(&text[at..at + length]).copied()
    }

    /// Reads the home slot of the token `text[at..at + length]`; [`Table::seen`] interprets the result later.
    #[inline]
    pub(super) fn glance(&self, text: &[u8], at: usize, length: usize) -> u64 {
        let window = Window::at(text, at);
        match length {
            1..8 => self.short.glance(window.short(length)),
            8..LONG => self.medium.glance(window.medium(length)),
            _ => 0,
        }
    }

    /// The index of the token, if the home slot held it.
    #[inline]
    pub(super) fn seen(&self, glance: u64) -> Option<u32> {
        self.short.seen(glance)
    }

    /// What [`Table::seen`] takes for this index.
    pub(super) fn as_seen(index: u32) -> u64 {
        u64::from(index) + 1
    }
}

/// The index of a pair of bytes in a table of all pairs.
#[inline]
pub(super) fn pair_index(left: u8, right: u8) -> usize {
    usize::from(left) << 8 | usize::from(right)
}

/// Sixteen bytes of a text, padded with zeros at its end.
#[derive(Clone, Copy)]
pub(super) struct Window([u64; 2]);

impl Window {
    /// Bytes.
    pub(super) const SIZE: usize = 16;

    #[inline]
    pub(super) fn at(text: &[u8], at: usize) -> Self {
        // In a loop, one comparison a window: the length does not change, and the rest follows from it.
        if text.len() >= Self::SIZE
            && at <= text.len() - Self::SIZE
            && let Some(bytes) = text[at..].first_chunk()
        {
            Self::from_bytes(bytes)
        } else {
            Self::at_end(&text[at..])
        }
    }

    #[cold]
    fn at_end(rest: &[u8]) -> Self {
        let mut bytes = [0; Self::SIZE];
        bytes[..rest.len()].copy_from_slice(rest);
        Self::from_bytes(&bytes)
    }

    #[inline]
    fn from_bytes(bytes: &[u8; Self::SIZE]) -> Self {
        let both = u128::from_le_bytes(*bytes);
        Self([both as u64, (both >> 64) as u64])
    }

    #[inline]
    pub(super) fn words(self) -> [u64; 2] {
        self.0
    }

    #[inline]
    pub(super) fn first_four(self) -> u32 {
        self.0[0] as u32
    }

    /// The first `length` bytes, 1 to 7.
    #[inline]
    fn short(self, length: usize) -> ShortKey {
        ShortKey::new(self.0[0], length)
    }

    /// The first `length` bytes, 8 to 15.
    #[inline]
    fn medium(self, length: usize) -> MediumKey {
        MediumKey::new(self.0, length)
    }
}
