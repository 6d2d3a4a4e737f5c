//! The width of a text's stored characters: CPython's kinds of `str` ([PEP
//! 393](https://peps.python.org/pep-0393/)).
//!
//! CPython stores the characters of a `str` as an array of fixed width, the narrowest that holds the largest
//! character. The largest byte of the UTF-8 encoding determines it: lead bytes are larger than continuation
//! bytes and grow with the character.
//!
//! | largest character | largest byte of UTF-8 | kind | bytes per character |
//! |---|---|---|---|
//! | below U+0080 | below 0x80 | ASCII | 1 |
//! | below U+0100 | below 0xC4 | Latin-1 | 1 |
//! | below U+10000 | below 0xF0 | UCS-2 | 2 |
//! | others | from 0xF0 | UCS-4 | 4 |

/// The narrowest of CPython's storage kinds that holds every character of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum StrKind {
    /// All below U+0080: one byte each, the same as UTF-8.
    Ascii,
    /// All below U+0100: one byte each.
    Latin1,
    /// All below U+10000: two bytes each.
    Ucs2,
    /// Four bytes each.
    Ucs4,
}

impl StrKind {
    /// Every kind, from narrow to wide.
    pub const ALL: [Self; 4] = [Self::Ascii, Self::Latin1, Self::Ucs2, Self::Ucs4];

    /// Bytes of one character.
    pub const fn width(self) -> usize {
        match self {
            Self::Ascii | Self::Latin1 => 1,
            Self::Ucs2 => 2,
            Self::Ucs4 => 4,
        }
    }

    /// The kind of a text; `reaches` tells whether some byte of its UTF-8 is at least as large as the given
    /// one.
    #[inline]
    pub(super) fn of_bytes(reaches: impl Fn(u8) -> bool) -> Self {
        Self::ALL[usize::from(reaches(0x80)) + usize::from(reaches(0xC4)) + usize::from(reaches(0xF0))]
    }
}

/// What must be known of a text before its characters can be stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Measure {
    /// How many characters it has.
    pub chars: usize,
    /// How wide they are.
    pub kind: StrKind,
}

impl Measure {
    /// The measure of `bytes` bytes of ASCII.
    pub(super) const fn of_ascii(bytes: usize) -> Self {
        Self { chars: bytes, kind: StrKind::Ascii }
    }
}

/// 0xBF as a signed byte. As signed bytes, continuation bytes are the smallest ones.
pub(super) const LAST_CONTINUATION: i8 = -65;
