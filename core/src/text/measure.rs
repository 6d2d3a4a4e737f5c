//! Counts the characters of a text and finds their kind.
//!
//! The number of characters is the number of bytes that are not continuation bytes; the kind follows from the
//! largest byte (see `kind.rs`). Both are computed in one pass over 64 bytes at a time with AVX-512, 16
//! elsewhere.

use wide::{i8x16, u8x16};

#[cfg(target_arch = "x86_64")]
use super::avx512;
use super::kind::{LAST_CONTINUATION, Measure, StrKind};

/// Counts the characters of `utf8`, which must be valid, and finds their kind.
///
/// ```
/// use offlock_core::text::{Measure, StrKind, measure};
///
/// assert_eq!(measure("für".as_bytes()), Measure { chars: 3, kind: StrKind::Latin1 });
/// ```
#[inline]
pub fn measure(utf8: &[u8]) -> Measure {
    #[cfg(target_arch = "x86_64")]
    if avx512::is_there() {
        #[allow(unsafe_code)]
        // SAFETY: the processor has what it needs.
        return unsafe { avx512::measure(utf8) };
    }
    measure_in_blocks(utf8)
}

fn measure_in_blocks(utf8: &[u8]) -> Measure {
    let Some(last) = utf8.last_chunk::<BLOCK>() else { return measure_short(utf8) };
    let (blocks, rest) = utf8.as_chunks::<BLOCK>();
    let last = u8x16::new(*last);
    let (mut largest, mut chars) = (last, 0);
    for blocks in blocks.chunks(u8::MAX.into()) {
        let mut counts = u8x16::splat(0);
        for block in blocks {
            let block = u8x16::new(*block);
            largest = largest.max(block);
            counts -= starts(block); // true is -1
        }
        chars += counts.to_array().into_iter().map(usize::from).sum::<usize>();
    }
    // The remaining bytes are the last ones of `last`.
    let in_rest = (starts(last).to_bitmask() >> (BLOCK - rest.len())).count_ones();
    let kind = StrKind::of_bytes(|byte| largest.max(u8x16::splat(byte)).simd_eq(largest).to_bitmask() != 0);
    Measure { chars: chars + in_rest as usize, kind }
}

/// The same for less than a block.
fn measure_short(utf8: &[u8]) -> Measure {
    let add = |(chars, largest): (usize, u8), &byte: &u8| {
        (chars + usize::from(byte.cast_signed() > LAST_CONTINUATION), largest.max(byte))
    };
    let (chars, largest) = utf8.iter().fold((0, 0), add);
    Measure { chars, kind: StrKind::of_bytes(|byte| largest >= byte) }
}

/// The number of ASCII bytes at the beginning of `text`, at most `most`.
pub(super) fn ascii_len(text: &[u8], most: usize) -> usize {
    let text = &text[..most.min(text.len())];
    let (blocks, rest) = text.as_chunks::<BLOCK>();
    for (number, block) in blocks.iter().enumerate() {
        let others = u8x16::new(*block).to_bitmask();
        if others != 0 {
            return number * BLOCK + others.trailing_zeros() as usize;
        }
    }
    let before = rest.iter().position(|byte| !byte.is_ascii()).unwrap_or(rest.len());
    text.len() - rest.len() + before
}

/// Marks the bytes that begin a character.
#[inline]
fn starts(bytes: u8x16) -> u8x16 {
    bytemuck::cast(bytemuck::cast::<u8x16, i8x16>(bytes).simd_gt(i8x16::splat(LAST_CONTINUATION)))
}

const BLOCK: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn naive(text: &str) -> Measure {
        let kind = match text.chars().max().map_or(0, u32::from) {
            ..0x80 => StrKind::Ascii,
            0x80..0x100 => StrKind::Latin1,
            0x100..0x1_0000 => StrKind::Ucs2,
            _ => StrKind::Ucs4,
        };
        Measure { chars: text.chars().count(), kind }
    }

    #[test]
    fn the_first_byte_that_is_not_ascii_is_found() {
        for before in 0..70 {
            for after in ["", "a", "aaaaaaaaaaaaaaaaaaaaé"] {
                let text = format!("{}é{after}", "x".repeat(before));
                for most in [0, 1, before, before + 1, usize::MAX] {
                    assert_eq!(ascii_len(text.as_bytes(), most), before.min(most), "{text:?}");
                }
                assert_eq!(ascii_len(&text.as_bytes()[..before], usize::MAX), before);
            }
        }
    }

    #[test]
    fn every_character_has_its_form_at_every_place() {
        for edge in [
            '\0',
            'a',
            '\u{7f}',
            '\u{80}',
            '\u{ff}',
            '\u{100}',
            '\u{7ff}',
            '\u{800}',
            '\u{ffff}',
            '\u{10000}',
            '\u{10ffff}',
        ] {
            for before in 0..140 {
                let text = format!("{}{edge}{}", "x".repeat(before), "é".repeat(before % 3));
                assert_eq!(measure(text.as_bytes()), naive(&text), "{text:?}");
                assert_eq!(measure_in_blocks(text.as_bytes()), naive(&text), "{text:?}");
            }
        }
    }
}
