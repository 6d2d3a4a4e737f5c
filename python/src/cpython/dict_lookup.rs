//! Looks keys of dicts up that another thread may be changing, by reading their memory.
//!
//! A dict is a table of indices, into which a key's hash leads, and the entries in the order in which they were added
//! (`Objects/dictobject.c`).

#![cfg_attr(Py_3_14, allow(dead_code, reason = "the thread state has the running task"))]

use super::code_texts::{Types, read_text};
use super::frame_layout::TYPE;
use super::memory::Memory;

/// In a dict: the address of its keys.
const KEYS: usize = 32;

/// In a dict's keys: the logarithm of the number of indices, that of their size in bytes, the kind, the number of entries,
/// and the indices, behind which the entries follow.
const LOG2_SIZE: usize = 8;
const LOG2_BYTES: usize = 9;
const KIND: usize = 10;
const COUNT: usize = 24;
const INDICES: usize = 32;

/// Entries have a hash, a key and a value; without the hash if all keys are of the type `str`.
const GENERAL: u8 = 0;
const KEY_AND_VALUE: usize = 16;
const HASH_KEY_AND_VALUE: usize = 24;

/// The most entries of a dict whose values are listed.
const MOST_VALUES: usize = 64;
/// The most indices that are looked at for a key.
const MOST_STEPS: usize = 64;

/// The keys of a dict.
struct Keys {
    address: usize,
    log2_size: u8,
    log2_bytes: u8,
    kind: u8,
    count: usize,
}

impl Keys {
    fn of(memory: &mut impl Memory, dict: usize) -> Option<Self> {
        let address = memory.word(dict + KEYS)?;
        let mut head = [0; INDICES];
        memory.read(address, &mut head)?;
        let count = usize::from_ne_bytes(*head.get(COUNT..)?.first_chunk()?);
        let keys = Self {
            address,
            log2_size: head[LOG2_SIZE],
            log2_bytes: head[LOG2_BYTES],
            kind: head[KIND],
            count,
        };
        (keys.log2_size < 32 && keys.log2_bytes < 36).then_some(keys)
    }

    /// Where the key of an entry is, which its value follows.
    fn entry(&self, index: usize) -> usize {
        let entries = self.address + INDICES + (1 << self.log2_bytes);
        match self.kind {
            GENERAL => entries + index * HASH_KEY_AND_VALUE + 8,
            _ => entries + index * KEY_AND_VALUE,
        }
    }

    /// The index in a slot of the table; `None` if it is empty or cannot be read.
    fn index(&self, memory: &mut impl Memory, slot: usize) -> Option<isize> {
        let mut bytes = [0; 4];
        let width = match self.log2_size {
            ..8 => 1,
            8..16 => 2,
            _ => 4,
        };
        memory.read(self.address + INDICES + slot * width, &mut bytes[..width])?;
        let index = match width {
            1 => isize::from(bytes[0] as i8),
            2 => isize::from(i16::from_ne_bytes([bytes[0], bytes[1]])),
            _ => i32::from_ne_bytes(bytes) as isize,
        };
        (index != -1).then_some(index)
    }
}

/// The address of the value that a dict has for a key, whose hash is `hash`; `None` if it has none, or cannot be read.
pub(super) fn find(
    memory: &mut impl Memory,
    types: Types,
    dict: usize,
    key: &str,
    hash: usize,
) -> Option<usize> {
    let keys = Keys::of(memory, dict)?;
    let mask = (1 << keys.log2_size) - 1;
    let (mut slot, mut perturb) = (hash & mask, hash);
    for _ in 0..MOST_STEPS {
        if let Ok(index) = usize::try_from(keys.index(memory, slot)?) {
            let entry = keys.entry(index);
            let found = memory.word(entry)?;
            if read_text(memory, types, found).as_deref() == Some(key) {
                return memory.word(entry + 8).filter(|value| *value != 0);
            }
        }
        perturb >>= 5;
        slot = (slot * 5 + perturb + 1) & mask;
    }
    None
}

/// The addresses of the values of a small dict; none if it cannot be read.
pub(super) fn values(memory: &mut impl Memory, dict: usize) -> Vec<usize> {
    let Some(keys) = Keys::of(memory, dict) else { return Vec::new() };
    let values = (0..keys.count.min(MOST_VALUES)).filter_map(|index| memory.word(keys.entry(index) + 8));
    values.filter(|value| *value != 0).collect()
}

/// The address of an object's type.
pub(super) fn type_of(memory: &mut impl Memory, object: usize) -> Option<usize> {
    memory.word(object + TYPE)
}
