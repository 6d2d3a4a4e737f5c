//! The patterns of Llama 3 and Phi-4 and of Qwen 2.5 and 3, matched by hand. They differ from cl100k_base's in
//! what they take of blanks with line breaks, and Qwen's takes numbers one at a time.

use super::classes::{Class, class_at};
use super::o200k::white;
use super::scan::{contraction_of_any_case, letters, run, up_to_three_numbers};

/// The pattern of Llama 3.
pub(in crate::tokens) const PATTERN: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// The pattern of Qwen 2.5 and 3.
pub(in crate::tokens) const QWEN: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// The pattern of Qwen 3.5, which counts marks as letters.
pub(in crate::tokens) const QWEN35: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// The end of the piece at `at` in the pattern of Llama 3.
pub(in crate::tokens) fn end(text: &[u8], at: usize) -> usize {
    piece(text, at, up_to_three_numbers, Class::is_letter, letters)
}

/// The same in the pattern of Qwen 2.5 and 3.
pub(in crate::tokens) fn qwen(text: &[u8], at: usize) -> usize {
    piece(text, at, one_number, Class::is_letter, letters)
}

/// The same in the pattern of Qwen 3.5.
pub(in crate::tokens) fn qwen35(text: &[u8], at: usize) -> usize {
    piece(text, at, one_number, is_letter_or_mark, |text, at| run(text, letters(text, at), is_letter_or_mark))
}

fn is_letter_or_mark(class: Class) -> bool {
    class.is_letter() || class == Class::Mark
}

fn one_number(text: &[u8], at: usize) -> usize {
    class_at(text, at).1
}

#[inline(always)]
fn piece(
    text: &[u8],
    at: usize,
    numbers: impl Fn(&[u8], usize) -> usize,
    is_letter: impl Fn(Class) -> bool,
    letters: impl Fn(&[u8], usize) -> usize,
) -> usize {
    if text[at] == b'\'' {
        let length = contraction_of_any_case(&text[at + 1..]);
        if length > 0 {
            return at + 1 + length;
        }
    }
    let is_symbol = |class: Class| class.is_other() && !is_letter(class);
    let symbols = |from: usize| {
        let end = run(text, from, is_symbol);
        run(text, end, |class| class == Class::Newline)
    };
    let (class, next) = class_at(text, at);
    match class {
        Class::Number => numbers(text, at),
        Class::Newline => white(text, at),
        class if is_letter(class) => letters(text, next),
        class => {
            let (second, after) = class_at(text, next);
            if is_letter(second) {
                letters(text, after)
            } else if is_symbol(class) {
                symbols(next)
            } else if text[at] == b' ' && is_symbol(second) {
                symbols(after)
            } else {
                white(text, at)
            }
        }
    }
}
