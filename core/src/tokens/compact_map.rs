//! A hash table of keys of one or two words, compact, because lookups are bound by cache misses.
//!
//! The hash of a key can be undone, and where an entry stands tells the upper bits of the hash, so only the lower ones
//! are stored, together with the distance to where the entry belongs. What is entered first is found first.
//!
//! The hash has no secret, so that a vocabulary can be made in which many keys belong to the same place. What finds no
//! room near its place is kept apart, in order: looked for in a time that grows with the logarithm of how many there are.

use super::bits;
use crate::memory::{self, OutOfMemory};

/// Odd, with evenly spread bits: e and the square root of 3. With these the public vocabularies fit into the least room.
const SPREAD: [u64; 2] = [0xb7e1_5162_8aed_2a6b, 0xbb67_ae85_84ca_a73b];

/// An entry stands less than this far behind where it belongs.
const REACH: usize = 32;

/// A table is made up to 2^LARGER times as large as it should be, so that all entries find room near their places. The public
/// vocabularies need no more than half of that.
const LARGER: u32 = 2;

/// The filter has 2^FINER bits for each slot.
const FINER: u32 = 3;

/// A key, and how it is stored.
pub(super) trait Key: Copy + Ord {
    /// What an entry takes.
    type Slot: Copy + Default;

    fn hash(self) -> u64;

    /// The entry of this key without its number, the lowest `bits` bits, in a table of 2^`bits` slots.
    fn slot(self, bits: u32, distance: usize) -> Self::Slot;

    fn with_number(slot: Self::Slot, number: u64) -> Self::Slot;

    /// The number of the entry `slot` if that is `wanted` but for the number; a greater one if not.
    fn number(slot: Self::Slot, wanted: Self::Slot) -> u64;
}

/// 1 to 7 bytes, in the upper bytes of the word; their number in the lowest byte, in its upper bits.
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

    /// The lowest five bits of the hash are zero and make room for the distance.
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

/// 8 to 15 bytes: 8 in the first word, the others in the second, their number and five zeros in its upper byte.
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

    /// Together with the second word it tells the first.
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

/// Numbers by their keys.
pub(super) struct CompactMap<K: Key> {
    slots: Box<[K::Slot]>,
    bits: u32,
    /// One bit for each of the keys' upper `bits + FINER` bits of the hash: small enough to stay near the processor,
    /// it tells most keys that are not there without a look at the slots.
    filter: Box<[u64]>,
    /// All numbers are below this.
    limit: u64,
    /// The entries that found no room near their places, by key.
    apart: Vec<(K, u32)>,
}

impl<K: Key> CompactMap<K> {
    /// The table of the entries, whose numbers are all below `limit`.
    pub(super) fn new(
        entries: impl Iterator<Item = (K, u32)> + Clone,
        limit: u32,
    ) -> Result<Self, OutOfMemory> {
        let room = (3 * entries.clone().count() / 2).next_power_of_two().trailing_zeros();
        // Numbers are stored from 1 on; 0 stands for no entry.
        let bits = room.max(u32::BITS - limit.leading_zeros());
        for bits in bits..=bits + LARGER {
            let table = Self::with_bits(entries.clone(), bits, limit)?;
            if table.apart.is_empty() {
                return Ok(table);
            }
        }
        Self::with_bits(entries, bits, limit)
    }

    fn with_bits(
        entries: impl Iterator<Item = (K, u32)>,
        bits: u32,
        limit: u32,
    ) -> Result<Self, OutOfMemory> {
        let slots = memory::filled(K::Slot::default(), 1 << bits)?.into_boxed_slice();
        let filter = memory::filled(0, bits::words(1 << (bits + FINER)))?.into_boxed_slice();
        let mut table = Self { slots, bits, filter, limit: limit.into(), apart: Vec::new() };
        for (key, number) in entries {
            if !table.insert(key, number) {
                memory::push(&mut table.apart, (key, number))?;
            }
        }
        table.apart.sort_unstable();
        Ok(table)
    }

    /// Whether there is room near the key's place.
    fn insert(&mut self, key: K, number: u32) -> bool {
        let index = self.filter_index(key);
        bits::set(&mut self.filter, index);
        let free = |distance: &usize| self.is_free(self.slots[self.index(key, *distance)]);
        let Some(distance) = (0..REACH).find(free) else { return false };
        let slot = K::with_number(key.slot(self.bits, distance), u64::from(number) + 1);
        self.slots[self.index(key, distance)] = slot;
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

    /// The number of the entry, which is not where it belongs.
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

    /// What stands where `key` belongs, for [`CompactMap::seen`].
    #[inline]
    pub(super) fn glance(&self, key: K) -> u64 {
        K::number(self.slots[self.index(key, 0)], key.slot(self.bits, 0))
    }

    /// The number of the entry if the glance has shown it.
    #[inline]
    pub(super) fn seen(&self, glance: u64) -> Option<u32> {
        let number = glance.wrapping_sub(1);
        (number < self.limit).then_some(number as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `SPREAD[0]` is multiplied with to give 1, modulo 2^64.
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
        let table = CompactMap::new(keys.clone().zip(0..), 5000).unwrap();
        assert!(table.slots.len() <= 1 << 13, "{}", table.slots.len());
        assert!(keys.clone().zip(0..).all(|(key, number)| table.get(key) == Some(number)));
        assert_eq!(table.get(short(b"another")), None);
        let fewer = CompactMap::new(keys.clone().zip(0..).step_by(2), 5000).unwrap();
        let found = keys.map(|key| fewer.get(key));
        assert!(found.zip(0..).all(|(found, number)| found == (number % 2 == 0).then_some(number)));
    }

    #[test]
    fn usual_keys_all_find_room_near_their_places() {
        let keys = (0_u32..100_000).map(|n| short(format!("{n:x}").as_bytes()));
        let table = CompactMap::new(keys.clone().zip(0..), 100_000).unwrap();
        assert!(table.apart.is_empty());
        assert!(keys.zip(0..).all(|(key, number)| table.get(key) == Some(number)));
    }
}
