//! The pattern of Kimi K2, matched by hand: o200k_base's, except that runs of Chinese characters are pieces of their own,
//! which end words, and that slashes do not belong to the symbols before them.

use super::classes::{Class, class_at};
use super::o200k::{piece, word_of};
use super::scan::{run, run_of};
use std::cmp::Ordering;

/// The pattern.
pub(in crate::tokens) const PATTERN: &str = concat!(
    r"[\p{Han}]+",
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
);

/// The end of the piece at `at`.
pub(in crate::tokens) fn end(text: &[u8], at: usize) -> usize {
    if is_han(text, at) {
        return run_of(text, at, only_han, |class| class == Class::Caseless);
    }
    piece(text, at, |at| word_of(text, at, without_han), |at| symbols(text, at))
}

/// The class of a character in a word, which ends before Chinese characters.
fn without_han(text: &[u8], at: usize) -> (Class, usize) {
    if is_han(text, at) { (Class::End, at) } else { class_at(text, at) }
}

/// The class of a character in a run of Chinese ones, whichever class it has elsewhere.
fn only_han(text: &[u8], at: usize) -> (Class, usize) {
    if is_han(text, at) { (Class::Caseless, class_at(text, at).1) } else { (Class::End, at) }
}

/// `[^\s\p{L}\p{N}]*[\r\n]*`
fn symbols(text: &[u8], at: usize) -> usize {
    let end = run(text, at, Class::is_other);
    run(text, end, |class| class == Class::Newline)
}

/// The first and last characters of the ranges of `\p{Han}`, which `build/unicode.rs` wrote.
const PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/han"));

static HAN: [(u32, u32); PACKED.len() / 8] = {
    let (words, _) = PACKED.as_chunks();
    let mut ranges = [(0, 0); PACKED.len() / 8];
    let mut i = 0;
    while i < ranges.len() {
        ranges[i] = (u32::from_le_bytes(words[2 * i]), u32::from_le_bytes(words[2 * i + 1]));
        i += 1;
    }
    ranges
};

/// Whether the character at `at` is one of `\p{Han}`.
#[inline]
fn is_han(text: &[u8], at: usize) -> bool {
    match text[at..] {
        // From U+5000 to U+8FFF there are no others, below U+2000 there are none.
        [0xe5..=0xe8, ..] => true,
        [0xe2..=0xf4, ..] => is_in_ranges(code_point(text, at)),
        _ => false,
    }
}

fn is_in_ranges(character: u32) -> bool {
    let place = |&(first, last): &(u32, u32)| match character {
        _ if last < character => Ordering::Less,
        _ if first > character => Ordering::Greater,
        _ => Ordering::Equal,
    };
    HAN.binary_search_by(place).is_ok()
}

/// The character of three or four bytes at `at`.
fn code_point(text: &[u8], at: usize) -> u32 {
    let low = |offset: usize| u32::from(text[at + offset] & 0x3f);
    match u32::from(text[at]) {
        lead @ ..0xf0 => (lead & 0x0f) << 12 | low(1) << 6 | low(2),
        lead => (lead & 0x07) << 18 | low(1) << 12 | low(2) << 6 | low(3),
    }
}

#[cfg(test)]
mod tests {
    use super::super::cuts::Cuts;
    use super::super::test_engine;
    use super::*;
    use proptest::prelude::*;
    use std::sync::LazyLock;

    static CUTS: LazyLock<Cuts> = LazyLock::new(|| test_engine::cuts(&[PATTERN]));

    fn check(text: &str) -> Result<(), TestCaseError> {
        test_engine::check(&CUTS, end, text)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(5_000))]

        #[test]
        fn all_classes_are_cut_as_by_the_engine(
            text in "[AaǅéslL日々〇〡⺀〻㐀\u{16ff0}\u{20000}ーァ한\u{301}1½ \t\u{a0}\u{3000}\n\r'!/—😀\u{1}\u{200b}]{0,16}",
        ) {
            check(&text)?;
        }
    }

    #[test]
    fn every_character_is_cut_as_by_the_engine() {
        let around = |c: char| format!("a{c}b{c}{c}é {c} {c}a!{c}A1{c}\n{c}日{c}日 日{c}'s!");
        test_engine::check_every_character(around, check);
    }
}
