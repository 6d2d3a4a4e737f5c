//! What the bitmaps need of a processor's vectors: which of 64 bytes equal another one, or lie in a range.
//!
//! One implementation for each set of instructions: [`Sixteens`] here, which every processor has in some form,
//! and `avx2.rs`, `avx512.rs`.

#![allow(unsafe_code)]

use super::super::classes::wide_class;
use super::ones::bits;
use std::mem::MaybeUninit;
use wide::u8x16;

/// The length of a block.
pub(super) const BLOCK: usize = 64;

/// 64 bytes of text, of which each answer has one bit a byte; the lowest bit is that of the first byte.
pub(super) trait Lanes: Copy {
    /// The bytes of `text` from `at` on. What is missing to 64 is zero.
    ///
    /// # Safety
    ///
    /// The processor has the instructions.
    unsafe fn load(text: &[u8], at: usize) -> Self;

    /// Writes `at` and a bit's number for each bit that is set, the lowest first, to `places`, of which there are 64.
    ///
    /// # Safety
    ///
    /// The processor has the instructions.
    #[inline(always)]
    unsafe fn numbers(at: usize, bits: u64, places: &mut [MaybeUninit<usize>]) {
        let mut rest = bits;
        // Eight at a time, of which the last may be too many: most blocks then take the same number of rounds.
        for eight in places.chunks_exact_mut(8) {
            if rest == 0 {
                break;
            }
            for place in eight {
                place.write(at + rest.trailing_zeros() as usize);
                rest &= rest.wrapping_sub(1);
            }
        }
    }

    /// The bytes that equal `byte`.
    fn equal(self, byte: u8) -> u64;

    /// The bytes from `first` to `last`.
    fn between(self, first: u8, last: u8) -> u64;

    /// The numbers of the classes of the characters that are not ASCII and begin at `starts`, at each of their
    /// bytes as far as these lie in the block. `self` is the block of `text` at `at`.
    #[inline(always)]
    fn wide_classes(self, text: &[u8], at: usize, starts: u64) -> Self {
        let mut classes = [0; BLOCK + LONGEST];
        for bit in bits(starts) {
            let class = wide_class(text, at + bit, text[at + bit]).0 as u8;
            // What is too much is overwritten, or belongs to ASCII.
            classes[bit..][..LONGEST].copy_from_slice(&[class; LONGEST]);
        }
        // SAFETY: the processor has the instructions, because `self` exists.
        unsafe { Self::load(&classes[..BLOCK], 0) }
    }
}

/// The most bytes of a character.
const LONGEST: usize = 4;

/// The bytes of `text` from `at` on; the missing ones are zero.
#[inline(always)]
pub(super) fn block(text: &[u8], at: usize) -> [u8; BLOCK] {
    let rest = &text[at..];
    match rest.first_chunk() {
        Some(whole) => *whole,
        None => {
            let mut bytes = [0; BLOCK];
            bytes[..rest.len()].copy_from_slice(rest);
            bytes
        }
    }
}

/// Four registers of 16 bytes: SSE2, NEON, or what the compiler makes of it.
#[derive(Clone, Copy)]
pub(super) struct Sixteens([u8x16; 4]);

impl Sixteens {
    #[inline(always)]
    fn bits(self, test: impl Fn(u8x16) -> u8x16) -> u64 {
        let bits = self.0.map(|bytes| u64::from(test(bytes).to_bitmask()));
        bits[0] | bits[1] << 16 | bits[2] << 32 | bits[3] << 48
    }
}

impl Lanes for Sixteens {
    #[inline(always)]
    unsafe fn load(text: &[u8], at: usize) -> Self {
        Self(bytemuck::cast(block(text, at)))
    }

    #[inline(always)]
    fn equal(self, byte: u8) -> u64 {
        self.bits(|bytes| bytes.simd_eq(u8x16::splat(byte)))
    }

    #[inline(always)]
    fn between(self, first: u8, last: u8) -> u64 {
        self.bits(|bytes| {
            let from_first = bytes - u8x16::splat(first);
            from_first.min(u8x16::splat(last - first)).simd_eq(from_first)
        })
    }
}
