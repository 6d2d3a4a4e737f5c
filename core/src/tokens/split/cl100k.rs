//! The pattern of cl100k_base, matched by hand.

use super::classes::{Class, class_at};
use super::scan::{blanks, contraction_of_any_case, letters, run, up_to_three_numbers};

/// The pattern.
pub(in crate::tokens) const PATTERN: &str = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s";

/// The end of the piece at `at`.
pub(in crate::tokens) fn end(text: &[u8], at: usize) -> usize {
    if text[at] == b'\'' {
        let length = contraction_of_any_case(&text[at + 1..]);
        if length > 0 {
            return at + 1 + length;
        }
    }
    let (class, next) = class_at(text, at);
    match class {
        Class::Upper | Class::Lower | Class::Caseless => letters(text, next),
        Class::Number => up_to_three_numbers(text, at),
        Class::Newline => white(text, at),
        _ => {
            let (second, after) = class_at(text, next);
            if second.is_letter() {
                letters(text, after)
            } else if class.is_other() {
                with_newlines(text, run(text, next, Class::is_other))
            } else if text[at] == b' ' && second.is_other() {
                with_newlines(text, run(text, after, Class::is_other))
            } else {
                white(text, at)
            }
        }
    }
}

fn with_newlines(text: &[u8], at: usize) -> usize {
    run(text, at, |class| class == Class::Newline)
}

fn white(text: &[u8], at: usize) -> usize {
    let found = blanks(text, at);
    match found.after_newline {
        Some(end) if found.end < text.len() => end,
        _ => found.leave_the_last(text, at),
    }
}
