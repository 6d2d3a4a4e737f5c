//! Multiplicative hashing of four bytes at a time, for tables that are indexed by what the bytes begin with.
//!
//! The tests of the deflate policy and the tables of the tokenizer look at all overlapping groups of four
//! bytes of a text. One multiplication per group is enough: a collision costs time or precision, never
//! correctness.

/// All overlapping groups of four adjacent bytes, as little-endian numbers.
#[inline]
pub(crate) fn in_a_row(bytes: &[u8]) -> impl Iterator<Item = u32> {
    bytes.windows(4).filter_map(<[u8]>::first_chunk).map(|four| u32::from_le_bytes(*four))
}

/// A hash of `bits` bits, 1 to 32: the upper ones of a product with 2^32 divided by the golden ratio (Knuth,
/// The Art of Computer Programming, 6.4).
#[inline]
pub(crate) const fn hash(word: u32, bits: u32) -> usize {
    (word.wrapping_mul(0x9e37_79b1) >> (32 - bits)) as usize
}
