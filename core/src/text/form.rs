//! How wide the characters of a text are.

use wide::{i8x16, u8x16};

/// The narrowest of CPython's storage forms that holds every character of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Form {
    /// All below U+0080: one byte each, the same as UTF-8.
    Ascii,
    /// All below U+0100: one byte each.
    Latin1,
    /// All below U+10000: two bytes each.
    Ucs2,
    /// Four bytes each.
    Ucs4,
}

impl Form {
    /// Every form, from narrow to wide.
    pub const ALL: [Self; 4] = [Self::Ascii, Self::Latin1, Self::Ucs2, Self::Ucs4];

    /// Bytes of one character.
    pub const fn width(self) -> usize {
        match self {
            Self::Ascii | Self::Latin1 => 1,
            Self::Ucs2 => 2,
            Self::Ucs4 => 4,
        }
    }

    /// The form of a text whose largest UTF-8 byte is `byte`: lead bytes are larger than all others and grow
    /// with the character.
    const fn of_largest_byte(byte: u8) -> Self {
        match byte {
            ..0x80 => Self::Ascii,
            0x80..0xC4 => Self::Latin1,
            0xC4..0xF0 => Self::Ucs2,
            0xF0.. => Self::Ucs4,
        }
    }
}

/// What has to be known of a text before its characters can be stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Measure {
    /// How many characters it has.
    pub chars: usize,
    /// How wide they are.
    pub form: Form,
}

/// Counts the characters of `utf8`, which is valid, and finds their form.
#[inline]
pub fn measure(utf8: &[u8]) -> Measure {
    let Some(last) = utf8.last_chunk::<BLOCK>() else { return measure_short(utf8) };
    let (blocks, rest) = utf8.as_chunks::<BLOCK>();
    let last = u8x16::new(*last);
    let largest = blocks.iter().fold(last, |largest, block| largest.max(u8x16::new(*block)));
    let reaches = |byte| largest.max(u8x16::splat(byte)).simd_eq(largest).to_bitmask() != 0;
    let form = match largest.to_bitmask() {
        0 => return Measure { chars: utf8.len(), form: Form::Ascii },
        _ if reaches(0xF0) => Form::Ucs4,
        _ if reaches(0xC4) => Form::Ucs2,
        _ => Form::Latin1,
    };
    // The rest are the last bytes of the last block.
    let in_rest = (starts(last).to_bitmask() >> (BLOCK - rest.len())).count_ones();
    Measure { chars: count(blocks) + in_rest as usize, form }
}

/// The same of less than a block.
fn measure_short(utf8: &[u8]) -> Measure {
    let add = |(chars, largest): (usize, u8), &byte: &u8| {
        (chars + usize::from(byte.cast_signed() > LAST_CONTINUATION), largest.max(byte))
    };
    let (chars, largest) = utf8.iter().fold((0, 0), add);
    Measure { chars, form: Form::of_largest_byte(largest) }
}

/// The number of bytes that begin a character.
fn count(blocks: &[[u8; BLOCK]]) -> usize {
    let of_some = |blocks: &[[u8; BLOCK]]| {
        let mut counts = u8x16::splat(0);
        for block in blocks {
            counts -= starts(u8x16::new(*block)); // true is -1
        }
        counts.to_array().into_iter().map(usize::from).sum::<usize>()
    };
    blocks.chunks(usize::from(u8::MAX)).map(of_some).sum()
}

/// Marks the bytes that begin a character.
#[inline]
fn starts(bytes: u8x16) -> u8x16 {
    bytemuck::cast(bytemuck::cast::<u8x16, i8x16>(bytes).simd_gt(i8x16::splat(LAST_CONTINUATION)))
}

const BLOCK: usize = 16;

/// 0xBF as a signed byte: continuation bytes are the smallest ones.
const LAST_CONTINUATION: i8 = -65;

#[cfg(test)]
mod tests {
    use super::*;

    fn naive(text: &str) -> Measure {
        let form = match text.chars().max().map_or(0, u32::from) {
            ..0x80 => Form::Ascii,
            0x80..0x100 => Form::Latin1,
            0x100..0x1_0000 => Form::Ucs2,
            _ => Form::Ucs4,
        };
        Measure { chars: text.chars().count(), form }
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
            for before in 0..40 {
                let text = format!("{}{edge}{}", "x".repeat(before), "é".repeat(before % 3));
                assert_eq!(measure(text.as_bytes()), naive(&text), "{text:?}");
            }
        }
    }
}
