//! Byte pair encoding from left to right, in linear time.
//!
//! In an orderly vocabulary (see `merges.rs`) every token is the join of two tokens of lower rank. Such a
//! vocabulary has this property: a sequence of tokens is the result of byte pair encoding if and only if each
//! pair of adjacent tokens is the result for the text of just these two. (Consider the first join across a
//! boundary of the sequence. Until then, the two tokens at that boundary were joined exactly as they would
//! have been alone, so the join would have happened to them alone as well.)
//!
//! So a piece can be encoded from left to right: take the longest token that may follow the previous one; if
//! none does, drop the previous token and try a shorter one in its place. A token may follow another one if
//! no join across their boundary would have come before the joins that made them; [`Backtracker::fit`] finds
//! out by undoing these joins.
//!
//! # Example
//!
//! The vocabulary is `a b c`, then `bc`, then `ab`, in the order of the ranks; the text is `abc`.
//!
//! | tokens | longest at the end | may it follow? |
//! |---|---|---|
//! | | `ab` | yes, it is the first |
//! | `ab` | `c` | no: undoing `ab` gives `b` beside `c`, and `bc` ranks below `ab`, so it is joined first |
//! | | `a` | yes; `ab` was dropped, and position 2 is marked as dead |
//! | `a` | `bc` | yes: undoing `bc` gives `a` beside `b`, and `ab` ranks above `bc` |
//!
//! The result is `a bc`, as byte pair encoding gives it: it joins `bc` first.
//!
//! # Cost
//!
//! A position from which the rest cannot be encoded is marked as dead and never entered again. So each
//! position is entered at most once, and each length of a token is tried there at most once: the time is
//! linear in the length of the piece for a given vocabulary. Most attempts are settled before the exact test,
//! by four compact filters: the lengths that occur after four given bytes
//! ([`Lengths`]), the tokens that are never made, the least rank of any token across a boundary
//! (`boundary_ranks.rs`), and a memo of pairs (`cache.rs`).
//!
//! # Prior art
//!
//! GitHub's crate [`bpe`](https://github.com/github/rust-gems/tree/main/crates/bpe) uses the same theorem,
//! with an Aho-Corasick automaton for the longest token and a map of pairs. tiktoken uses the plain
//! algorithm: `_byte_pair_merge` searches all pairs for the lowest rank before each join, which takes
//! quadratic time.

use super::Error;
use super::bits;
use super::boundary_ranks::BoundaryRanks;
use super::cache::{Cache, Pairs};
use super::char_seeds::CharSeeds;
use super::joins::Joins;
use super::merges::Merge;
use super::strings::Strings;
use super::table::{Table, Window};
use crate::memory::{self, OutOfMemory};
use crate::task::Stretches;
use crate::{Task, hash};
use once_cell::race::OnceBox;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

/// What is needed for encoding with an orderly vocabulary, besides the table of tokens.
///
/// All but the merges is made at its first use, because making it takes longer than encoding a short text. Two threads
/// that use it first at the same time both make it, so that none waits for another: the child of a fork would wait
/// forever.
pub(super) struct Backtracker {
    pub(super) merges: Vec<Merge>,
    filters: OnceBox<Filters>,
    seeds: OnceBox<CharSeeds>,
    joins: OnceBox<Option<Joins>>,
    /// How many pieces were encoded without the seeds.
    without_seeds: AtomicU32,
}

/// What settles most attempts of encoding from left to right.
struct Filters {
    /// One bit for each token that byte pair encoding never makes: compact, because it is read at every
    /// lookup.
    never: Vec<u64>,
    lengths: Lengths,
    boundary_ranks: BoundaryRanks,
}

/// The number of steps between two checks of the task; fewer if a step may look up many long tokens.
const STRETCH: usize = 2048;

/// This many pieces are encoded without seeds first, which takes about as long as making the seeds.
const WITHOUT_SEEDS: u32 = 1 << 12;

/// For a vocabulary of fewer tokens the seeds are made at once.
const FEW: usize = 1 << 12;

impl Filters {
    fn new<'a>(
        tokens: impl Iterator<Item = &'a [u8]> + Clone,
        merges: &[Merge],
        task: &Task<'_>,
    ) -> Result<Self, Error> {
        let mut never = memory::filled(0, bits::words(merges.len()))?;
        for (index, _) in merges.iter().enumerate().filter(|(_, merge)| !merge.is_made()) {
            bits::set(&mut never, index);
        }
        let lengths = Lengths::new(tokens.clone(), task)?;
        Ok(Self { never, lengths, boundary_ranks: BoundaryRanks::new(tokens, task)? })
    }

    fn is_made(&self, index: u32) -> bool {
        !bits::has(&self.never, index as usize)
    }

    /// The longest token at the beginning of `text[at..]` that has at most `limit` bytes, and its length.
    fn longest(&self, table: &Table, text: &[u8], at: usize, limit: usize) -> Option<(u32, usize)> {
        let window = Window::at(text, at);
        let token = |length: usize| {
            let index = table.get_in(window, text, at, length)?;
            self.is_made(index).then_some((index, length))
        };
        self.lengths.of(window, limit).find_map(token)
    }
}

impl Backtracker {
    pub(super) fn new(merges: Vec<Merge>) -> Self {
        let (filters, seeds, joins) = (OnceBox::new(), OnceBox::new(), OnceBox::new());
        Self { merges, filters, seeds, joins, without_seeds: AtomicU32::new(0) }
    }

    /// The bytes of the tokens that have a merge, which come first.
    fn with_merges<'a>(&self, tokens: &'a Strings) -> impl Iterator<Item = &'a [u8]> + Clone {
        tokens.iter().take(self.merges.len())
    }

    fn filters(&self, tokens: &Strings, task: &Task<'_>) -> Result<&Filters, Error> {
        let make = || Filters::new(self.with_merges(tokens), &self.merges, task).map(Box::new);
        self.filters.get_or_try_init(make)
    }

    /// The characters that encoding may start from.
    pub(super) fn seeds(&self, tokens: &Strings, task: &Task<'_>) -> Result<&CharSeeds, Error> {
        let make = || CharSeeds::new(self.with_merges(tokens), &self.merges, task).map(Box::new);
        self.seeds.get_or_try_init(make)
    }

    /// The same, or none until it pays to make them.
    #[inline]
    pub(super) fn seeds_if_worthwhile(&self, tokens: &Strings, task: &Task<'_>) -> Result<&CharSeeds, Error> {
        match self.seeds.get() {
            Some(seeds) => Ok(seeds),
            None => self.seeds_or_none(tokens, task),
        }
    }

    #[cold]
    fn seeds_or_none(&self, tokens: &Strings, task: &Task<'_>) -> Result<&CharSeeds, Error> {
        if tokens.len() >= FEW && self.without_seeds.fetch_add(1, Ordering::Relaxed) < WITHOUT_SEEDS {
            return Ok(CharSeeds::NONE);
        }
        self.seeds(tokens, task)
    }

    /// The token that two neighbours make, by their numbers; `None` if there is no such table.
    pub(super) fn joins(&self, task: &Task<'_>) -> Result<Option<&Joins>, Error> {
        let made = self.joins.get_or_try_init(|| Joins::new(&self.merges, task).map(Box::new));
        made.map(Option::as_ref)
    }

    /// The tokens of `text[piece]`, which is not empty. `strings` are the bytes of all tokens.
    pub(super) fn encode<'s>(
        &self,
        table: &Table,
        strings: &Strings,
        text: &[u8],
        piece: Range<usize>,
        cache: &'s mut Cache,
        task: &Task<'_>,
    ) -> Result<&'s [u32], Error> {
        let filters = self.filters(strings, task)?;
        let Range { start, end } = piece;
        let Cache { tokens, dead, pairs, .. } = cache;
        tokens.clear();
        dead.clear();
        memory::reserve(dead, bits::words(end - start + 1))?;
        dead.resize(bits::words(end - start + 1), 0);
        let (mut at, mut limit) = (start, end - start);
        let stretch = (STRETCH / (1 + filters.lengths.sum / STRETCH)).max(1);
        for step in 1.. {
            if step % stretch == 0 {
                task.check()?;
            }
            if let Some((token, length)) = filters.longest(table, text, at, limit) {
                let next = at + length;
                if bits::has(dead, next - start)
                    || tokens
                        .last()
                        .is_some_and(|last| !self.may_follow(filters, table, text, at, [*last, token], pairs))
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

    /// As [`fit`](Self::fit), which is called only if `boundary_ranks` and `pairs` do not have the answer.
    fn may_follow(
        &self,
        filters: &Filters,
        table: &Table,
        text: &[u8],
        boundary: usize,
        [left, right]: [u32; 2],
        pairs: &mut Pairs,
    ) -> bool {
        let least = filters.boundary_ranks.least(text, boundary);
        if least == u32::MAX {
            return true;
        }
        pairs.recall(left, right).unwrap_or_else(|| {
            let fit = self.fit(table, text, boundary, left, right, least);
            pairs.remember(left, right, fit);
            fit
        })
    }

    /// Whether byte pair encoding of the text of the two tokens, which meet at `boundary`, gives these two
    /// tokens.
    ///
    /// Undoes the joins that make them, the latest first. The parts that are then on both sides of the
    /// boundary were neighbours at some time, and they must not form a token of lower rank than the join that
    /// was undone last. Stops when that rank is not above `least`, the least rank of any token across this
    /// boundary.
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
                // Of two joins of equal rank, the left one comes first.
                limit = y + 1;
                y = right.left;
            } else {
                break;
            }
        }
        true
    }
}

/// The lengths of the tokens that may begin with given bytes.
struct Lengths {
    /// Indexed by a hash of the first four bytes. Bit n stands for the length n, the last bit for all lengths
    /// from [`GREAT`] on. Because of hash collisions a set may have additional lengths; it never lacks one.
    sets: Vec<u32>,
    /// The lengths from [`GREAT`] on that occur in the vocabulary, in descending order.
    great: Vec<usize>,
    /// All of these together: the bytes that are hashed at most to find the longest token.
    sum: usize,
}

/// The first length that has no bit of its own.
const GREAT: usize = 31;

impl Lengths {
    const BITS: u32 = 16;

    fn new<'a>(tokens: impl Iterator<Item = &'a [u8]> + Clone, task: &Task<'_>) -> Result<Self, Error> {
        let mut sets = memory::filled(0, 1 << Self::BITS)?;
        let great = tokens.clone().map(<[u8]>::len).filter(|&length| length >= GREAT);
        let mut great = memory::collected::<_, OutOfMemory>(great.map(Ok))?;
        great.sort_unstable_by(|a, b| b.cmp(a));
        great.dedup();
        let mut stretches = Stretches::of_items(task);
        for (number, token) in tokens.filter(|token| token.len() >= 4).enumerate() {
            stretches.check(number)?;
            sets[Self::hash(Window::at(token, 0))] |= 1 << token.len().min(GREAT);
        }
        let sum = great.iter().sum();
        Ok(Self { sets, great, sum })
    }

    fn hash(window: Window) -> usize {
        hash::hash(window.first_four(), Self::BITS)
    }

    /// The lengths up to `limit` in descending order.
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
