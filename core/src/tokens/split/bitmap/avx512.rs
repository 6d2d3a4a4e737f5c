//! [`Lanes`] in one AVX-512 register.
//!
//! The classes of characters that are not ASCII are looked up for all with the same beginning at once: a register
//! holds 64 classes, from which `vpermb` takes one for each lane. `wide.rs` has the tables.
//!
//! The newest required extension is VBMI, for that instruction; processors have it since Ice Lake (2019) and Zen 4
//! (2022).

#![allow(unsafe_code)]

use super::super::classes::{Class, block, wide_class};
use super::lanes::{BLOCK, Lanes};
use super::ones::bits;
use super::wide::{BY_FIRST, BY_SECOND, OPEN};
use std::arch::x86_64::{
    __m512i, _mm_loadu_si128, _mm_unpackhi_epi64, _mm512_add_epi64, _mm512_cmpeq_epi8_mask,
    _mm512_cmple_epu8_mask, _mm512_cvtepu8_epi64, _mm512_loadu_si512, _mm512_mask_mov_epi8,
    _mm512_mask_permutexvar_epi8, _mm512_maskz_compress_epi8, _mm512_maskz_loadu_epi8,
    _mm512_permutexvar_epi8, _mm512_set1_epi8, _mm512_set1_epi64, _mm512_setzero_si512, _mm512_storeu_si512,
    _mm512_sub_epi8,
};
use std::mem::MaybeUninit;

/// Whether this processor has the instructions that `with_avx512` in `mod.rs` names.
#[inline]
pub(super) fn is_there() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vbmi")
        && is_x86_feature_detected!("avx512vbmi2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("popcnt")
}

/// 64 bytes. There is none on a processor without these extensions.
#[derive(Clone, Copy)]
pub(super) struct Avx512(__m512i);

impl Lanes for Avx512 {
    #[inline(always)]
    unsafe fn load(text: &[u8], at: usize) -> Self {
        let rest = &text[at..];
        let there = if rest.len() < 64 { (1 << rest.len()) - 1 } else { u64::MAX };
        // SAFETY: the processor has the instruction, and no more bytes are read than there are.
        Self(unsafe { _mm512_maskz_loadu_epi8(there, rest.as_ptr().cast()) })
    }

    #[inline(always)]
    unsafe fn numbers(at: usize, bits: u64, places: &mut [MaybeUninit<usize>]) {
        const NUMBERS: [u8; BLOCK] = {
            let mut numbers = [0; BLOCK];
            let mut lane = 0;
            while lane < BLOCK {
                numbers[lane] = lane as u8;
                lane += 1;
            }
            numbers
        };
        let mut packed = [0_u8; BLOCK];
        // SAFETY: the processor has the instructions, as the caller says, and both arrays have 64 bytes.
        unsafe {
            let numbers = _mm512_loadu_si512(NUMBERS.as_ptr().cast());
            _mm512_storeu_si512(packed.as_mut_ptr().cast(), _mm512_maskz_compress_epi8(bits, numbers));
        }
        let sixteens = packed.as_chunks::<16>().0.iter().zip(places.as_chunks_mut::<16>().0);
        for (numbers, places) in sixteens.take(bits.count_ones().div_ceil(16) as usize) {
            // SAFETY: as above; 16 bytes are read, and 16 places written.
            unsafe {
                let numbers = _mm_loadu_si128(numbers.as_ptr().cast());
                let at = _mm512_set1_epi64(at.cast_signed() as i64);
                let low = _mm512_add_epi64(_mm512_cvtepu8_epi64(numbers), at);
                let high = _mm512_add_epi64(_mm512_cvtepu8_epi64(_mm_unpackhi_epi64(numbers, numbers)), at);
                _mm512_storeu_si512(places.as_mut_ptr().cast(), low);
                _mm512_storeu_si512(places[8..].as_mut_ptr().cast(), high);
            }
        }
    }

    #[inline(always)]
    fn equal(self, byte: u8) -> u64 {
        // SAFETY: the processor has the instructions, because `self` exists.
        unsafe { _mm512_cmpeq_epi8_mask(self.0, _mm512_set1_epi8(byte.cast_signed())) }
    }

    #[inline(always)]
    fn between(self, first: u8, last: u8) -> u64 {
        let (first, span) = (first.cast_signed(), (last - first).cast_signed());
        // SAFETY: the processor has the instructions, because `self` exists.
        unsafe {
            let from_first = _mm512_sub_epi8(self.0, _mm512_set1_epi8(first));
            _mm512_cmple_epu8_mask(from_first, _mm512_set1_epi8(span))
        }
    }

    /// First by the first byte, then by the second where this leaves the class open, then by the third. Texts have
    /// few beginnings in 64 bytes, except for Chinese and Korean; but most of theirs have letters only.
    #[inline(always)]
    fn wide_classes(self, text: &[u8], at: usize, starts: u64) -> Self {
        // SAFETY: the processor has the instruction, because `self` exists.
        let none = Self(unsafe { _mm512_setzero_si512() });
        let mut classes = none.replaced(starts, self, &BY_FIRST);
        let mut open = starts & classes.equal(OPEN);
        if open != 0 {
            // SAFETY: the processor has the instructions, because `self` exists.
            let second = unsafe { Self::load(text, at + 1) };
            while open != 0 {
                let lead = text[at + open.trailing_zeros() as usize];
                let same = open & self.equal(lead);
                open &= !same;
                classes = match lead {
                    0xc0..0xe0 => classes.replaced(same, second, numbers(block(usize::from(lead & 0x1f)))),
                    0xe0..0xf0 => {
                        let classes = classes.replaced(same, second, &BY_SECOND[usize::from(lead & 0xf)]);
                        let open = same & classes.equal(OPEN);
                        if open == 0 { classes } else { classes.by_third(text, at, open, lead, second) }
                    }
                    _ => classes.one_by_one(text, at, same),
                };
            }
        }
        classes.spread(starts, self.between(0x80, 0xbf))
    }
}

#[inline(always)]
fn numbers(classes: &'static [Class; 64]) -> &'static [u8; 64] {
    // SAFETY: a class is one byte.
    unsafe { &*std::ptr::from_ref(classes).cast() }
}

impl Avx512 {
    /// The bytes at `places` are replaced by those entries of `table` that the lower six bits of `indices` say.
    #[inline(always)]
    fn replaced(self, places: u64, indices: Self, table: &[u8; 64]) -> Self {
        // SAFETY: the processor has the instructions, because `self` exists, and the table has 64 bytes.
        unsafe {
            let table = _mm512_loadu_si512(table.as_ptr().cast());
            Self(_mm512_mask_permutexvar_epi8(self.0, places, indices.0, table))
        }
    }

    /// Adds the classes of the characters at `open`, whose first byte is `lead`, by their third bytes.
    #[inline(always)]
    fn by_third(self, text: &[u8], at: usize, mut open: u64, lead: u8, second: Self) -> Self {
        let mut classes = self;
        // SAFETY: the processor has the instructions, because `self` exists.
        let third = unsafe { Self::load(text, at + 2) };
        while open != 0 {
            let byte = text[at + open.trailing_zeros() as usize + 1];
            let same = open & second.equal(byte);
            open &= !same;
            let list = block(usize::from(lead & 0xf) << 6 | usize::from(byte & 0x3f));
            classes = classes.replaced(same, third, numbers(list));
        }
        classes
    }

    /// Adds the classes of the characters at `places`.
    #[inline(always)]
    fn one_by_one(self, text: &[u8], at: usize, places: u64) -> Self {
        let mut classes = self.0;
        for bit in bits(places) {
            let class = wide_class(text, at + bit, text[at + bit]).0 as i8;
            // SAFETY: the processor has the instructions, because `self` exists.
            classes = unsafe { _mm512_mask_mov_epi8(classes, 1 << bit, _mm512_set1_epi8(class)) };
        }
        Self(classes)
    }

    /// Copies the bytes at `starts` to the continuation bytes behind them.
    #[inline(always)]
    fn spread(self, starts: u64, continuations: u64) -> Self {
        const BEFORE: [u8; 64] = {
            let mut lanes = [0; 64];
            let mut lane = 1;
            while lane < 64 {
                lanes[lane] = lane as u8 - 1;
                lane += 1;
            }
            lanes
        };
        let (mut spread, mut places) = (self.0, starts);
        // SAFETY: the processor has the instructions, because `self` exists, and the array has 64 bytes.
        unsafe {
            let before = _mm512_loadu_si512(BEFORE.as_ptr().cast());
            for _ in 0..3 {
                places = places << 1 & continuations;
                let shifted = _mm512_permutexvar_epi8(before, spread);
                spread = _mm512_mask_mov_epi8(spread, places, shifted);
            }
        }
        Self(spread)
    }
}
