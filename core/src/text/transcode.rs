//! Converts UTF-8 to characters of a fixed width.
//!
//! With AVX-512, to 8-bit and 16-bit units without branches (`avx512.rs`). Elsewhere, and to 32-bit units,
//! runs of ASCII are widened 16 bytes at a time, and other characters are decoded one by one.

use wide::u8x16;

#[cfg(target_arch = "x86_64")]
use super::avx512;

/// A stored character: `u8` for Latin-1, `u16` for UCS-2, `u32` for UCS-4.
pub trait Unit: Copy {
    /// The unit of an ASCII character.
    fn of_byte(byte: u8) -> Self;
    /// The unit of a code point that fits; of one that does not, its lower bits.
    fn of_code_point(code_point: u32) -> Self;
    /// See [`transcode()`].
    fn transcode(utf8: &[u8], out: &mut [Self]);
}

macro_rules! unit {
    ($($unit:ty, $transcode:path);*) => {$(
        impl Unit for $unit {
            #[inline]
            fn of_byte(byte: u8) -> Self {
                byte.into()
            }

            #[inline]
            #[allow(clippy::cast_possible_truncation, reason = "the lower bits are what is promised")]
            fn of_code_point(code_point: u32) -> Self {
                code_point as Self
            }

            #[inline]
            fn transcode(utf8: &[u8], out: &mut [Self]) {
                $transcode(utf8, out);
            }
        }
    )*};
}

unit!(u8, transcode_narrow; u16, transcode_narrow; u32, transcode_in_runs);

/// Writes the characters of `utf8` to `out`, one unit each.
///
/// The text must be valid, have exactly `out.len()` characters, and fit into the unit. Otherwise the result
/// is meaningless, but all accesses stay within the slices.
///
/// ```
/// use offlock_core::text::transcode;
///
/// let mut units = [0_u16; 4];
/// transcode("дела".as_bytes(), &mut units);
/// assert_eq!(String::from_utf16_lossy(&units), "дела");
/// ```
#[inline]
pub fn transcode<T: Unit>(utf8: &[u8], out: &mut [T]) {
    T::transcode(utf8, out);
}

/// For units of at most 16 bits, thus characters of at most three bytes.
#[cfg(target_arch = "x86_64")]
#[inline]
fn transcode_narrow<T: Unit + avx512::Narrow>(utf8: &[u8], out: &mut [T]) {
    if avx512::is_there() {
        #[allow(unsafe_code)]
        // SAFETY: the processor has what it needs.
        unsafe {
            avx512::transcode(utf8, out);
        }
    } else {
        transcode_in_runs(utf8, out);
    }
}

#[cfg(not(target_arch = "x86_64"))]
use transcode_in_runs as transcode_narrow;

/// Widens runs of ASCII 16 bytes at a time, and decodes other characters one by one.
fn transcode_in_runs<T: Unit>(mut utf8: &[u8], mut out: &mut [T]) {
    while let (Some((block, after)), Some(places)) =
        (utf8.split_first_chunk::<BLOCK>(), out.first_chunk_mut::<BLOCK>())
    {
        *places = block.map(T::of_byte);
        let others = u8x16::new(*block).to_bitmask();
        if others == 0 {
            (utf8, out) = (after, &mut out[BLOCK..]);
            continue;
        }
        let ascii = others.trailing_zeros() as usize;
        let wide = decode_wide(&utf8[ascii..], &mut out[ascii..]);
        (utf8, out) = (&utf8[ascii + wide.read..], &mut out[ascii + wide.written..]);
    }
    for place in out {
        if utf8.is_empty() {
            return;
        }
        let (code_point, length) = decode(utf8);
        *place = T::of_code_point(code_point);
        utf8 = &utf8[length..];
    }
}

const BLOCK: usize = 16;

struct Progress {
    read: usize,
    written: usize,
}

/// Decodes characters one by one until two adjacent ASCII characters suggest a longer run of them.
#[inline]
fn decode_wide<T: Unit>(utf8: &[u8], out: &mut [T]) -> Progress {
    let mut read = 0;
    for (written, place) in out.iter_mut().enumerate() {
        let rest = &utf8[read..];
        if matches!(rest, [] | [..0x80, ..0x80, ..]) {
            return Progress { read, written };
        }
        let (code_point, length) = decode(rest);
        *place = T::of_code_point(code_point);
        read += length;
    }
    Progress { read, written: out.len() }
}

/// The first character of `utf8` and its length; at a truncated character, the rest of the text.
#[inline]
fn decode(utf8: &[u8]) -> (u32, usize) {
    let tail = |byte: u8| u32::from(byte & 0x3F);
    match *utf8 {
        [a @ ..0x80, ..] => (a.into(), 1),
        [a @ ..0xE0, b, ..] => (u32::from(a & 0x1F) << 6 | tail(b), 2),
        [a @ ..0xF0, b, c, ..] => (u32::from(a & 0x0F) << 12 | tail(b) << 6 | tail(c), 3),
        [a, b, c, d, ..] => (u32::from(a & 0x07) << 18 | tail(b) << 12 | tail(c) << 6 | tail(d), 4),
        _ => (u32::from(char::REPLACEMENT_CHARACTER), utf8.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: Unit + Default + PartialEq + std::fmt::Debug>(text: &str) {
        let naive: Vec<T> = text.chars().map(|c| T::of_code_point(c.into())).collect();
        for transcode in [transcode, transcode_in_runs] {
            let mut out = vec![T::default(); naive.len()];
            transcode(text.as_bytes(), &mut out);
            assert_eq!(out, naive, "{text:?}");
        }
    }

    #[test]
    fn every_code_point_is_decoded() {
        let all: String = ('\0'..=char::MAX).collect();
        check::<u32>(&all);
        check::<u16>(&all[..all.find('\u{10000}').unwrap()]);
        check::<u8>(&all[..all.find('\u{100}').unwrap()]);
    }

    #[test]
    fn runs_of_every_length_meet_every_width() {
        for wide in ["é", "ж", "—", "𐩡", "é𐩡", "——é"] {
            let largest = wide.chars().max();
            for before in 0..67 {
                for after in [0, 1, 2, 3, 15, 16, 17, 31, 33] {
                    let text = ["a".repeat(before).as_str(), wide, &"b".repeat(after)].concat();
                    for text in [&text, &text.repeat(3)] {
                        check::<u32>(text);
                        if largest < Some('\u{10000}') {
                            check::<u16>(text);
                        }
                        if largest < Some('\u{100}') {
                            check::<u8>(text);
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn invalid_text_stays_inside_its_bounds() {
        for bytes in [&b"\xFF"[..], b"\xE2\x80", b"abc\xF0\x9F", b"\x80\x80\x80", b"\xC3"] {
            for room in 0..6 {
                transcode(bytes, &mut vec![0u16; room]);
                transcode_in_runs(bytes, &mut vec![0u16; room]);
            }
        }
    }
}
