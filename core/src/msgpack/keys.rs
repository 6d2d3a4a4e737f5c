//! The map keys of a message, each numbered once.

/// Where a string lies in the message.
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
/// Keys that are long, that come after [`KeyTable::CAPACITY`] others, or that collide with too many are not
/// numbered, so that a hostile message costs no more than another one.
#[derive(Debug, Default)]
pub struct KeyTable {
    /// One more than the number of the key in this place, or 0.
    slots: Vec<u32>,
    keys: Vec<Key>,
    /// For each key the one that last followed it: records have the same keys in the same order.
    followers: Vec<u32>,
    /// The number of the key found last.
    last: u32,
}

const PROBES: usize = 8;

impl KeyTable {
    /// How many keys are numbered at most.
    pub const CAPACITY: usize = 4096;
    /// Longer keys are not numbered.
    pub const LONGEST: usize = 64;

    /// The number of the key that lies at `offset`, a new one when it was not seen before.
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

    /// The key that followed the last one when that was found before, and its number.
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

    /// Doubles the places. A key that finds none in the new order is merely numbered again when it comes next.
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

/// As `==`, without a call for the few bytes that most keys have: it looks at words that overlap.
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

/// A hash that is quick for short strings. It need not withstand an attack: probing is bounded.
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

/// The bytes of a short key, in numbers that can be compared at once: for front ends that remember what they made of a key.
#[derive(Debug, Clone, Copy)]
pub struct ShortKey {
    length: u64,
    /// The first and the last bytes, which may overlap; for longer keys then what is between them.
    words: [u64; 4],
}

impl ShortKey {
    /// Longer keys are not short.
    pub const LONGEST: usize = 32;

    /// `None` when the key is long, or empty.
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

    /// One of `1 << BITS` places, for a table in which each holds one key.
    #[inline(always)]
    pub const fn place<const BITS: u32>(&self) -> usize {
        let [first, last, second, third] = self.words;
        let mixed = (first ^ self.length).wrapping_mul(ODD).rotate_left(29) ^ last;
        let mixed = mixed ^ second.rotate_left(17) ^ third.rotate_left(43);
        (mixed.wrapping_mul(ODD) >> (u64::BITS - BITS)) as usize
    }
}

impl PartialEq for ShortKey {
    /// One number after the other, as they are in registers: to compare them in memory would have to wait for that.
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
