//! Visitors that build values and can use what is already known of strings and keys.

use super::reader::{Token, Tokens, Visitor};

/// Builds values from a [`Source`](super::Source).
pub trait Builder<'a>: Visitor<'a> {
    /// A string whose bytes have been checked.
    fn text(&mut self, bytes: &'a [u8], text: Text) -> Self::Out;
    /// A map key by its number; `bytes` returns its bytes.
    fn key(&mut self, number: u32, bytes: impl FnOnce() -> &'a [u8]) -> Self::Out;
}

impl<'a> Builder<'a> for Tokens {
    #[inline(always)]
    fn text(&mut self, bytes: &'a [u8], _text: Text) -> Self::Out {
        Ok(Token::Str(bytes))
    }

    #[inline(always)]
    fn key(&mut self, _number: u32, bytes: impl FnOnce() -> &'a [u8]) -> Self::Out {
        Ok(Token::Str(bytes()))
    }
}

/// What is known about the bytes of a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Text {
    /// All below 0x80.
    Ascii,
    /// Valid UTF-8, not all below 0x80.
    Utf8,
    /// Not valid UTF-8.
    Invalid,
}

impl Text {
    /// Checks the bytes.
    #[inline]
    pub fn of(bytes: &[u8]) -> Self {
        if is_ascii(bytes) {
            return Self::Ascii;
        }
        if simdutf8::basic::from_utf8(bytes).is_ok() { Self::Utf8 } else { Self::Invalid }
    }

    pub(super) const fn from_bits(bits: u64) -> Self {
        match bits & 3 {
            0 => Self::Ascii,
            1 => Self::Utf8,
            _ => Self::Invalid,
        }
    }
}

/// Whether all bytes are below 0x80. Faster than `<[u8]>::is_ascii` for short strings: it reads two
/// overlapping words.
#[inline(always)]
pub fn is_ascii(bytes: &[u8]) -> bool {
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let ends = match bytes.len() {
        0 => return true,
        1..4 => u64::from(bytes[0] | bytes[bytes.len() / 2] | bytes[bytes.len() - 1]),
        4..8 => ends::<4>(bytes),
        8..=16 => ends::<8>(bytes),
        _ => return bytes.is_ascii(),
    };
    ends & HIGH == 0
}

/// The bits that are set in the first or the last `N` bytes.
#[inline(always)]
fn ends<const N: usize>(bytes: &[u8]) -> u64 {
    let word = |bytes: Option<&[u8; N]>| {
        let mut wide = [0; 8];
        if let (Some(bytes), Some(start)) = (bytes, wide.first_chunk_mut()) {
            *start = *bytes;
        }
        u64::from_ne_bytes(wide)
    };
    word(bytes.first_chunk()) | word(bytes.last_chunk())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_byte_that_is_not_ascii_is_found_wherever_it_is() {
        for length in 0..40 {
            let mut bytes = vec![b'x'; length];
            assert!(is_ascii(&bytes));
            for place in 0..length {
                bytes[place] = 0x80;
                assert!(!is_ascii(&bytes), "{place} of {length}");
                bytes[place] = 0x7f;
            }
        }
    }
}
