//! Steps that the patterns share.

use super::classes::{Class, class_at};

/// Where the run of characters that `belongs` accepts ends.
#[inline]
pub(super) fn run(text: &[u8], at: usize, belongs: impl Fn(Class) -> bool) -> usize {
    let mut at = at;
    loop {
        let (class, next) = class_at(text, at);
        if !belongs(class) {
            return at;
        }
        at = next;
    }
}

/// `\p{N}{1,3}`, the first of which is known to be there.
pub(super) fn up_to_three_numbers(text: &[u8], at: usize) -> usize {
    let mut end = class_at(text, at).1;
    for _ in 0..2 {
        let (class, next) = class_at(text, end);
        if class != Class::Number {
            break;
        }
        end = next;
    }
    end
}

/// A run of white space.
pub(super) struct Blanks {
    /// Where it ends.
    pub(super) end: usize,
    /// Where its last character begins.
    pub(super) last: usize,
    /// Where its last line break ends.
    pub(super) after_newline: Option<usize>,
}

/// The run of white space at `at`, which is known to begin there.
pub(super) fn blanks(text: &[u8], at: usize) -> Blanks {
    let mut found = Blanks { end: at, last: at, after_newline: None };
    loop {
        let (class, next) = class_at(text, found.end);
        if !class.is_space() {
            return found;
        }
        if class == Class::Newline {
            found.after_newline = Some(next);
        }
        found.last = found.end;
        found.end = next;
    }
}

impl Blanks {
    /// `\s+(?!\S)|\s`: all of a run at the end of the text, else all but the last character, which what follows
    /// may want; but at least one.
    pub(super) fn leave_the_last(&self, text: &[u8], at: usize) -> usize {
        if self.end == text.len() || self.last == at { self.end } else { self.last }
    }
}

/// The length of `s`, `d`, `m`, `t`, `ll`, `ve` or `re` at the beginning of `text`; 0 if none is there.
pub(super) fn contraction(text: &[u8]) -> usize {
    match text {
        [b's' | b'd' | b'm' | b't', ..] => 1,
        [b'l', b'l', ..] | [b'v', b'e', ..] | [b'r', b'e', ..] => 2,
        _ => 0,
    }
}

/// The same in upper and lower case. Case folding makes U+017F an `s`.
pub(super) fn contraction_of_any_case(text: &[u8]) -> usize {
    match text {
        [0xc5, 0xbf, ..] => 2,
        [a, b, ..] => contraction(&[a.to_ascii_lowercase(), b.to_ascii_lowercase()]),
        [a] => contraction(&[a.to_ascii_lowercase()]),
        [] => 0,
    }
}
