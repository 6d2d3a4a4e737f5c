//! A short piece of text as a number of words, which are compared at once.

use super::table::Window;

/// The bytes of a piece, padded with zeros; the last byte is the length.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct PieceKey([u64; 4]);

impl PieceKey {
    /// `None` if the piece is too long for the cache.
    #[inline]
    pub(super) fn new(text: &[u8], at: usize, length: usize) -> Option<Self> {
        if length > 31 {
            return None;
        }
        let more = (at + Window::SIZE).min(text.len());
        let ([a, b], [c, d]) = (Window::at(text, at).words(), Window::at(text, more).words());
        let mut words = [a, b, c, d];
        for (index, word) in words.iter_mut().enumerate() {
            let kept = length.saturating_sub(8 * index).min(8);
            *word &= u64::MAX.checked_shr(64 - 8 * kept as u32).unwrap_or(0);
        }
        words[3] |= (length as u64) << 56;
        Some(Self(words))
    }

    #[inline]
    pub(super) fn words(self) -> [u64; 4] {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_the_same_at_the_end_of_a_text_and_differ_in_length() {
        let key = |text: &[u8], at, length| PieceKey::new(text, at, length).unwrap();
        let long = [b'x'; 64];
        for length in 0..=31 {
            assert!(key(&long, 7, length) == key(&long[..length], 0, length));
            assert!(key(&long, 0, length) != key(&long, 0, (length + 1) % 32));
        }
        assert!(key(b"a\0", 0, 1) != key(b"a\0", 0, 2));
    }
}
