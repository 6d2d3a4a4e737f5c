//! Numbers the map keys of a message.
//!
//! Records repeat the same keys in the same order. So for each key the table notes which key followed it last
//! time; mostly the next key is that one, and a comparison of a few words replaces the hash lookup. Otherwise
//! the key is found in a hash table with linear probing over at most 8 places. Both take constant time.

/// The position of a key in the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    offset: u32,
    length: u32,
}

impl Key {
    /// The string's bytes; `bytes` is the message it was found in.
    #[inline]
    pub fn bytes<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        let start = self.offset as usize;
        &bytes[start..start + self.length as usize]
    }
}

/// Numbers the different map keys of one message: keys with equal numbers are equal.
///
/// Long keys, keys after the first [`KeyTable::CAPACITY`] and keys with too many collisions get no number, so
/// that a hostile message takes no more time than others.
#[derive(Debug, Default)]
pub struct KeyTable {
    /// The number of the key in this place plus one, or 0.
    slots: Vec<u32>,
    keys: Vec<Key>,
    /// For each key, the key that last followed it: records have the same keys in the same order.
    followers: Vec<u32>,
    /// The number of the key found last.
    last: u32,
}

const PROBES: usize = 8;

impl KeyTable {
    /// The most keys that are numbered.
    pub const CAPACITY: usize = 4096;
    /// The length above which keys are not numbered.
    pub const LONGEST: usize = 64;

    /// The number of the key at `offset`: a new one if the key was not seen before.
    pub fn number(&mut self, bytes: &[u8], offset: usize, length: usize) -> Option<u32> {
        if length > Self::LONGEST {
            return None;
        }
        let key = Key { offset: u32::try_from(offset).ok()?, length: length as u32 };
        let number = match self.expected(bytes) {
            Some((number, expected)) if equal(expected, key.bytes(bytes)) => number,
            _ => self.look_up(bytes, key)?,
        };
        self.last = number;
        Some(number)
    }

    /// The key that followed the last one before, and its number.
    #[inline]
    fn expected<'a>(&self, bytes: &'a [u8]) -> Option<(u32, &'a [u8])> {
        let number = *self.followers.get(self.last as usize)?;
        Some((number, self.keys[number as usize].bytes(bytes)))
    }

    fn look_up(&mut self, bytes: &[u8], key: Key) -> Option<u32> {
        if self.slots.is_empty() {
            self.slots.resize(256, 0);
        }
        let number = match self.find(bytes, key.bytes(bytes)) {
            Found::Number(number) => number,
            Found::Free(slot) => self.insert(bytes, key, slot)?,
            Found::Crowded => return None,
        };
        self.followers[self.last as usize] = number;
        Some(number)
    }

    /// The keys, by number.
    pub fn into_keys(self) -> Vec<Key> {
        self.keys
    }

    fn find(&self, bytes: &[u8], key: &[u8]) -> Found {
        let mask = self.slots.len() - 1;
        let start = hash(key) as usize;
        for slot in (0..PROBES).map(|probe| (start + probe) & mask) {
            match self.slots[slot] {
                0 => return Found::Free(slot),
                number if self.keys[number as usize - 1].bytes(bytes) == key => {
                    return Found::Number(number - 1);
                }
                _ => {}
            }
        }
        Found::Crowded
    }

    fn insert(&mut self, bytes: &[u8], key: Key, slot: usize) -> Option<u32> {
        if self.keys.len() == Self::CAPACITY {
            return None;
        }
        let number = self.keys.len() as u32;
        self.keys.push(key);
        self.followers.push(number);
        self.slots[slot] = number + 1;
        if self.keys.len() * 2 > self.slots.len() {
            self.grow(bytes);
        }
        Some(number)
    }

    /// Doubles the places. A key that finds no place in the new table is numbered anew when it comes next.
    fn grow(&mut self, bytes: &[u8]) {
        let places = self.slots.len() * 2;
        self.slots.clear();
        self.slots.resize(places, 0);
        for number in 0..self.keys.len() {
            if let Found::Free(slot) = self.find(bytes, self.keys[number].bytes(bytes)) {
                self.slots[slot] = number as u32 + 1;
            }
        }
    }
}

/// The same as `==`, but inlined for short keys: it compares two overlapping words.
#[inline(always)]
fn equal(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len()
        && match a.len() {
            4..8 => {
                word::<4>(a, 0) == word::<4>(b, 0) && word::<4>(a, a.len() - 4) == word::<4>(b, b.len() - 4)
            }
            8..=16 => {
                word::<8>(a, 0) == word::<8>(b, 0) && word::<8>(a, a.len() - 8) == word::<8>(b, b.len() - 8)
            }
            2..4 => word::<2>(a, 0) == word::<2>(b, 0) && a[a.len() - 1] == b[b.len() - 1],
            1 => a[0] == b[0],
            _ => a == b,
        }
}

enum Found {
    Number(u32),
    Free(usize),
    Crowded,
}

const ODD: u64 = 0x9e37_79b9_7f4a_7c15;

/// A hash that is fast for short strings. It need not withstand attacks, because probing is bounded.
#[inline]
fn hash(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut hash = bytes.len() as u64;
    for word in words {
        hash = (hash ^ u64::from_le_bytes(*word)).wrapping_mul(ODD).rotate_left(29);
    }
    let last = rest.iter().fold(0, |last, &byte| last << 8 | u64::from(byte));
    let hash = (hash ^ last).wrapping_mul(ODD);
    hash ^ hash >> 32
}

/// The bytes of a short key as four words, which are compared at once: for caches of the objects that front
/// ends made from keys.
#[derive(Debug, Clone, Copy)]
pub struct ShortKey {
    length: u64,
    /// The first and the last bytes, which may overlap; for longer keys also the bytes between them.
    words: [u64; 4],
}

impl ShortKey {
    /// The greatest length of a short key.
    pub const LONGEST: usize = 32;

    /// `None` if the key is long or empty.
    #[inline(always)]
    pub fn of(bytes: &[u8]) -> Option<Self> {
        let length = bytes.len();
        let words = match length {
            8..=16 => [word::<8>(bytes, 0)?, word::<8>(bytes, length - 8)?, 0, 0],
            4..8 => [word::<4>(bytes, 0)?, word::<4>(bytes, length - 4)?, 0, 0],
            1 => [bytes[0].into(), 0, 0, 0],
            2..4 => [word::<2>(bytes, 0)?, word::<2>(bytes, length - 2)?, 0, 0],
            17..=Self::LONGEST => [
                word::<8>(bytes, 0)?,
                word::<8>(bytes, length - 8)?,
                word::<8>(bytes, 8)?,
                word::<8>(bytes, length - 16)?,
            ],
            _ => return None,
        };
        Some(Self { length: length as u64, words })
    }

    /// The place in a direct-mapped table of `1 << BITS` places.
    #[inline(always)]
    pub const fn place<const BITS: u32>(&self) -> usize {
        let [first, last, second, third] = self.words;
        let mixed = (first ^ self.length).wrapping_mul(ODD).rotate_left(29) ^ last;
        let mixed = mixed ^ second.rotate_left(17) ^ third.rotate_left(43);
        (mixed.wrapping_mul(ODD) >> (u64::BITS - BITS)) as usize
    }
}

impl PartialEq for ShortKey {
    /// Compares word by word: the words are in registers, and a comparison in memory would have to store them
    /// first.
    #[inline(always)]
    fn eq(&self, other: &Self) -> bool {
        let [a, b, c, d] = self.words;
        let [e, f, g, h] = other.words;
        self.length == other.length && a == e && b == f && c == g && d == h
    }
}

impl Eq for ShortKey {}

/// `N` bytes as a number.
#[inline(always)]
fn word<const N: usize>(bytes: &[u8], start: usize) -> Option<u64> {
    let mut wide = [0; 8];
    *wide.first_chunk_mut::<N>()? = *bytes.get(start..)?.first_chunk::<N>()?;
    Some(u64::from_le_bytes(wide))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_keys_share_a_number() {
        let message: Vec<u8> = (0..30_000_u32).flat_map(|i| (i * 7919 % 999).to_be_bytes()).collect();
        let mut table = KeyTable::default();
        let numbered: Vec<(&[u8], u32)> = (0..message.len())
            .step_by(4)
            .filter_map(|offset| Some((&message[offset..offset + 4], table.number(&message, offset, 4)?)))
            .collect();
        let keys = table.into_keys();
        assert!(numbered.iter().all(|&(key, number)| keys[number as usize].bytes(&message) == key));
        assert!(numbered.len() > 29_000, "{} of 30000 numbered", numbered.len());
        assert!(keys.len() < 1_100, "{} numbers for 999 keys", keys.len());
    }

    #[test]
    fn bytes_are_equal_as_slices_are() {
        let mut bytes: Vec<u8> = (1..=40).collect();
        for length in 0..=40 {
            let same = bytes[..length].to_vec();
            assert!(equal(&bytes[..length], &same));
            assert_eq!(equal(&bytes[..length], &bytes[..length / 2]), length == 0);
            for place in 0..length {
                bytes[place] ^= 0x80;
                assert!(!equal(&bytes[..length], &same), "byte {place} of {length}");
                bytes[place] ^= 0x80;
            }
        }
    }

    #[test]
    fn keys_that_come_in_another_order_are_found() {
        let message = b"abcacbbca";
        let mut table = KeyTable::default();
        let numbers: Vec<_> =
            (0..message.len()).map(|offset| table.number(message, offset, 1).unwrap()).collect();
        assert_eq!(numbers, [0, 1, 2, 0, 2, 1, 1, 2, 0]);
    }

    #[test]
    fn short_keys_are_equal_when_their_bytes_are() {
        let mut bytes: Vec<u8> = (1..=40).collect();
        for length in 0..=40 {
            let key = ShortKey::of(&bytes[..length]);
            assert_eq!(key.is_some(), (1..=ShortKey::LONGEST).contains(&length));
            let Some(key) = key else { continue };
            assert!(key.place::<4>() < 16);
            assert_ne!(Some(key), ShortKey::of(&bytes[..length - 1]));
            for place in 0..length {
                bytes[place] ^= 0x80;
                assert_ne!(Some(key), ShortKey::of(&bytes[..length]), "byte {place} of {length}");
                bytes[place] ^= 0x80;
            }
            assert_eq!(Some(key), ShortKey::of(&bytes[..length]));
        }
    }

    #[test]
    fn too_many_and_too_long_keys_are_left_out() {
        let message: Vec<u8> = (0..20_000_u32).flat_map(u32::to_be_bytes).collect();
        let mut table = KeyTable::default();
        for offset in (0..message.len()).step_by(4) {
            table.number(&message, offset, 4);
        }
        assert_eq!(table.number(&message, 0, KeyTable::LONGEST + 1), None);
        assert!(table.into_keys().len() <= KeyTable::CAPACITY);
    }
}
