//! The pattern of GPT-2, r50k_base and p50k_base, matched by hand.

use super::classes::{Class, class_at};
use super::scan::{blanks, contraction, letters, run};

/// The pattern.
pub(in crate::tokens) const PATTERN: &str =
    r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s";

/// The same as models' files have it.
pub(in crate::tokens) const PLAIN: &str =
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";

/// The end of the piece at `at`.
pub(in crate::tokens) fn end(text: &[u8], at: usize) -> usize {
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
        Class::Number => run(text, next, |class| class == Class::Number),
        Class::Symbol | Class::Other | Class::Mark => run(text, next, Class::is_other),
        Class::Space | Class::Newline | Class::End => blanks(text, at).leave_the_last(text, at),
    }
}
