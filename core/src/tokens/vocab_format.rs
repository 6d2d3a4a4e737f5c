//! Reads the vocabularies that the build script packed (`build/vocabulary.rs` describes the format).
//!
//! A token is stored as the two earlier tokens that it is joined from, so unpacking also yields the merges,
//! without any encoding.

use super::TokenId;
use super::merges::{Merge, NEVER};
use super::strings::Strings;
use crate::memory::{self, OutOfMemory};

/// A packed vocabulary, expanded. A token is known by its index in the order of the ranks.
pub(super) struct Unpacked {
    /// The bytes of the tokens by index.
    pub(super) tokens: Strings,
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
    let mut unpacking = Unpacking {
        bits: Bits { bytes: bits, pending: 0, filled: 0 },
        text: memory::filled(0, count as usize * USUAL + SHORT)?,
        end: 0,
        starts: memory::with_capacity(count as usize + 1)?,
        merges: memory::with_capacity(count as usize)?,
    };
    unpacking.starts.push(0);
    for index in 0..count {
        let merge = unpacking.read_token(index)?;
        unpacking.merges.push(merge);
        unpacking.starts.push(unpacking.end as u32);
    }
    let Unpacking { mut text, end, starts, merges, .. } = unpacking;
    text.truncate(end);
    let ranks = (0..count).map(|index| Ok::<_, OutOfMemory>(index + TokenId::from(index >= unused_rank)));
    Ok(Unpacked { tokens: Strings::of(text, starts), ranks: memory::collected(ranks)?, merges })
}

/// Room for about this many bytes a token is made at first.
const USUAL: usize = 8;

/// Up to this many bytes are copied as this many: a constant number of bytes needs no call and no branch.
const SHORT: usize = 16;

fn number(packed: &[u8]) -> (u32, &[u8]) {
    let (bytes, rest) = packed.split_first_chunk().expect("a packed vocabulary starts with two numbers");
    (u32::from_le_bytes(*bytes), rest)
}

/// A vocabulary of which some tokens have been read.
struct Unpacking<'a> {
    bits: Bits<'a>,
    /// The tokens' bytes, and behind them at least [`SHORT`] bytes that are written next.
    text: Vec<u8>,
    /// Where the tokens' bytes end.
    end: usize,
    starts: Vec<u32>,
    merges: Vec<Merge>,
}

impl Unpacking<'_> {
    fn read_token(&mut self, index: u32) -> Result<Merge, OutOfMemory> {
        let width = u32::BITS - index.leading_zeros();
        let left = self.bits.take(width);
        if left == index {
            return self.read_bytes(index);
        }
        let right = self.bits.take(width);
        let length = self.append(left)? + self.append(right)?;
        Ok(Merge { left, right, length: length as u32 })
    }

    fn read_bytes(&mut self, index: u32) -> Result<Merge, OutOfMemory> {
        let length = self.bits.take(8);
        self.make_room(length as usize)?;
        for byte in &mut self.text[self.end..][..length as usize] {
            *byte = self.bits.take(8) as u8;
        }
        self.end += length as usize;
        let part = if length == 1 { index } else { NEVER };
        Ok(Merge { left: part, right: part, length })
    }

    /// Appends the bytes of an earlier token, and returns how many there are.
    #[inline]
    fn append(&mut self, token: u32) -> Result<usize, OutOfMemory> {
        let (start, end) = (self.starts[token as usize] as usize, self.starts[token as usize + 1] as usize);
        let length = end - start;
        self.make_room(length)?;
        match self.text[start..].first_chunk::<SHORT>() {
            Some(&bytes) if length <= SHORT => self.text[self.end..][..SHORT].copy_from_slice(&bytes),
            _ => self.text.copy_within(start..end, self.end),
        }
        self.end += length;
        Ok(length)
    }

    /// Makes room for `length` bytes, and for [`SHORT`] more.
    #[inline]
    fn make_room(&mut self, length: usize) -> Result<(), OutOfMemory> {
        if self.text.len() - self.end < length + SHORT { self.grow(length) } else { Ok(()) }
    }

    #[cold]
    fn grow(&mut self, length: usize) -> Result<(), OutOfMemory> {
        let more = self.text.len() / 2 + length + SHORT;
        memory::reserve(&mut self.text, more)?;
        self.text.resize(self.text.len() + more, 0);
        Ok(())
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
    #[inline]
    fn refill(&mut self) {
        if let Some(&bytes) = self.bytes.first_chunk() {
            // The bits beyond the last whole byte are those that will be filled in next.
            self.pending |= u64::from_le_bytes(bytes) << self.filled;
            let whole = (u64::BITS - 1 - self.filled) / 8;
            self.bytes = &self.bytes[whole as usize..];
            self.filled += 8 * whole;
            return;
        }
        while self.filled <= 56 {
            let Some((&byte, rest)) = self.bytes.split_first() else { return };
            self.pending |= u64::from(byte) << self.filled;
            self.filled += 8;
            self.bytes = rest;
        }
    }
}
