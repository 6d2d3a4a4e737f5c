//! The class of each character, as far as the patterns of the public encodings tell characters apart.
//!
//! A two-stage table, as is usual for Unicode properties: one entry for each block of 64 characters, which
//! leads to a list of 64 classes that equal blocks share. A block is what all bytes of the UTF-8 encoding but
//! the last determine. The build script makes the table from the same Unicode data that tiktoken's regular
//! expressions use.

/// The class of a character.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Class {
    /// None of the others: controls, formats, private and unassigned characters.
    Other,
    /// `\p{Lu}` and `\p{Lt}`.
    Upper,
    /// `\p{Ll}`.
    Lower,
    /// `\p{Lm}` and `\p{Lo}`: letters that count as upper and as lower case.
    Caseless,
    /// `\p{M}`.
    Mark,
    /// `\p{N}`.
    Number,
    /// `\s` without line breaks.
    Space,
    /// `[\r\n]`.
    Newline,
    /// `[\p{P}\p{S}]`.
    Symbol,
    /// No character: the end of the text.
    End,
}

impl Class {
    const BY_NUMBER: [Self; 9] = [
        Self::Other,
        Self::Upper,
        Self::Lower,
        Self::Caseless,
        Self::Mark,
        Self::Number,
        Self::Space,
        Self::Newline,
        Self::Symbol,
    ];

    /// `\p{L}`.
    pub(super) fn is_letter(self) -> bool {
        matches!(self, Self::Upper | Self::Lower | Self::Caseless)
    }

    /// `[\p{Ll}\p{Lm}\p{Lo}\p{M}]`.
    pub(super) fn is_lower_or_both(self) -> bool {
        matches!(self, Self::Lower | Self::Caseless | Self::Mark)
    }

    /// `\s`.
    pub(super) fn is_space(self) -> bool {
        matches!(self, Self::Space | Self::Newline)
    }

    /// `[^\s\p{L}\p{N}]`.
    pub(super) fn is_other(self) -> bool {
        matches!(self, Self::Symbol | Self::Other | Self::Mark)
    }
}

/// The table that `build/unicode.rs` wrote.
const PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/classes"));
/// Characters whose UTF-8 encodings differ in the last byte only share a block.
const BLOCK: usize = 64;
const BLOCKS: usize = (char::MAX as usize + 1) / BLOCK;

/// For each block, the start of its list of classes in `LISTS`.
static LIST_OF_BLOCK: [u16; BLOCKS] = {
    let mut lists = [0; BLOCKS];
    let mut i = 0;
    while i < BLOCKS {
        lists[i] = u16::from_le_bytes([PACKED[2 * i], PACKED[2 * i + 1]]) * BLOCK as u16;
        i += 1;
    }
    lists
};

static LISTS: [Class; PACKED.len() - 2 * BLOCKS] = {
    let mut classes = [Class::Other; PACKED.len() - 2 * BLOCKS];
    let mut i = 0;
    while i < classes.len() {
        classes[i] = Class::BY_NUMBER[PACKED[2 * BLOCKS + i] as usize];
        i += 1;
    }
    classes
};

/// The classes of the 64 characters whose UTF-8 encodings differ in the last byte only. `block` is the number that
/// the bits of the other bytes make.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) const fn block(block: usize) -> &'static [Class; BLOCK] {
    match LISTS.split_at(LIST_OF_BLOCK[block] as usize).1.first_chunk() {
        Some(classes) => classes,
        None => unreachable!(),
    }
}

/// The classes of the bytes that are a character by themselves; the others count as `Other`.
pub(super) static ASCII: [Class; 256] = {
    let mut classes = [Class::Other; 256];
    let mut i = 0;
    while i < 128 {
        classes[i] = LISTS[LIST_OF_BLOCK[i / BLOCK] as usize + i % BLOCK];
        i += 1;
    }
    classes
};

/// The class of the character at `at`, and the start of the next one. `text` is valid UTF-8 from `at` on.
#[inline(always)]
pub(super) fn class_at(text: &[u8], at: usize) -> (Class, usize) {
    match text.get(at) {
        None => (Class::End, at),
        Some(&byte) if byte < 0x80 => (ASCII[byte as usize], at + 1),
        Some(&byte) => wide_class_at(text, at, byte),
    }
}

#[inline(never)]
fn wide_class_at(text: &[u8], at: usize, lead: u8) -> (Class, usize) {
    wide_class(text, at, lead)
}

/// The same for a character that is not ASCII, whose first byte is `lead`.
#[inline(always)]
pub(super) fn wide_class(text: &[u8], at: usize, lead: u8) -> (Class, usize) {
    let low = |offset: usize| usize::from(text[at + offset] & 0x3f);
    let lead = usize::from(lead);
    let (block, last) = match lead {
        0xc0..0xe0 => (lead & 0x1f, 1),
        0xe0..0xf0 => ((lead & 0x0f) << 6 | low(1), 2),
        _ => ((lead & 0x07) << 12 | low(1) << 6 | low(2), 3),
    };
    (LISTS[LIST_OF_BLOCK[block] as usize + low(last)], at + last + 1)
}
