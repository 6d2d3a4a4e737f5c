//! The position of one piece of a text.

/// The bytes `start..end` of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Offset of the first byte.
    pub start: usize,
    /// Offset behind the last byte.
    pub end: usize,
}

impl Span {
    /// How many bytes it has.
    pub const fn len(self) -> usize {
        self.end - self.start
    }

    /// Whether it has none.
    pub const fn is_empty(self) -> bool {
        self.start == self.end
    }

    /// The piece of `text`, of whose bytes this is the position.
    #[inline]
    pub fn of(self, text: &[u8]) -> &[u8] {
        &text[self.start..self.end]
    }
}
