//! The pattern of Mistral's tekken, matched by hand: o200k_base's without contractions, and with numbers one
//! at a time.

use super::classes::{Class, class_at};
use super::o200k::{symbols, white, word};

/// The pattern.
pub(in crate::tokens) const PATTERN: &str = concat!(
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+",
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*",
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
);

/// The end of the piece at `at`.
pub(in crate::tokens) fn end(text: &[u8], at: usize) -> usize {
    let (class, next) = class_at(text, at);
    match class {
        Class::Number => next,
        Class::Newline => white(text, at),
        Class::Upper | Class::Lower | Class::Caseless => word(text, at).unwrap_or_else(|upper| upper),
        // A mark is a word of its own unless a word follows that has more than upper case.
        Class::Mark => word(text, next).unwrap_or(next),
        _ => match word(text, next) {
            Ok(end) => end,
            Err(upper) if upper > next => upper,
            Err(_) if class.is_other() => symbols(text, next),
            Err(_) if text[at] == b' ' && class_at(text, next).0.is_other() => symbols(text, next),
            Err(_) => white(text, at),
        },
    }
}
