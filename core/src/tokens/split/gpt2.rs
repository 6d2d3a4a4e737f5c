//! The pattern of GPT-2, r50k_base and p50k_base, matched by hand, also between single digits.

use super::classes::{Class, class_at};
use super::scan::{blanks, contraction, letters, run};

/// The pattern.
pub(in crate::tokens) const PATTERN: &str =
    r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s";

/// The same as models' files have it.
pub(in crate::tokens) const PLAIN: &str =
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";

/// The pattern that cuts out each digit before, in the models StarCoder, SmolLM and Command R.
pub(in crate::tokens) const DIGIT: &str = r"\p{N}";

/// The end of the piece at `at`.
pub(in crate::tokens) fn end(text: &[u8], at: usize) -> usize {
    piece::<false>(text, at)
}

/// The same if [`DIGIT`] cuts the text before. What lies between two digits is a text of its own: `(?!\S)` sees its end.
pub(in crate::tokens) fn between_digits(text: &[u8], at: usize) -> usize {
    piece::<true>(text, at)
}

#[inline(always)]
fn piece<const DIGITS_APART: bool>(text: &[u8], at: usize) -> usize {
    if text[at] == b'\'' {
        let length = contraction(&text[at + 1..]);
        if length > 0 {
            return at + 1 + length;
        }
    }
    let start = at + usize::from(text[at] == b' ');
    let (class, next) = class_at(text, start);
    match class {
        Class::Upper | Class::Lower | Class::Caseless => letters(text, next),
        Class::Number if !DIGITS_APART => run(text, next, |class| class == Class::Number),
        Class::Number if start == at => next,
        Class::Symbol | Class::Other | Class::Mark => run(text, next, Class::is_other),
        Class::Space | Class::Newline | Class::End | Class::Number => {
            let found = blanks(text, at);
            let ends_here = DIGITS_APART && class_at(text, found.end).0 == Class::Number;
            if ends_here { found.end } else { found.leave_the_last(text, at) }
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

    static CUTS: LazyLock<Cuts> = LazyLock::new(|| test_engine::cuts(&[DIGIT, PLAIN]));

    fn check(text: &str) -> Result<(), TestCaseError> {
        test_engine::check(&CUTS, between_digits, text)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(5_000))]

        #[test]
        fn between_digits_all_classes_are_cut_as_by_the_engine(
            text in "[Aaslé日\u{301}1½३ \t\u{a0}\u{3000}\n\r'!—😀\u{1}\0\u{200b}]{0,16}",
        ) {
            check(&text)?;
        }
    }

    #[test]
    fn between_digits_long_runs_are_cut_as_by_the_engine() {
        for run in ["a", "é", "日", "1", "½", " ", "\n", "!", "\u{301}", "\u{3000}", " \n", "1 "] {
            for length in [1, 2, 31, 32, 33, 64, 1001] {
                for behind in ["", "a", "日", "1", "३", "!", " ", "\n", "'s"] {
                    check(&format!("{}{behind}", run.repeat(length))).unwrap();
                    check(&format!("!{}{behind}", run.repeat(length))).unwrap();
                    check(&format!("1{}{behind}", run.repeat(length))).unwrap();
                }
            }
        }
    }
}
