//! A hash table for keys of one or two words, compact because lookups are bound by cache misses.
//!
//! It uses *quotienting* (Knuth, The Art of Computer Programming, 6.4, exercise 13; Cleary, "Compact Hash
//! Tables Using Bidirectional Linear Probing", 1984). The hash function can be inverted, so a hash stands for
//! its key; and the upper bits of the hash are implied by the slot in which the entry lies. Only the lower
//! bits are stored, together with the entry's number and its distance from its home slot. (For keys of two
//! words, the second word is stored as well; with it, the hash can be inverted.) A slot takes 8 bytes for
//! keys of up to 7 bytes, 16 for keys of up to 15 bytes.
//!
//! Collisions are resolved by linear probing over at most [`REACH`] slots. Of keys that share slots, the one
//! entered first is found first; tokens are entered in the order of their ranks, so the frequent ones rarely
//! need probing. A bitmap with 8 bits per slot, indexed by a few more bits of the hash, rejects most keys
//! that are absent before a slot is read.
//!
//! The hash function has no secret, so a vocabulary can be made in which many keys share a home slot. Entries
//! that find no slot within reach go to a sorted list, which is searched in logarithmic time. So a lookup
//! takes O(log n) at worst, and for the public vocabularies mostly one cache miss.
//!
//! `hashbrown` with the same keys and a multiplicative hash function stores 16 or 24 bytes per entry and a
//! control byte. With it, encoding takes 1.9 times as long for prose, 2.0 times for code and 1.1 to 1.5
//! times for a mix of languages (cl100k_base and o200k_base, 2 cores, 2026-11).

use super::{Error, bits};
use crate::pages::{Pages, prefetch};
use crate::task::Stretches;
use crate::{Task, memory};
use bytemuck::Zeroable;
use std::array;

/// Odd constants with evenly spread bits, from e and the square root of 3. With these, the public
/// vocabularies fit into the smallest tables.
const SPREAD: [u64; 2] = [0xb7e1_5162_8aed_2a6b, 0xbb67_ae85_84ca_a73b];

/// The most slots that a probe sequence has.
const REACH: usize = 32;

/// A table may be up to 2^LARGER times the smallest size, if otherwise some entries find no slot within
/// reach. The public vocabularies need at most a factor of 2.
const LARGER: u32 = 2;

/// The number of entries whose slots are fetched before the first of them is entered, so that the fetches overlap.
const AHEAD: usize = 16;

/// The filter has 2^FINER bits per slot.
const FINER: u32 = 3;

/// A key, and how an entry encodes it.
pub(super) trait Key: Copy + Ord {
    /// The type of an entry.
    type Slot: Copy + Default + Zeroable;

    fn hash(self) -> u64;

    /// The entry for this key in a table of 2^`bits` slots, with its lowest `bits` bits, the number, left
    /// zero.
    fn slot(self, bits: u32, distance: usize) -> Self::Slot;

    fn with_number(slot: Self::Slot, number: u64) -> Self::Slot;

    /// The number in `slot` if the rest of it equals `wanted`; otherwise a value beyond all numbers.
    fn number(slot: Self::Slot, wanted: Self::Slot) -> u64;
}

/// 1 to 7 bytes in the upper bytes of a word, and the length in the upper bits of the lowest byte.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ShortKey(u64);

impl ShortKey {
    #[inline]
    pub(super) fn new(word: u64, length: usize) -> Self {
        Self(word << (64 - 8 * length) | (length as u64) << 5)
    }
}

impl Key for ShortKey {
    type Slot = u64;

    #[inline]
    fn hash(self) -> u64 {
        self.0.wrapping_mul(SPREAD[0])
    }

    /// The lowest five bits of the hash are zero and leave room for the distance.
    #[inline]
    fn slot(self, bits: u32, distance: usize) -> u64 {
        self.hash() << bits | (distance as u64) << bits
    }

    fn with_number(slot: u64, number: u64) -> u64 {
        slot | number
    }

    #[inline]
    fn number(slot: u64, wanted: u64) -> u64 {
        slot ^ wanted
    }
}

/// 8 to 15 bytes: 8 in the first word and the rest in the second, whose top byte holds five zeros and the
/// number of bytes in the rest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct MediumKey([u64; 2]);

impl MediumKey {
    #[inline]
    pub(super) fn new(words: [u64; 2], length: usize) -> Self {
        let more = length - 8;
        Self([words[0], words[1] & ((1 << (8 * more)) - 1) | (more as u64) << 56])
    }
}

impl Key for MediumKey {
    type Slot = [u64; 2];

    /// With the second word, the hash determines the first.
    #[inline]
    fn hash(self) -> u64 {
        self.0[0].wrapping_mul(SPREAD[0]).wrapping_add(self.0[1].wrapping_mul(SPREAD[1]))
    }

    #[inline]
    fn slot(self, bits: u32, distance: usize) -> [u64; 2] {
        [self.hash() << bits, self.0[1] | (distance as u64) << 59]
    }

    fn with_number([rest, second]: [u64; 2], number: u64) -> [u64; 2] {
        [rest | number, second]
    }

    #[inline]
    fn number(slot: [u64; 2], wanted: [u64; 2]) -> u64 {
        (slot[0] ^ wanted[0]) | u64::from(slot[1] != wanted[1]) << 63
    }
}

/// Maps keys to numbers.
pub(super) struct CompactMap<K: Key> {
    slots: Pages<K::Slot>,
    bits: u32,
    /// One bit for each value of the hash's upper `bits + FINER` bits. It is compact enough to stay in the
    /// caches and rejects most absent keys without a look at the slots.
    filter: Box<[u64]>,
    /// An upper bound on all numbers, exclusive.
    limit: u64,
    /// The entries that found no slot within reach, sorted by key.
    apart: Vec<(K, u32)>,
}

impl<K: Key> CompactMap<K> {
    /// Makes a table of the entries, of which there are `count`, and whose numbers are all below `limit`.
    pub(super) fn new(
        entries: impl Iterator<Item = (K, u32)> + Clone,
        count: usize,
        limit: u32,
        task: &Task<'_>,
    ) -> Result<Self, Error> {
        let room = (3 * count / 2).next_power_of_two().trailing_zeros();
        // Numbers are stored plus one; 0 marks an empty slot.
        let bits = room.max(u32::BITS - limit.leading_zeros());
        for bits in bits..=bits + LARGER {
            let table = Self::with_bits(entries.clone(), bits, limit, task)?;
            if table.apart.is_empty() {
                return Ok(table);
            }
        }
        Self::with_bits(entries, bits, limit, task)
    }

    fn with_bits(
        entries: impl Iterator<Item = (K, u32)>,
        bits: u32,
        limit: u32,
        task: &Task<'_>,
    ) -> Result<Self, Error> {
        let slots = Pages::zeroed(1 << bits)?;
        let filter = memory::filled(0, bits::words(1 << (bits + FINER)))?.into_boxed_slice();
        let mut table = Self { slots, bits, filter, limit: limit.into(), apart: Vec::new() };
        let (mut stretches, mut entered, mut entries) = (Stretches::of_items(task), 0, entries.fuse());
        loop {
            let some: [_; AHEAD] = array::from_fn(|_| entries.next());
            if some[0].is_none() {
                break;
            }
            some.iter().flatten().for_each(|&(key, _)| table.expect(key));
            for (key, number) in some.into_iter().flatten() {
                if !table.insert(key, number) {
                    memory::push(&mut table.apart, (key, number))?;
                }
            }
            entered += AHEAD;
            stretches.check(entered)?;
        }
        table.apart.sort_unstable();
        Ok(table)
    }

    /// Has the processor fetch what [`insert`](Self::insert) reads.
    #[inline]
    fn expect(&self, key: K) {
        prefetch(&self.slots[self.index(key, 0)]);
    }

    /// Enters a key; false if no slot within reach is free.
    fn insert(&mut self, key: K, number: u32) -> bool {
        let index = self.filter_index(key);
        bits::set(&mut self.filter, index);
        let free = |distance: &usize| self.is_free(self.slots[self.index(key, *distance)]);
        let Some(distance) = (0..REACH).find(free) else { return false };
        let slot = K::with_number(key.slot(self.bits, distance), u64::from(number) + 1);
        let index = self.index(key, distance);
        self.slots[index] = slot;
        true
    }

    #[inline]
    fn index(&self, key: K, distance: usize) -> usize {
        ((key.hash() >> (64 - self.bits)) as usize + distance) & (self.slots.len() - 1)
    }

    #[inline]
    fn filter_index(&self, key: K) -> usize {
        (key.hash() >> (64 - self.bits - FINER)) as usize
    }

    #[inline]
    fn is_free(&self, slot: K::Slot) -> bool {
        K::number(slot, K::Slot::default()) & ((1 << self.bits) - 1) == 0
    }

    #[inline]
    pub(super) fn get(&self, key: K) -> Option<u32> {
        if !bits::has(&self.filter, self.filter_index(key)) {
            return None;
        }
        self.seen(self.glance(key)).or_else(|| self.get_behind(key))
    }

    /// The number of an entry that is not in its home slot.
    #[inline(never)]
    fn get_behind(&self, key: K) -> Option<u32> {
        for distance in 1..REACH {
            let slot = self.slots[self.index(key, distance)];
            let number = self.seen(K::number(slot, key.slot(self.bits, distance)));
            if number.is_some() || self.is_free(slot) {
                return number;
            }
        }
        self.get_apart(key)
    }

    #[cold]
    #[inline(never)]
    fn get_apart(&self, key: K) -> Option<u32> {
        let index = self.apart.binary_search_by_key(&key, |&(key, _)| key).ok()?;
        Some(self.apart[index].1)
    }

    /// Reads the home slot of `key`; [`CompactMap::seen`] interprets the result.
    #[inline]
    pub(super) fn glance(&self, key: K) -> u64 {
        K::number(self.slots[self.index(key, 0)], key.slot(self.bits, 0))
    }

    /// The number of the entry, if the home slot held it.
    #[inline]
    pub(super) fn seen(&self, glance: u64) -> Option<u32> {
        let number = glance.wrapping_sub(1);
        (number < self.limit).then_some(number as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The inverse of `SPREAD[0]` modulo 2^64.
    fn inverse() -> u64 {
        (0..6).fold(1_u64, |inverse, _| {
            inverse.wrapping_mul(2_u64.wrapping_sub(SPREAD[0].wrapping_mul(inverse)))
        })
    }

    fn short(bytes: &[u8]) -> ShortKey {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        ShortKey::new(u64::from_le_bytes(word), bytes.len())
    }

    /// Different tokens of seven bytes, whose hashes begin with the same 40 bits.
    pub(super) fn colliding(count: usize) -> Vec<[u8; 7]> {
        // Of the lowest eight bits of a key seven tell the length; of those of the hash they alone decide.
        let lowest = (7_u64 << 5).wrapping_mul(SPREAD[0]) & 0xff;
        let keys =
            (0..1 << 16).map(|n: u64| (0x5ea5_1de5_0000_0000 | n << 8 | lowest).wrapping_mul(inverse()));
        keys.filter(|key| key & 0xff == 7 << 5)
            .map(|key| key.to_le_bytes()[1..].try_into().unwrap())
            .take(count)
            .collect()
    }

    #[test]
    fn keys_of_one_place_take_no_more_room_than_others() {
        let tokens = colliding(5000);
        assert_eq!(tokens.len(), 5000);
        let keys = tokens.iter().map(|token| short(token));
        let table = CompactMap::new(keys.clone().zip(0..), 5000, 5000, &Task::new()).unwrap();
        assert!(table.slots.len() <= 1 << 13, "{}", table.slots.len());
        assert!(keys.clone().zip(0..).all(|(key, number)| table.get(key) == Some(number)));
        assert_eq!(table.get(short(b"another")), None);
        let fewer = CompactMap::new(keys.clone().zip(0..).step_by(2), 2500, 5000, &Task::new()).unwrap();
        let found = keys.map(|key| fewer.get(key));
        assert!(found.zip(0..).all(|(found, number)| found == (number % 2 == 0).then_some(number)));
    }

    #[test]
    fn usual_keys_all_find_room_near_their_places() {
        let keys = (0_u32..100_000).map(|n| short(format!("{n:x}").as_bytes()));
        let table = CompactMap::new(keys.clone().zip(0..), 100_000, 100_000, &Task::new()).unwrap();
        assert!(table.apart.is_empty());
        assert!(keys.zip(0..).all(|(key, number)| table.get(key) == Some(number)));
    }
}
