//! [`Lanes`] in two AVX2 registers.

#![allow(unsafe_code)]

use super::lanes::{Lanes, block};
use std::arch::x86_64::{
    __m256i, _mm256_cmpeq_epi8, _mm256_loadu_si256, _mm256_min_epu8, _mm256_movemask_epi8, _mm256_set1_epi8,
    _mm256_sub_epi8,
};

/// Whether this processor has the instructions that `with_avx2` in `mod.rs` names.
#[inline]
pub(super) fn is_there() -> bool {
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("popcnt")
}

/// 64 bytes. There are none on a processor without AVX2.
#[derive(Clone, Copy)]
pub(super) struct Avx2([__m256i; 2]);

/// One bit a byte, of vectors in which a byte is 0 or 255.
#[inline(always)]
unsafe fn bits([low, high]: [__m256i; 2]) -> u64 {
    // SAFETY: the caller has vectors, so the processor has the instructions.
    let (low, high) = unsafe { (_mm256_movemask_epi8(low), _mm256_movemask_epi8(high)) };
    u64::from(low.cast_unsigned()) | u64::from(high.cast_unsigned()) << 32
}

impl Lanes for Avx2 {
    #[inline(always)]
    unsafe fn load(text: &[u8], at: usize) -> Self {
        let bytes = block(text, at);
        let (halves, _) = bytes.as_chunks::<32>();
        // SAFETY: the processor has the instruction, and each half has 32 bytes.
        Self([0, 1].map(|half: usize| unsafe { _mm256_loadu_si256(halves[half].as_ptr().cast()) }))
    }

    #[inline(always)]
    fn equal(self, byte: u8) -> u64 {
        // SAFETY: the processor has the instructions, because `self` exists.
        unsafe {
            let byte = _mm256_set1_epi8(byte.cast_signed());
            bits([_mm256_cmpeq_epi8(self.0[0], byte), _mm256_cmpeq_epi8(self.0[1], byte)])
        }
    }

    #[inline(always)]
    fn between(self, first: u8, last: u8) -> u64 {
        // SAFETY: the processor has the instructions, because `self` exists.
        unsafe {
            let span = _mm256_set1_epi8((last - first).cast_signed());
            let first = _mm256_set1_epi8(first.cast_signed());
            let [low, high] = [_mm256_sub_epi8(self.0[0], first), _mm256_sub_epi8(self.0[1], first)];
            let is_low = _mm256_cmpeq_epi8(_mm256_min_epu8(low, span), low);
            bits([is_low, _mm256_cmpeq_epi8(_mm256_min_epu8(high, span), high)])
        }
    }
}
