//! Caches of an encoder: the tokens of short pieces, and which pairs of tokens may be neighbours.
//!
//! Both are direct-mapped: a key has one place, and a later key replaces it. So lookups and updates take
//! constant time, and the memory is bounded: 4 MB for pieces (64 KB until there are many), 64 KB for pairs. A
//! text made for collisions replaces entries, no more. They hold facts about the vocabulary only, so they change the time
//! of an answer, never the answer.
//!
//! A run takes a cache from the vocabulary's [`Pool`] and returns it afterwards. This is mutable state that
//! all threads and Ractors share; it is safe because only the run that took a cache uses it, and because no
//! thread ever waits for the pool's lock.

use super::gaps::Gaps;
use super::piece_key::PieceKey;
use crate::cpu;
use crate::pages::{Pages, prefetch};
use bytemuck::Zeroable;
use std::sync::{Mutex, TryLockError};

/// Working memory, with some 35 KB for gaps, and the two caches.
#[derive(Default)]
pub(super) struct Cache {
    pub(super) tokens: Vec<u32>,
    /// One bit for each position of the piece: the rest cannot be encoded from there (see `backtrack.rs`).
    pub(super) dead: Vec<u64>,
    pub(super) pieces: Pieces,
    pub(super) pairs: Pairs,
    pub(super) gaps: Gaps,
}

impl Cache {
    /// The capacity of working memory that is kept between runs; a piece of megabytes needs much more.
    const ROOM: usize = 1 << 12;
}

/// The caches that no run uses at the moment, each with the CPU that used it last. A run takes one and
/// returns it, so that there are never more caches than there were concurrent runs. A run prefers a cache
/// that its own CPU used last, because reading memory that another CPU wrote takes several times as long.
///
/// No run waits for the lock: a run that does not get it after a few attempts starts with an empty cache. So
/// this also works in the child of a fork that happened while another thread held the lock.
#[derive(Default)]
pub(super) struct Pool(Mutex<Vec<(usize, Cache)>>);

impl Pool {
    /// The most caches that are kept.
    const MOST: usize = 16;

    /// How often a run tries to take the lock, which is held for some 20 ns at a time.
    const TRIES: u32 = 100;

    pub(super) fn take(&self) -> Cache {
        let here = cpu::current();
        self.with(|kept| {
            let last = kept.len().checked_sub(1)?;
            let warm = kept.iter().rposition(|(processor, _)| *processor == here);
            Some(kept.swap_remove(warm.unwrap_or(last)).1)
        })
        .flatten()
        .unwrap_or_default()
    }

    pub(super) fn give_back(&self, mut cache: Cache) {
        cache.tokens.clear();
        cache.tokens.shrink_to(Cache::ROOM);
        cache.dead.clear();
        cache.dead.shrink_to(Cache::ROOM);
        cache.gaps.clear();
        self.with(|kept| {
            if kept.len() < Self::MOST {
                kept.push((cpu::current(), cache));
            }
        });
    }

    fn with<T>(&self, f: impl FnOnce(&mut Vec<(usize, Cache)>) -> T) -> Option<T> {
        for _ in 0..Self::TRIES {
            match self.0.try_lock() {
                Ok(mut kept) => return Some(f(&mut kept)),
                Err(TryLockError::Poisoned(poisoned)) => return Some(f(&mut poisoned.into_inner())),
                Err(TryLockError::WouldBlock) => std::hint::spin_loop(),
            }
        }
        None
    }
}

/// Hashes the words of a key. The upper bits are mixed best.
fn mix(words: &[u64]) -> u64 {
    words.iter().fold(0_u64, |hash, word| (hash.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// The tokens of short pieces that are not tokens themselves. Direct-mapped.
#[derive(Default)]
pub(super) struct Pieces {
    entries: Pages<Entry>,
    /// Entries written so far, until there are many.
    written: usize,
}

/// Key, tokens and number of tokens.
#[derive(Clone, Copy, Zeroable)]
#[repr(C, align(64))]
struct Entry([u64; 8]);

impl Pieces {
    /// The number of entries, all in all and at first.
    const LENGTH: usize = 1 << 16;
    const FIRST: usize = 1 << 10;
    /// The capacity of an entry, in tokens.
    const MOST: usize = 7;

    /// Where the entry of a key is. There is at least one entry.
    #[inline]
    fn index(&self, key: PieceKey) -> usize {
        self.index_of(key.words())
    }

    #[inline]
    fn index_of(&self, key: [u64; 4]) -> usize {
        (mix(&key) >> 40) as usize & (self.entries.len() - 1)
    }

    /// Has the processor fetch the entry of a key that will be recalled soon.
    #[inline]
    pub(super) fn expect(&self, key: PieceKey) {
        if !self.entries.is_empty() {
            prefetch(&self.entries[self.index(key)]);
        }
    }

    /// Whether the piece's tokens are cached.
    #[inline]
    pub(super) fn has(&self, key: PieceKey) -> bool {
        !self.entries.is_empty() && self.entries[self.index(key)].0[..4] == key.words()
    }

    /// Appends the piece's tokens and returns true if they are cached.
    #[inline]
    pub(super) fn recall(&self, key: PieceKey, out: &mut Vec<u32>) -> bool {
        if self.entries.is_empty() {
            return false;
        }
        let Entry(entry) = &self.entries[self.index(key)];
        if entry[..4] != key.words() {
            return false;
        }
        let halves: [u32; 8] = bytemuck::cast([entry[4], entry[5], entry[6], entry[7]]);
        out.extend_from_slice(&halves[..halves[Self::MOST] as usize]);
        true
    }

    pub(super) fn remember(&mut self, key: PieceKey, tokens: &[u32]) {
        if tokens.len() > Self::MOST {
            return;
        }
        self.make_room();
        if self.entries.is_empty() {
            return;
        }
        let mut halves = [0; 8];
        halves[..tokens.len()].copy_from_slice(tokens);
        halves[Self::MOST] = tokens.len() as u32;
        let packed: [u64; 4] = bytemuck::cast(halves);
        let index = self.index(key);
        let Entry(entry) = &mut self.entries[index];
        entry[..4].copy_from_slice(&key.words());
        entry[4..].copy_from_slice(&packed);
    }

    /// Makes room for the first entries, and later for all. Without memory for them it works with what it has.
    fn make_room(&mut self) {
        self.written += 1;
        if self.written == 1 {
            self.entries = Pages::zeroed(Self::FIRST).unwrap_or_default();
        } else if self.written == Self::FIRST / 2 {
            let few = std::mem::replace(&mut self.entries, Pages::zeroed(Self::LENGTH).unwrap_or_default());
            if self.entries.is_empty() {
                self.entries = few;
                return;
            }
            for entry in few.iter().filter(|entry| entry.0[3] != 0) {
                let [a, b, c, d, ..] = entry.0;
                let index = self.index_of([a, b, c, d]);
                self.entries[index] = *entry;
            }
        }
    }
}

/// Whether byte pair encoding keeps a pair of adjacent tokens as they are. Direct-mapped.
#[derive(Default)]
pub(super) struct Pairs {
    /// The pair, with the answer in the lowest bit and the highest bit set. Empty until the first pair is
    /// entered.
    entries: Vec<u64>,
}

impl Pairs {
    const BITS: u32 = 13;

    #[inline]
    fn key(left: u32, right: u32) -> u64 {
        1 << 63 | u64::from(left) << 32 | u64::from(right) << 1
    }

    #[inline]
    fn index(key: u64) -> usize {
        (mix(&[key]) >> (64 - Self::BITS)) as usize
    }

    #[inline]
    pub(super) fn recall(&self, left: u32, right: u32) -> Option<bool> {
        let key = Self::key(left, right);
        let entry = *self.entries.get(Self::index(key))?;
        (entry & !1 == key).then_some(entry & 1 == 1)
    }

    pub(super) fn remember(&mut self, left: u32, right: u32, fit: bool) {
        if self.entries.is_empty() {
            self.entries = vec![0; 1 << Self::BITS];
        }
        let key = Self::key(left, right);
        self.entries[Self::index(key)] = key | u64::from(fit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_is_recalled_as_it_was_remembered_until_another_takes_its_place() {
        let text: Vec<u8> = (0..=255).collect(); // so that no piece is there twice
        let mut pieces = Pieces::default();
        for length in 1..=31 {
            for at in 0..=text.len() - length {
                let key = PieceKey::new(&text, at, length).unwrap();
                let tokens: Vec<u32> = (0..at as u32 % 9).collect();
                pieces.remember(key, &tokens);
                let mut recalled = vec![];
                assert_eq!(pieces.recall(key, &mut recalled), tokens.len() <= Pieces::MOST);
                assert!(recalled.is_empty() || recalled == tokens);
            }
        }
        assert!(PieceKey::new(&text, 0, 32).is_none());
    }

    #[test]
    fn many_pieces_are_recalled_as_they_were_remembered_while_the_cache_grows() {
        let key = |number: u32| PieceKey::new(&number.to_le_bytes(), 0, 4).unwrap();
        let mut pieces = Pieces::default();
        for number in 0..3 * Pieces::LENGTH as u32 {
            pieces.expect(key(number));
            pieces.remember(key(number), &[number, 7]);
            let mut recalled = vec![];
            assert!(pieces.recall(key(number), &mut recalled));
            assert_eq!(recalled, [number, 7]);
        }
        assert_eq!(pieces.entries.len(), Pieces::LENGTH);
        let mut count = 0;
        for number in 0..4 * Pieces::LENGTH as u32 {
            let mut recalled = vec![];
            if pieces.recall(key(number), &mut recalled) {
                assert_eq!(recalled, [number, 7]);
                count += 1;
            }
        }
        assert!((Pieces::LENGTH / 2..=Pieces::LENGTH).contains(&count), "{count}");
    }

    #[test]
    fn a_pair_is_recalled_with_its_answer() {
        let mut pairs = Pairs::default();
        assert_eq!(pairs.recall(0, 0), None);
        for (left, right, fit) in [(0, 0, false), (0, 1, true), (199_997, 3, true), (3, 199_997, false)] {
            pairs.remember(left, right, fit);
            assert_eq!(pairs.recall(left, right), Some(fit));
        }
    }

    #[test]
    fn a_run_that_finds_the_pool_locked_goes_on_without() {
        let pool = Pool::default();
        let mut cache = pool.take();
        cache.pairs.remember(1, 2, true);
        pool.give_back(cache);
        let locked = pool.0.lock().unwrap();
        assert_eq!(pool.take().pairs.recall(1, 2), None);
        drop(locked);
        assert_eq!(pool.take().pairs.recall(1, 2), Some(true));
    }
}
