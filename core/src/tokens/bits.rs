//! Sets of small numbers: a bit for each, 64 to a word.

/// The words that the numbers below `limit` need.
pub(super) const fn words(limit: usize) -> usize {
    limit.div_ceil(64)
}

pub(super) fn set(bits: &mut [u64], number: usize) {
    bits[number / 64] |= 1 << (number % 64);
}

#[inline]
pub(super) fn has(bits: &[u64], number: usize) -> bool {
    bits[number / 64] >> (number % 64) & 1 == 1
}
