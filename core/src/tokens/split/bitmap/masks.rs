//! The classes of the characters of 64 bytes, one bitmap a class.
//!
//! All bytes of a character carry its class. So runs of a class are runs of ones, whatever the lengths of the
//! characters, and a bit's number is an offset in the text. ASCII is classified by comparisons of whole vectors;
//! the class of each other character is looked up.

#![allow(unsafe_code)]

use super::super::classes::{Class, class_at};
use super::lanes::Lanes;

/// Bitmaps of a block. Bytes behind the end of the text are in none.
#[derive(Clone, Copy, Default)]
pub(super) struct Masks {
    /// The classes of `classes.rs` by number.
    classes: [u64; 8],
    /// All bytes of the text.
    pub(super) text: u64,
    /// Of characters that are not ASCII.
    pub(super) wide: u64,
    /// The first byte of each character.
    pub(super) starts: u64,
    pub(super) apostrophe: u64,
    pub(super) slash: u64,
    /// U+0020.
    pub(super) blank: u64,
}

impl Masks {
    /// The bitmaps of the block at `at`.
    ///
    /// # Safety
    ///
    /// The processor has the instructions of `L`.
    #[inline(always)]
    pub(super) unsafe fn read<L: Lanes>(text: &[u8], at: usize) -> Self {
        // SAFETY: as the caller says.
        let lanes = unsafe { L::load(text, at) };
        let there = if text.len() - at < 64 { (1 << (text.len() - at)) - 1 } else { u64::MAX };
        let newline = lanes.equal(b'\n') | lanes.equal(b'\r');
        let blank = lanes.equal(b' ');
        let wide = lanes.between(0x80, 0xff);
        let mut masks = Self {
            classes: [0; 8],
            text: there,
            wide,
            starts: there,
            apostrophe: lanes.equal(b'\''),
            slash: lanes.equal(b'/'),
            blank,
        };
        masks.classes[Class::Upper as usize] = lanes.between(b'A', b'Z');
        masks.classes[Class::Lower as usize] = lanes.between(b'a', b'z');
        masks.classes[Class::Number as usize] = lanes.between(b'0', b'9');
        masks.classes[Class::Newline as usize] = newline;
        masks.classes[Class::Space as usize] = blank | (lanes.between(b'\t', b'\r') & !newline);
        if wide != 0 {
            masks.starts = there & !lanes.between(0x80, 0xbf);
            masks.add_wide(lanes.wide_classes(text, at, wide & masks.starts));
            masks.add_end_of_character(text, at);
        }
        let others = masks.classes[1..].iter().fold(0, |all, class| all | class);
        masks.classes[Class::Other as usize] = there & !others;
        masks
    }

    /// Adds the `classes` of the characters that are not ASCII.
    #[inline(always)]
    fn add_wide(&mut self, classes: impl Lanes) {
        use Class::{Caseless, Lower, Mark, Number, Space, Upper};
        for class in [Upper, Lower, Caseless, Mark, Number, Space] {
            self.classes[class as usize] |= self.wide & classes.equal(class as u8);
        }
    }

    /// Adds the class of a character that begins before the block and ends in it.
    #[inline(always)]
    fn add_end_of_character(&mut self, text: &[u8], at: usize) {
        if self.starts & 1 == 0 {
            let start = (0..at).rfind(|&start| !matches!(text[start], 0x80..0xc0)).unwrap_or(at);
            let (class, end) = class_at(text, start);
            self.classes[class as usize] |= (1 << (end - at)) - 1;
        }
    }

    #[inline(always)]
    pub(super) fn of(&self, class: Class) -> u64 {
        self.classes[class as usize]
    }

    /// All but white space.
    #[inline(always)]
    pub(super) fn ink(&self) -> u64 {
        self.text & !(self.of(Class::Space) | self.of(Class::Newline))
    }
}
