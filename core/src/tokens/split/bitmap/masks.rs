//! The classes of the characters of 64 bytes, one bitmap a class.
//!
//! All bytes of a character carry its class. So runs of a class are runs of ones, whatever the lengths of the
//! characters, and a bit's number is an offset in the text. ASCII is classified by comparisons of whole vectors;
//! the class of each other character is looked up.

#![allow(unsafe_code)]

use super::super::classes::{Class, class_at};
use super::super::deepseek::is_ideograph;
use super::lanes::Lanes;
use super::rules::Rules;

/// Bitmaps of a block. Bytes behind the end of the text are in none.
#[derive(Clone, Copy, Default)]
pub(super) struct Masks {
    /// The classes of `classes.rs` by number. Patterns that cut nothing out have symbols in `Other`.
    classes: [u64; 9],
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
    /// For patterns that cut them out.
    pub(super) ideographs: Ideographs,
}

/// The ideographs of `deepseek.rs`, which are in no other class then.
#[derive(Clone, Copy, Default)]
pub(super) struct Ideographs {
    pub(super) all: u64,
    /// Letters and marks.
    pub(super) letters: u64,
    pub(super) symbols: u64,
}

impl Masks {
    /// The bitmaps of the block at `at`.
    ///
    /// # Safety
    ///
    /// The processor has the instructions of `L`.
    #[inline(always)]
    pub(super) unsafe fn read<R: Rules, L: Lanes>(text: &[u8], at: usize) -> Self {
        // SAFETY: as the caller says.
        let lanes = unsafe { L::load(text, at) };
        let there = if text.len() - at < 64 { (1 << (text.len() - at)) - 1 } else { u64::MAX };
        let newline = lanes.equal(b'\n') | lanes.equal(b'\r');
        let blank = lanes.equal(b' ');
        let wide = lanes.between(0x80, 0xff);
        let mut masks = Self {
            classes: [0; 9],
            text: there,
            wide,
            starts: there,
            apostrophe: lanes.equal(b'\''),
            slash: lanes.equal(b'/'),
            blank,
            ideographs: Ideographs::default(),
        };
        masks.classes[Class::Upper as usize] = lanes.between(b'A', b'Z');
        masks.classes[Class::Lower as usize] = lanes.between(b'a', b'z');
        masks.classes[Class::Number as usize] = lanes.between(b'0', b'9');
        masks.classes[Class::Newline as usize] = newline;
        masks.classes[Class::Space as usize] = blank | (lanes.between(b'\t', b'\r') & !newline);
        if R::CUT_OUT {
            let known = masks.classes.iter().fold(0, |all, class| all | class);
            masks.classes[Class::Symbol as usize] = lanes.between(b'!', b'~') & !known;
        }
        if wide != 0 {
            masks.starts = there & !lanes.between(0x80, 0xbf);
            if R::CUT_OUT {
                // SAFETY: as the caller says.
                unsafe { masks.add_ideographs(text, at, lanes) };
            }
            masks.add_wide::<R>(lanes.wide_classes(text, at, wide & masks.starts));
            masks.add_end_of_character::<R>(text, at);
        }
        let others = masks.classes[1..].iter().fold(masks.ideographs.all, |all, class| all | class);
        masks.classes[Class::Other as usize] = there & !others;
        masks
    }

    /// Adds the ideographs that begin in the block.
    ///
    /// # Safety
    ///
    /// The processor has the instructions of `L`.
    #[inline(always)]
    unsafe fn add_ideographs<L: Lanes>(&mut self, text: &[u8], at: usize, first: L) {
        // SAFETY: as the caller says.
        let behind = |bytes: usize| unsafe { L::load(text, (at + bytes).min(text.len())) };
        let (second, third) = (behind(1), behind(2));
        let starts = first.equal(0xe3) & second.between(0x81, 0x83)
            | first.equal(0xe4) & second.between(0xb8, 0xbf)
            | first.between(0xe5, 0xe8)
            | first.equal(0xe9)
                & (second.between(0x80, 0xbd) | second.equal(0xbe) & third.between(0x80, 0xa5));
        self.ideographs.all = starts | starts << 1 | starts << 2;
    }

    /// Adds the `classes` of the characters that are not ASCII.
    #[inline(always)]
    fn add_wide<R: Rules>(&mut self, classes: impl Lanes) {
        use Class::{Caseless, Lower, Mark, Number, Space, Upper};
        let wide = self.wide & !self.ideographs.all;
        for class in [Upper, Lower, Caseless, Mark, Number, Space] {
            self.classes[class as usize] |= wide & classes.equal(class as u8);
        }
        if R::CUT_OUT {
            let symbols = classes.equal(Class::Symbol as u8);
            self.classes[Class::Symbol as usize] |= wide & symbols;
            self.ideographs.symbols = self.ideographs.all & symbols;
            let letters = classes.equal(Caseless as u8) | classes.equal(Mark as u8);
            self.ideographs.letters = self.ideographs.all & letters;
        }
    }

    /// Adds the class of a character that begins before the block and ends in it.
    #[inline(always)]
    fn add_end_of_character<R: Rules>(&mut self, text: &[u8], at: usize) {
        if self.starts & 1 == 0 {
            let start = (0..at).rfind(|&start| !matches!(text[start], 0x80..0xc0)).unwrap_or(at);
            let (class, end) = class_at(text, start);
            let bytes = (1 << (end - at)) - 1;
            if R::CUT_OUT && is_ideograph(text, start) {
                let ideographs = &mut self.ideographs;
                ideographs.all |= bytes;
                match class {
                    Class::Caseless | Class::Mark => ideographs.letters |= bytes,
                    Class::Symbol => ideographs.symbols |= bytes,
                    _ => {}
                }
            } else if R::CUT_OUT || class != Class::Symbol {
                self.classes[class as usize] |= bytes;
            }
        }
    }

    #[inline(always)]
    pub(super) fn of(&self, class: Class) -> u64 {
        self.classes[class as usize]
    }

    /// All but white space, as far as it is of the same text.
    #[inline(always)]
    pub(super) fn ink<R: Rules>(&self) -> u64 {
        let white = self.of(Class::Space) | self.of(Class::Newline);
        let outside = if R::CUT_OUT { self.of(Class::Number) | self.ideographs.all } else { 0 };
        self.text & !(white | outside)
    }
}
