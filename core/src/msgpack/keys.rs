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
        if self.slots.is_empty() {
            self.slots.resize(256, 0);
        }
        match self.find(bytes, key.bytes(bytes)) {
            Found::Number(number) => Some(number),
            Found::Free(slot) => self.insert(bytes, key, slot),
            Found::Crowded => None,
        }
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

enum Found {
    Number(u32),
    Free(usize),
    Crowded,
}

/// A hash that is quick for short strings. It need not withstand an attack: probing is bounded.
#[inline]
fn hash(bytes: &[u8]) -> u64 {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let (words, rest) = bytes.as_chunks::<8>();
    let mut hash = bytes.len() as u64;
    for word in words {
        hash = (hash ^ u64::from_le_bytes(*word)).wrapping_mul(ODD).rotate_left(29);
    }
    let last = rest.iter().fold(0, |last, &byte| last << 8 | u64::from(byte));
    let hash = (hash ^ last).wrapping_mul(ODD);
    hash ^ hash >> 32
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
