//! The pattern of o200k_base, matched by hand.

use super::classes::{Class, class_at};
use super::scan::{
    LONG_RUN, blanks, contraction_of_any_case, lower_letters, moved, repeated, run, up_to_three_numbers,
};

/// The pattern.
pub(in crate::tokens) const PATTERN: &str = concat!(
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
);

/// The end of the piece at `at`.
pub(in crate::tokens) fn end(text: &[u8], at: usize) -> usize {
    piece(text, at, |at| word(text, at), |at| symbols(text, at))
}

/// The same with what `word` and `symbols` find from a place on.
#[inline(always)]
pub(super) fn piece(
    text: &[u8],
    at: usize,
    word: impl Fn(usize) -> Result<usize, usize>,
    symbols: impl Fn(usize) -> usize,
) -> usize {
    let (class, next) = class_at(text, at);
    match class {
        Class::Number => up_to_three_numbers(text, at),
        Class::Newline => white(text, at),
        Class::Upper | Class::Lower | Class::Caseless => {
            with_contraction(text, word(at).unwrap_or_else(|upper| upper))
        }
        // A mark is a word of its own unless a word follows that has more than upper case.
        Class::Mark => with_contraction(text, word(next).unwrap_or(next)),
        _ => match word(next) {
            Ok(end) => with_contraction(text, end),
            Err(upper) if upper > next => with_contraction(text, upper),
            Err(_) if class.is_other() => symbols(next),
            Err(_) if text[at] == b' ' && class_at(text, next).0.is_other() => symbols(next),
            Err(_) => white(text, at),
        },
    }
}

/// `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+`: the end of the match, or as the error the
/// end of the upper case letters.
pub(super) fn word(text: &[u8], at: usize) -> Result<usize, usize> {
    word_of(text, at, class_at)
}

/// The same with classes of the caller's own.
#[inline(always)]
pub(super) fn word_of(
    text: &[u8],
    at: usize,
    class_at: impl Fn(&[u8], usize) -> (Class, usize),
) -> Result<usize, usize> {
    let mut end = at;
    let mut after_caseless = None;
    loop {
        for _ in 0..LONG_RUN {
            let (class, next) = class_at(text, end);
            match class {
                Class::Upper => {}
                Class::Caseless | Class::Mark => after_caseless = Some(next),
                Class::Lower => return Ok(lower_letters(text, next, class_at)),
                _ => return after_caseless.ok_or(end),
            }
            end = next;
        }
        let same = repeated(text, end);
        after_caseless = after_caseless.map(|after| moved(after, end, same));
        end += same;
    }
}

/// `(?i:'s|'t|'re|'ve|'m|'ll|'d)?`
fn with_contraction(text: &[u8], at: usize) -> usize {
    if text.get(at) != Some(&b'\'') {
        return at;
    }
    match contraction_of_any_case(&text[at + 1..]) {
        0 => at,
        length => at + 1 + length,
    }
}

/// `[^\s\p{L}\p{N}]*[\r\n/]*`
pub(super) fn symbols(text: &[u8], at: usize) -> usize {
    let end = run(text, at, Class::is_other);
    let more = text[end..].iter().take_while(|byte| matches!(byte, b'\r' | b'\n' | b'/'));
    end + more.count()
}

/// `\s*[\r\n]+|\s+(?!\S)|\s+`
pub(super) fn white(text: &[u8], at: usize) -> usize {
    let found = blanks(text, at);
    found.after_newline.unwrap_or_else(|| found.leave_the_last(text, at))
}
