//! Measuring and transcoding with AVX-512.
//!
//! The code is branch-free but for loops over blocks. So mixed scripts cost no mispredicted branches, as they
//! do in a scalar decoder. Loads and stores are masked, so no byte outside of the slices is touched and the
//! last, partial block needs no scalar loop. Transcoding decodes a block of 32 bytes as if a character began
//! at every byte, and then compresses the lanes where one does (`vpcompressw`).
//!
//! The newest required extension is VBMI2, for that instruction on 16-bit lanes; processors have it since Ice
//! Lake (2019) and Zen 4 (2022). simdutf's AVX-512 kernels use the same approach.

#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m256i, __m512i, _mm256_and_si256, _mm256_cmpge_epu8_mask, _mm256_cmpgt_epi8_mask,
    _mm256_maskz_loadu_epi8, _mm256_movepi8_mask, _mm256_set1_epi8, _mm512_and_si512, _mm512_cmpge_epu8_mask,
    _mm512_cmpgt_epi8_mask, _mm512_cvtepu8_epi16, _mm512_mask_cvtepi16_storeu_epi8, _mm512_mask_mov_epi16,
    _mm512_mask_storeu_epi16, _mm512_maskz_compress_epi16, _mm512_maskz_loadu_epi8, _mm512_max_epu8,
    _mm512_or_si512, _mm512_set1_epi8, _mm512_set1_epi16, _mm512_setzero_si512, _mm512_slli_epi16,
};

use super::kind::{LAST_CONTINUATION, Measure, StrKind};

/// Whether this processor has the extensions that the functions here need. The standard library caches this
/// without a lock.
#[inline]
pub(super) fn is_there() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512vbmi2")
        && is_x86_feature_detected!("popcnt")
}

/// A stored character of at most 16 bits.
pub(super) trait Narrow: Sized {
    /// Writes the lower bits of the first `out.len()` of 32 numbers to `out`.
    ///
    /// # Safety
    ///
    /// The processor has AVX512BW.
    unsafe fn store(units: __m512i, out: &mut [Self]);
}

impl Narrow for u8 {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    unsafe fn store(units: __m512i, out: &mut [Self]) {
        // SAFETY: no more bytes are written than there are places for.
        unsafe { _mm512_mask_cvtepi16_storeu_epi8(out.as_mut_ptr().cast(), mask_of_first(out.len()), units) }
    }
}

impl Narrow for u16 {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    unsafe fn store(units: __m512i, out: &mut [Self]) {
        // SAFETY: no more units are written than there are places for.
        unsafe { _mm512_mask_storeu_epi16(out.as_mut_ptr().cast(), mask_of_first(out.len()), units) }
    }
}

/// See [`super::measure()`].
#[target_feature(enable = "avx512f,avx512bw,popcnt")]
pub(super) fn measure(utf8: &[u8]) -> Measure {
    let (mut largest, mut chars) = (_mm512_setzero_si512(), 0);
    for block in utf8.chunks(64) {
        let places = u64::MAX >> (64 - block.len());
        // SAFETY: no more bytes are read than there are.
        let bytes = unsafe { _mm512_maskz_loadu_epi8(places, block.as_ptr().cast()) };
        largest = _mm512_max_epu8(largest, bytes);
        let begins = places & _mm512_cmpgt_epi8_mask(bytes, _mm512_set1_epi8(LAST_CONTINUATION));
        chars += begins.count_ones() as usize;
    }
    let reaches = |byte: u8| _mm512_cmpge_epu8_mask(largest, _mm512_set1_epi8(byte.cast_signed())) != 0;
    Measure { chars, kind: StrKind::of_bytes(reaches) }
}

/// See [`super::transcode()`]; for characters of at most three bytes.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi2,popcnt")]
pub(super) fn transcode<T: Narrow>(mut utf8: &[u8], mut out: &mut [T]) {
    while !utf8.is_empty() && !out.is_empty() {
        let bytes = load(utf8);
        let (units, count) = if _mm256_movepi8_mask(bytes) == 0 {
            (_mm512_cvtepu8_epi16(bytes), 32)
        } else {
            let begins = _mm256_cmpgt_epi8_mask(bytes, _mm256_set1_epi8(LAST_CONTINUATION));
            let units = decode(bytes, load(behind(utf8, 1)), load(behind(utf8, 2)));
            (_mm512_maskz_compress_epi16(begins, units), begins.count_ones() as usize)
        };
        // SAFETY: the processor has it, see above.
        unsafe { T::store(units, out) };
        utf8 = behind(utf8, 32);
        let written = count.min(out.len());
        out = &mut out[written..];
    }
}

/// The code points of at most three bytes that begin at each byte; meaningless where none begins.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn decode(bytes: __m256i, second: __m256i, third: __m256i) -> __m512i {
    let has_two = _mm256_movepi8_mask(bytes);
    let has_three = _mm256_cmpge_epu8_mask(bytes, _mm256_set1_epi8(0xE0_u8.cast_signed()));
    let first = _mm512_cvtepu8_epi16(bytes);
    let second = _mm512_cvtepu8_epi16(_mm256_and_si256(second, _mm256_set1_epi8(0x3F)));
    let third = _mm512_cvtepu8_epi16(_mm256_and_si256(third, _mm256_set1_epi8(0x3F)));
    let head = _mm512_and_si512(_mm512_slli_epi16::<6>(first), _mm512_set1_epi16(0x1F << 6));
    let two = _mm512_or_si512(head, second);
    let head = _mm512_or_si512(_mm512_slli_epi16::<12>(first), _mm512_slli_epi16::<6>(second));
    let three = _mm512_or_si512(head, third);
    _mm512_mask_mov_epi16(_mm512_mask_mov_epi16(first, has_two, two), has_three, three)
}

/// The rest of a text after `bytes` bytes.
#[inline]
fn behind(utf8: &[u8], bytes: usize) -> &[u8] {
    utf8.get(bytes..).unwrap_or_default()
}

/// The first 32 bytes of a text, padded with zeros.
#[inline]
#[target_feature(enable = "avx512bw,avx512vl")]
fn load(utf8: &[u8]) -> __m256i {
    // SAFETY: no more bytes are read than there are.
    unsafe { _mm256_maskz_loadu_epi8(mask_of_first(utf8.len()), utf8.as_ptr().cast()) }
}

/// A mask of the first `count` of 32 lanes.
#[inline]
const fn mask_of_first(count: usize) -> u32 {
    if count < 32 { (1 << count) - 1 } else { u32::MAX }
}
