//! The three patterns of DeepSeek V3, which are applied one after the other, matched by hand in one pass.
//!
//! The first cuts out numbers, the second runs of Chinese characters and kana, here called ideographs. Each such
//! run, and what lies between, is a text of its own to the third: `(?!\S)` sees its end. The third leaves some
//! characters out (controls, formats, private and unassigned ones), which are pieces as well.

use super::classes::{self, Class};
use super::scan::{LONG_RUN, ascii_letters, blanks, repeated, run_of, up_to_three_numbers};

/// The patterns.
pub(in crate::tokens) const PATTERNS: [&str; 3] = [
    r"\p{N}{1,3}",
    "[一-龥぀-ゟ゠-ヿ]+",
    concat!(
        r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"##,
        r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ),
];

/// The end of the piece at `at`.
pub(in crate::tokens) fn end(text: &[u8], at: usize) -> usize {
    Part { text, of_ideographs: is_ideograph(text, at) }.end(at)
}

/// Whether the character at `at` is one of `[一-龥぀-ゟ゠-ヿ]`.
#[inline]
pub(super) fn is_ideograph(text: &[u8], at: usize) -> bool {
    matches!(
        text[at..],
        [0xe3, 0x81..=0x83, ..]
            | [0xe4, 0xb8..=0xbf, ..]
            | [0xe5..=0xe8, ..]
            | [0xe9, 0x80..=0xbd, ..]
            | [0xe9, 0xbe, 0x80..=0xa5, ..]
    )
}

fn is_letter(class: Class) -> bool {
    class.is_letter() || class == Class::Mark
}

/// A text that the third pattern cuts: it ends before a number, and where ideographs begin or end.
#[derive(Clone, Copy)]
struct Part<'a> {
    text: &'a [u8],
    of_ideographs: bool,
}

impl Part<'_> {
    fn end(self, at: usize) -> usize {
        let (class, next) = classes::class_at(self.text, at);
        match class {
            Class::Number => up_to_three_numbers(self.text, at),
            Class::Newline => self.white(at),
            Class::Symbol => match self.text.get(next) {
                Some(letter) if self.text[at].is_ascii() && letter.is_ascii_alphabetic() => {
                    ascii_letters(self.text, next)
                }
                _ => self.symbols(next),
            },
            class if is_letter(class) => self.word(next),
            class => match self.class_at(next) {
                (second, after) if is_letter(second) => self.word(after),
                (Class::Symbol, after) if self.text[at] == b' ' => self.symbols(after),
                _ if class == Class::Space => self.white(at),
                _ => self.others(at, next),
            },
        }
    }

    #[inline(always)]
    fn class_at(self, at: usize) -> (Class, usize) {
        match classes::class_at(self.text, at) {
            (Class::Number | Class::End, _) => (Class::End, at),
            _ if is_ideograph(self.text, at) != self.of_ideographs => (Class::End, at),
            other => other,
        }
    }

    #[inline(always)]
    fn run(self, at: usize, belongs: impl Fn(Class) -> bool) -> usize {
        run_of(self.text, at, |_, at| self.class_at(at), belongs)
    }

    /// `[\p{L}\p{M}]*`
    fn word(self, at: usize) -> usize {
        let at = if self.of_ideographs { at } else { ascii_letters(self.text, at) };
        self.run(at, is_letter)
    }

    /// `[\p{P}\p{S}]*[\r\n]*`
    fn symbols(self, at: usize) -> usize {
        let end = self.run(at, |class| class == Class::Symbol);
        self.run(end, |class| class == Class::Newline)
    }

    /// `\s*[\r\n]+|\s+(?!\S)|\s+`
    fn white(self, at: usize) -> usize {
        let found = blanks(self.text, at);
        let is_whole = found.last == at || self.class_at(found.end).0 == Class::End;
        found.after_newline.unwrap_or(if is_whole { found.end } else { found.last })
    }

    /// Characters that the pattern leaves out, of which the first lies before `next`. The last of them belongs to a
    /// letter behind it.
    fn others(self, at: usize, next: usize) -> usize {
        let (mut last, mut end) = (at, next);
        loop {
            for _ in 0..LONG_RUN {
                match self.class_at(end) {
                    (Class::Other, next) => (last, end) = (end, next),
                    (class, _) if is_letter(class) => return last,
                    _ => return end,
                }
            }
            let same = repeated(self.text, end);
            (last, end) = (last + same, end + same);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::cuts::Cuts;
    use super::super::test_engine;
    use super::*;
    use proptest::prelude::*;
    use std::sync::LazyLock;

    static CUTS: LazyLock<Cuts> = LazyLock::new(|| test_engine::cuts(&PATTERNS));

    fn check(text: &str) -> Result<(), TestCaseError> {
        test_engine::check(&CUTS, end, text)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(5_000))]

        #[test]
        fn all_classes_are_cut_as_by_the_engine(
            text in "[Aaé日龥龦ーぁ\u{3099}・\u{303f}\u{3100}\u{301}1½३ \t\u{a0}\u{3000}\n\r'!—😀\u{1}\0\u{200b}\u{ad}\u{e000}\u{ffff}]{0,16}",
        ) {
            check(&text)?;
        }
    }

    #[test]
    fn every_character_is_cut_as_by_the_engine() {
        let around = |c: char| format!("a{c}b{c}{c}é {c} {c}a!{c}a1{c}\n{c}\n日{c}日 {c}{c}!   {c}1");
        test_engine::check_every_character(around, check);
    }

    #[test]
    fn long_runs_are_cut_as_by_the_engine() {
        for run in ["a", "é", "日", "1", " ", "\n", "!", "\u{1}", "\u{200b}", "\u{301}", "\u{3000}"] {
            for length in [31, 32, 33, 64, 1000, 1001] {
                for behind in ["", "a", "é", "日", "1", "!", " ", "\n", "\u{1}"] {
                    check(&format!("{}{behind}", run.repeat(length))).unwrap();
                    check(&format!("!{}{behind}", run.repeat(length))).unwrap();
                }
            }
        }
    }
}
