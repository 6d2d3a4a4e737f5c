//! Reads the vocabularies that the build script packed (`build/vocabulary.rs` describes the format).
//!
//! A token is stored as the two earlier tokens that it is joined from, so unpacking also yields the merges,
//! without any encoding.

use super::TokenId;
use super::merges::{Merge, NEVER};
use crate::memory::{self, OutOfMemory};

/// A packed vocabulary, expanded. A token is known by its index in the order of the ranks.
pub(super) struct Unpacked {
    /// The bytes of all tokens by index, one after the other.
    pub(super) text: Vec<u8>,
    /// Where each token starts in `text`, and the end of the last one.
    pub(super) starts: Vec<u32>,
    /// The ranks by index.
    pub(super) ranks: Vec<TokenId>,
    /// The merge of each token, by index.
    pub(super) merges: Vec<Merge>,
}

/// Expands the first `count` tokens of `packed`.
pub(super) fn unpack(packed: &[u8], count: usize) -> Result<Unpacked, OutOfMemory> {
    let (packed_count, rest) = number(packed);
    let (unused_rank, bits) = number(rest);
    let count = packed_count.min(u32::try_from(count).unwrap_or(u32::MAX));
    let mut unpacked = Unpacked {
        text: memory::with_capacity(count as usize * 8)?,
        starts: memory::with_capacity(count as usize + 1)?,
        ranks: memory::with_capacity(count as usize)?,
        merges: memory::with_capacity(count as usize)?,
    };
    let mut bits = Bits { bytes: bits, pending: 0, filled: 0 };
    for index in 0..count {
        unpacked.starts.push(unpacked.text.len() as u32);
        unpacked.ranks.push(index + TokenId::from(index >= unused_rank));
        let merge = unpacked.read_token(&mut bits, index)?;
        unpacked.merges.push(merge);
    }
    unpacked.starts.push(unpacked.text.len() as u32);
    Ok(unpacked)
}

fn number(packed: &[u8]) -> (u32, &[u8]) {
    let (bytes, rest) = packed.split_first_chunk().expect("a packed vocabulary starts with two numbers");
    (u32::from_le_bytes(*bytes), rest)
}

impl Unpacked {
    fn read_token(&mut self, bits: &mut Bits<'_>, index: u32) -> Result<Merge, OutOfMemory> {
        let width = u32::BITS - index.leading_zeros();
        let left = bits.take(width);
        if left == index { self.read_bytes(bits, index) } else { self.read_join(left, bits.take(width)) }
    }

    fn read_bytes(&mut self, bits: &mut Bits<'_>, index: u32) -> Result<Merge, OutOfMemory> {
        let length = bits.take(8);
        memory::reserve(&mut self.text, length as usize)?;
        self.text.extend((0..length).map(|_| bits.take(8) as u8));
        let part = if length == 1 { index } else { NEVER };
        Ok(Merge { left: part, right: part, length })
    }

    fn read_join(&mut self, left: u32, right: u32) -> Result<Merge, OutOfMemory> {
        let length = self.merges[left as usize].length + self.merges[right as usize].length;
        memory::reserve(&mut self.text, length as usize)?;
        for part in [left as usize, right as usize] {
            self.text.extend_from_within(self.starts[part] as usize..self.starts[part + 1] as usize);
        }
        Ok(Merge { left, right, length })
    }
}

/// A stream of bits, the lowest bit of a byte first.
struct Bits<'a> {
    bytes: &'a [u8],
    pending: u64,
    filled: u32,
}

impl Bits<'_> {
    fn take(&mut self, width: u32) -> u32 {
        if self.filled < width {
            self.refill();
        }
        let value = self.pending & ((1 << width) - 1);
        self.pending >>= width;
        self.filled -= width;
        value as u32
    }

    /// Fills up to more than 32 bits, as long as the stream has any.
    fn refill(&mut self) {
        while self.filled <= 56 {
            let Some((&byte, rest)) = self.bytes.split_first() else { return };
            self.pending |= u64::from(byte) << self.filled;
            self.filled += 8;
            self.bytes = rest;
        }
    }
}
