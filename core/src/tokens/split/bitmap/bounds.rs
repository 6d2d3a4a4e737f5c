//! Where pieces begin in a block of 64 bytes, from the bitmaps of the block and of the next one.
//!
//! Each step finds the pieces that may begin with one class of characters. A bitmap shifted up by one says of each
//! byte what comes before it; an addition carries a bit to the end of a run of ones ([`fill`]). What a block needs
//! of the one before it are the highest bits of some bitmaps ([`Before`]); the few questions that look ahead are
//! asked of the next block. What even that one does not answer is *unknown*, and left to the pattern's own
//! function.

use super::super::classes::Class;
use super::super::scan::contraction_of_any_case;
use super::masks::{Ideographs, Masks};
use super::ones::bits;
use super::rules::{Contractions, Marks, Rules};
use std::mem;

/// What is known of a block.
pub(super) struct Bounds {
    /// The first bytes of pieces.
    pub(super) begins: u64,
    /// Places from which on `begins` is not known. All before the first of them is.
    pub(super) unknown: u64,
}

/// Bitmaps of the block before; all zero where the cutting begins.
#[derive(Default)]
pub(super) struct Before {
    any_symbol: Carry,
    absorbed: Carry,
    white: Carry,
    newline: Carry,
    space: Carry,
    blank: Carry,
    symbol: Carry,
    more_symbols: Carry,
    lone_symbol: Carry,
    joined: Carry,
    others: Carry,
    ideographic_letter: Carry,
    ideographic_symbol: Carry,
    word: Carry,
    number: Carry,
    number_pieces: Carry,
    lower_phase: Carry,
    upper_phase: Carry,
    /// What contractions of the block before reach of this one.
    contractions: Attached,
}

/// A bitmap of the block before.
#[derive(Default)]
struct Carry(u64);

impl Carry {
    /// For each byte of the block, whether the one before it is in the bitmap. `now` is kept for the next block.
    #[inline(always)]
    fn behind(&mut self, now: u64) -> u64 {
        now << 1 | mem::replace(&mut self.0, now) >> 63
    }

    /// The lowest bit is set if the last byte of the block before is in the bitmap.
    #[inline(always)]
    fn last(&self) -> u64 {
        self.0 >> 63
    }
}

/// Contractions that have no pieces of their own.
#[derive(Default)]
struct Attached {
    /// All their bytes.
    bytes: u64,
    /// Where they end.
    ends: u64,
}

/// The ones of `run` from those of `seed` on, to the end of their run.
#[inline(always)]
fn fill(seed: u64, run: u64) -> u64 {
    // The sum clears all of a run behind its first seed, but for further seeds.
    run & !run.wrapping_add(seed) | seed
}

/// For each byte, whether the one behind it is in the bitmap.
#[inline(always)]
fn ahead(now: u64, next: u64) -> u64 {
    now >> 1 | next << 63
}

/// The end of the run of ones at bit `at`: 128 if it does not end in the next block.
#[inline(always)]
fn run_end(at: usize, now: u64, next: u64) -> usize {
    let end = at + (now >> at).trailing_ones() as usize;
    if end < 64 { end } else { 64 + next.trailing_ones() as usize }
}

#[inline(always)]
fn is_set(bit: usize, now: u64, next: u64) -> bool {
    (if bit < 64 { now >> bit } else { next >> (bit - 64) }) & 1 != 0
}

/// The number of bytes that are known: two blocks.
const KNOWN: usize = 128;

/// What a pattern takes for letters.
#[inline(always)]
fn word<R: Rules>(masks: &Masks) -> u64 {
    let marks = if R::MARKS == Marks::Symbols { 0 } else { masks.of(Class::Mark) };
    masks.of(Class::Upper) | masks.of(Class::Lower) | masks.of(Class::Caseless) | marks
}

/// What a pattern takes for symbols.
#[inline(always)]
fn symbols<R: Rules>(masks: &Masks) -> u64 {
    let marks = if R::MARKS == Marks::Symbols { masks.of(Class::Mark) } else { 0 };
    masks.of(if R::CUT_OUT { Class::Symbol } else { Class::Other }) | marks
}

/// Cuts the block at `at`, and leaves in `before` what the next one needs.
#[inline(always)]
pub(super) fn bounds<R: Rules>(
    text: &[u8],
    at: usize,
    now: &Masks,
    next: &Masks,
    before: &mut Before,
) -> Bounds {
    let mut block = Block { text, at, now, next, begins: 0, unknown: 0 };
    let absorbed = block.absorbed::<R>(before);
    block.white::<R>(absorbed, before);
    block.numbers::<R>(before);
    let (behind_word, own_symbols) = block.symbols_and_words::<R>(absorbed, before);
    let contractions = match R::CONTRACTIONS {
        Contractions::Attached => block.attached(block.apostrophes::<R>() & behind_word, before),
        Contractions::Apart => block.apart(block.apostrophes::<R>() & own_symbols, before),
        Contractions::Unknown => Attached::default(),
    };
    if R::CUT_OUT {
        block.ideographs(before);
    }
    if R::CASES {
        block.cases::<R>(contractions.ends, before);
    }
    let begins = block.begins & !contractions.bytes | contractions.ends;
    Bounds { begins: begins & now.text, unknown: block.unknown }
}

/// A block that is cut.
struct Block<'a> {
    text: &'a [u8],
    at: usize,
    now: &'a Masks,
    next: &'a Masks,
    begins: u64,
    unknown: u64,
}

impl Block<'_> {
    /// Line breaks (and slashes) that belong to the symbols before them.
    #[inline(always)]
    fn absorbed<R: Rules>(&mut self, before: &mut Before) -> u64 {
        let newline = self.now.of(Class::Newline);
        let tail = newline | if R::SLASHES { self.now.slash } else { 0 };
        let seed = newline & before.any_symbol.behind(symbols::<R>(self.now));
        let absorbed = fill(seed | tail & before.absorbed.last(), tail);
        self.begins |= before.absorbed.behind(absorbed) & !absorbed;
        absorbed
    }

    /// A run of white space is cut behind its last line break, and before its last character.
    #[inline(always)]
    fn white<R: Rules>(&mut self, absorbed: u64, before: &mut Before) {
        let space = self.now.of(Class::Space);
        let newline = self.now.of(Class::Newline) & !absorbed;
        let white = space | newline;
        self.begins |= white & !before.white.behind(white);
        let after_newline = before.newline.behind(newline) & !newline;
        self.begins |= after_newline;
        let undecided = after_newline & space;
        let (sum, is_open) = space.overflowing_add(undecided);
        if is_open || sum & !space & !self.now.ink::<R>() != 0 {
            self.newlines::<R>(undecided);
        }
        let (ink, next_ink) = (self.now.ink::<R>(), self.next.ink::<R>());
        self.begins |= self.before(space, ink, next_ink);
    }

    /// Those of the characters `of` that have one of the others behind them: their first bytes.
    #[inline(always)]
    fn before(&self, of: u64, others: u64, next_others: u64) -> u64 {
        let mut found = of & !self.now.wide & ahead(others, next_others);
        for bit in bits(of & self.now.wide & self.now.starts) {
            let length = match self.text[self.at + bit] {
                ..0xe0 => 2,
                0xe0..0xf0 => 3,
                _ => 4,
            };
            if is_set(bit + length, others, next_others) {
                found |= 1 << bit;
            }
        }
        found
    }

    /// Looks at what follows the spaces behind line breaks: these may not be the last ones of their run.
    #[inline(always)]
    fn newlines<R: Rules>(&mut self, undecided: u64) {
        let of_both = |class| (self.now.of(class), self.next.of(class));
        let ((space, next_space), (newline, next_newline)) = (of_both(Class::Space), of_both(Class::Newline));
        for bit in bits(undecided) {
            let end = run_end(bit, space, next_space);
            if end == KNOWN {
                self.unknown |= 1 << bit;
            } else if is_set(end, newline, next_newline)
                || R::BLANK_END && !is_set(end, self.now.text, self.next.text)
            {
                self.begins &= !(1 << bit);
            }
        }
    }

    #[inline(always)]
    fn numbers<R: Rules>(&mut self, before: &mut Before) {
        let number = self.now.of(Class::Number);
        if !R::THREE_NUMBERS {
            self.begins |= number & self.now.starts;
            return;
        }
        // Those that are not ASCII have several bytes.
        self.unknown |= number & self.now.wide;
        let two = before.number.0 >> 62;
        let one_before = before.number.behind(number);
        let third = number & one_before & (number << 2 | two);
        let mut pieces = number & !one_before;
        let mut more = (pieces << 3 | before.number_pieces.0 >> 61) & third;
        while more != 0 {
            pieces |= more;
            more = more << 3 & third;
        }
        before.number_pieces.0 = pieces;
        self.begins |= pieces;
    }

    /// Symbols belong to a blank before them, and one symbol to the word behind it. Returns what may begin a
    /// contraction: behind a word, and by itself.
    #[inline(always)]
    fn symbols_and_words<R: Rules>(&mut self, absorbed: u64, before: &mut Before) -> (u64, u64) {
        let symbol = symbols::<R>(self.now) & !absorbed;
        let behind_symbol = before.symbol.behind(symbol);
        let first = symbol & !behind_symbol;
        let behind_blank = before.blank.behind(self.now.blank);
        let own = first & !behind_blank;
        self.begins |= own;
        // All but a symbol that has no other character before it in its piece.
        let more = symbol & self.now.starts & behind_symbol | first & behind_blank;
        let more = fill(more | symbol & before.more_symbols.last(), symbol);
        before.more_symbols.0 = more;

        let word = word::<R>(self.now);
        let behind_lone = if R::CUT_OUT {
            self.joined::<R>(own, before) | self.others::<R>(word, before)
        } else {
            before.lone_symbol.behind(symbol & !more)
        };
        let behind_word = before.word.behind(word);
        let behind_space = before.space.behind(self.now.of(Class::Space));
        self.begins |= word & !behind_word & !behind_space & !behind_lone;
        if R::MARKS == Marks::Both {
            self.unknown |= self.now.of(Class::Mark) & self.now.starts & behind_symbol;
        }
        (behind_word, own)
    }

    /// A symbol of ASCII takes the letters of ASCII behind it, and no more of their word. Returns where such letters
    /// begin.
    #[inline(always)]
    fn joined<R: Rules>(&mut self, own: u64, before: &mut Before) -> u64 {
        let letters = |masks: &Masks| (masks.of(Class::Upper) | masks.of(Class::Lower)) & !masks.wide;
        let now = letters(self.now);
        let symbols = own & !self.now.wide & ahead(now, letters(self.next));
        let behind_symbol = before.lone_symbol.behind(symbols);
        let joined = fill(now & (behind_symbol | before.joined.last()), now);
        self.begins |= before.joined.behind(joined) & !joined & word::<R>(self.now);
        behind_symbol
    }

    /// A run of characters that are in no other class is a piece, but for the last one before a letter, which belongs
    /// to that letter's word. Returns what lies behind such a run.
    #[inline(always)]
    fn others<R: Rules>(&mut self, word_now: u64, before: &mut Before) -> u64 {
        let others = self.now.of(Class::Other);
        let behind = before.others.behind(others);
        self.begins |= others & !behind | self.before(others, word_now, word::<R>(self.next));
        behind
    }

    /// In a run of ideographs, letters and symbols are pieces.
    #[inline(always)]
    fn ideographs(&mut self, before: &mut Before) {
        let Ideographs { all, letters, symbols } = self.now.ideographs;
        self.begins |= letters & !before.ideographic_letter.behind(letters);
        self.begins |= symbols & !before.ideographic_symbol.behind(symbols);
        self.unknown |= all & !letters & !symbols;
    }

    /// Where an apostrophe is that has a letter behind it.
    #[inline(always)]
    fn apostrophes<R: Rules>(&self) -> u64 {
        self.now.apostrophe & ahead(word::<R>(self.now), word::<R>(self.next))
    }

    /// The ends of contractions that are pieces: at `apostrophes`, if what follows is one.
    #[inline(always)]
    fn apart(&self, apostrophes: u64, before: &mut Before) -> Attached {
        let mut ends = u128::from(mem::take(&mut before.contractions).ends);
        for bit in bits(apostrophes) {
            ends |= self.contraction_end(bit).map_or(0, |end| 1 << end);
        }
        before.contractions.ends = (ends >> 64) as u64;
        Attached { bytes: 0, ends: ends as u64 }
    }

    /// The same for contractions that belong to a word. Only one does, of several in a row.
    #[inline(always)]
    fn attached(&self, apostrophes: u64, before: &mut Before) -> Attached {
        let known = mem::take(&mut before.contractions);
        let (mut bytes, mut ends) = (u128::from(known.bytes), u128::from(known.ends));
        for bit in bits(apostrophes) {
            if ends >> bit & 1 != 0 {
                continue;
            }
            if let Some(end) = self.contraction_end(bit) {
                bytes |= (1 << end) - (1 << bit);
                ends |= 1 << end;
            }
        }
        before.contractions = Attached { bytes: (bytes >> 64) as u64, ends: (ends >> 64) as u64 };
        Attached { bytes: bytes as u64, ends: ends as u64 }
    }

    /// The end of the contraction whose apostrophe is at `bit`.
    #[inline(always)]
    fn contraction_end(&self, bit: usize) -> Option<usize> {
        match contraction_of_any_case(&self.text[self.at + bit + 1..]) {
            0 => None,
            length => Some(bit + 1 + length),
        }
    }

    /// Cuts words before upper case: `[Upper Both]* [Lower Both]+`, where *both* are letters without case, and
    /// marks. From its first lower case letter on, a word is in its lower phase, which upper case ends. A word
    /// that has no lower case ends behind its last letter that is both. New words begin at `ends`.
    #[inline(always)]
    fn cases<R: Rules>(&mut self, ends: u64, before: &mut Before) {
        let (upper, lower) = (self.now.of(Class::Upper), self.now.of(Class::Lower));
        let both = self.now.of(Class::Caseless) | self.now.of(Class::Mark);
        let behind_lower = lower << 1 | before.lower_phase.last();
        let lower_phase = lower | fill(both & behind_lower & !ends, both);
        let upper_phase = both & !lower_phase;
        self.begins |= upper & before.lower_phase.behind(lower_phase);
        let undecided = upper & before.upper_phase.behind(upper_phase);
        let (next_upper, next_word) = (self.next.of(Class::Upper), word::<R>(self.next));
        for bit in bits(undecided) {
            let end = run_end(bit, upper, next_upper);
            if end == KNOWN {
                self.unknown |= 1 << bit;
            } else if !is_set(end, word::<R>(self.now), next_word) {
                self.begins |= 1 << bit;
            }
        }
    }
}
