//! Sets of small numbers, as bits in 64-bit words.

/// The number of words for a set of numbers below `limit`.
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
