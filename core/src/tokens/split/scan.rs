//! Steps that several patterns share.
//!
//! Runs of ASCII are scanned eight bytes at a time with ordinary 64-bit arithmetic (SWAR): one expression
//! computes for all eight bytes whether they belong to the run. In long runs of other classes, repetitions of the
//! last few characters are found by comparing eight bytes at a time, so that a hundred million bytes of one
//! character are cut in a few milliseconds: within a piece no interrupt is looked for.

use super::classes::{Class, class_at};

/// After this many characters a run may be a long one.
pub(super) const LONG_RUN: usize = 32;

/// The end of the run of characters that `belongs` accepts.
#[inline]
pub(super) fn run(text: &[u8], at: usize, belongs: impl Fn(Class) -> bool) -> usize {
    run_of(text, at, class_at, belongs)
}

/// The same with classes of the caller's own.
#[inline(always)]
pub(super) fn run_of(
    text: &[u8],
    at: usize,
    class_at: impl Fn(&[u8], usize) -> (Class, usize),
    belongs: impl Fn(Class) -> bool,
) -> usize {
    let mut at = at;
    loop {
        for _ in 0..LONG_RUN {
            let (class, next) = class_at(text, at);
            if !belongs(class) {
                return at;
            }
            at = next;
        }
        at += repeated(text, at);
    }
}

/// How many bytes from `at` on repeat the [`PERIOD`] bytes before it, as far as eight bytes can be compared at a time; a
/// multiple of [`PERIOD`]. So the characters in them are of the same classes, and end as the ones before `at` do.
#[cold]
pub(super) fn repeated(text: &[u8], at: usize) -> usize {
    let (words, _) = text[at..].as_chunks::<8>();
    let (earlier, _) = text[at - PERIOD..].as_chunks::<8>();
    let same = words.iter().zip(earlier).take_while(|(word, earlier)| word == earlier);
    8 * same.count() / PERIOD * PERIOD
}

/// A multiple of the lengths of all characters, and of those of many repeated groups of them. A long run has that many
/// bytes.
const PERIOD: usize = 12;

/// The end of the run of letters.
#[inline]
pub(super) fn letters(text: &[u8], at: usize) -> usize {
    run(text, many_ascii_letters(text, at), Class::is_letter)
}

/// The end of the run of ASCII letters.
#[inline]
pub(super) fn ascii_letters(text: &[u8], at: usize) -> usize {
    let end = many_ascii_letters(text, at);
    end + text[end..].iter().take_while(|byte| byte.is_ascii_alphabetic()).count()
}

/// The same as far as eight bytes can be read at a time.
#[inline]
fn many_ascii_letters(text: &[u8], at: usize) -> usize {
    // Setting the case bit maps upper to lower case; it makes no other character a letter.
    ascii_run(text, at, |word| between(word | (ONES * 0x20), b'a', b'z'))
}

/// The end of the run of marks and of letters of lower case or of no case, as `class_at` tells them.
#[inline(always)]
pub(super) fn lower_letters(
    text: &[u8],
    at: usize,
    class_at: impl Fn(&[u8], usize) -> (Class, usize),
) -> usize {
    let end = ascii_run(text, at, |word| between(word, b'a', b'z'));
    run_of(text, end, class_at, Class::is_lower_or_both)
}

const ONES: u64 = u64::MAX / 0xff;
const HIGHEST: u64 = ONES << 7;

/// The end of a run, as far as eight bytes can be read at a time. `belongs` returns a word in which the
/// highest bit of each byte says whether that byte belongs to the run. Most words of a text end within the
/// first eight bytes, so the loop exit is well predicted.
#[inline]
fn ascii_run(text: &[u8], at: usize, belongs: impl Fn(u64) -> u64) -> usize {
    let others = |bytes: [u8; 8]| !belongs(u64::from_le_bytes(bytes)) & HIGHEST;
    let mut at = at;
    loop {
        for _ in 0..LONG_RUN / 8 {
            let Some(&bytes) = text[at..].first_chunk() else { return at };
            let others = others(bytes);
            at += others.trailing_zeros() as usize / 8;
            if others != 0 {
                return at;
            }
        }
        at += LONG_RUN * long_part(&text[at..], others);
    }
}

/// How often [`LONG_RUN`] bytes without others follow each other. Where the next ones are does not depend on what was
/// found in the last ones, so they are read at the same time.
#[inline(never)]
fn long_part(text: &[u8], others: impl Fn([u8; 8]) -> u64) -> usize {
    let belong =
        |bytes: &&[u8; LONG_RUN]| bytes.as_chunks().0.iter().fold(0, |all, &bytes| all | others(bytes)) == 0;
    text.as_chunks().0.iter().take_while(belong).count()
}

/// Sets the highest bit of each byte that lies between `first` and `last`, which are ASCII. All other bits
/// are zero.
#[inline]
fn between(word: u64, first: u8, last: u8) -> u64 {
    let low = word & !HIGHEST;
    let not_before = low + ONES * u64::from(0x80 - first);
    let behind = low + ONES * u64::from(0x7f - last);
    not_before & !behind & !word & HIGHEST
}

/// `\p{N}{1,3}`; the first number is known to be there.
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

/// Where the last of some characters ends that was at `place` before `bytes` bytes of repetitions were added at `end`.
pub(super) fn moved(place: usize, end: usize, bytes: usize) -> usize {
    if place + PERIOD > end { place + bytes } else { place }
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

/// The run of white space that begins at `at`.
pub(super) fn blanks(text: &[u8], at: usize) -> Blanks {
    let mut found = Blanks { end: at, last: at, after_newline: None };
    loop {
        for _ in 0..LONG_RUN {
            let (class, next) = class_at(text, found.end);
            if !class.is_space() {
                return found;
            }
            found.add(class, next);
        }
        found.repeat(repeated(text, found.end));
    }
}

impl Blanks {
    /// Adds the character of this class that ends at `next`.
    #[inline]
    fn add(&mut self, class: Class, next: usize) {
        if class == Class::Newline {
            self.after_newline = Some(next);
        }
        self.last = self.end;
        self.end = next;
    }

    /// Adds what repeats the last [`PERIOD`] bytes.
    fn repeat(&mut self, bytes: usize) {
        self.after_newline = self.after_newline.map(|after| moved(after, self.end, bytes));
        self.last += bytes;
        self.end += bytes;
    }

    /// `\s+(?!\S)|\s`: the whole run at the end of the text, otherwise all but its last character, but at
    /// least one.
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bytes_between_two_others_are_found_wherever_they_stand() {
        for byte in 0..=u8::MAX {
            for place in 0..8 {
                for around in [0, b'a', b'z', 0x80, 0xff] {
                    let mut bytes = [around; 8];
                    bytes[place] = byte;
                    let found = between(u64::from_le_bytes(bytes), b'a', b'z');
                    for (byte, found) in bytes.into_iter().zip(found.to_le_bytes()) {
                        assert_eq!(found, if byte.is_ascii_lowercase() { 0x80 } else { 0 });
                    }
                }
            }
        }
    }

    #[test]
    fn long_runs_are_found_as_short_ones() {
        for length in (0..100).chain([1000, 1001, 1007]) {
            for (character, class) in
                [("\n", Class::Newline), (" ", Class::Space), ("!", Class::Symbol), ("é", Class::Lower)]
            {
                for after in ["", "a", "日", " ", "\n", "\u{301}"] {
                    let text = format!("{}{after}", character.repeat(length));
                    let (naive, _) = text
                        .char_indices()
                        .map(|(at, c)| (at, class_at(c.to_string().as_bytes(), 0).0))
                        .find(|(_, other)| *other != class)
                        .unwrap_or((text.len(), class));
                    assert_eq!(
                        run(text.as_bytes(), 0, |other| other == class),
                        naive,
                        "{length} {character:?} {after:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn long_blanks_are_found_as_one_by_one() {
        for (repeated, times) in [(" ", 0..90), ("\n", 0..90), ("\r\n", 0..90), ("\u{3000}", 0..90)] {
            for length in times {
                for (before, after) in
                    [("", ""), ("\n", " "), (" ", "\n"), ("", "a"), ("\n", " a"), (" ", "\t\ta")]
                {
                    let text = format!("{before}{}{after}", repeated.repeat(length));
                    let end = text.find('a').unwrap_or(text.len());
                    let found = blanks(text.as_bytes(), 0);
                    let last = text[..end].char_indices().last().map_or(0, |(at, _)| at);
                    let newline = text[..end].rfind(['\r', '\n']).map(|at| at + 1);
                    assert_eq!(
                        (found.end, found.last, found.after_newline),
                        (end, last, newline),
                        "{text:?}"
                    );
                }
            }
        }
    }

    proptest! {
        #[test]
        fn letters_are_found_eight_at_a_time_as_one_by_one(text in "[a-cA-C@\\[`{ 1éÉ日\u{301}]{0,40}", at in 0..40_usize) {
            let at = (0..=at.min(text.len())).rfind(|&at| text.is_char_boundary(at)).unwrap();
            let text = text.as_bytes();
            prop_assert_eq!(letters(text, at), run(text, at, Class::is_letter));
            prop_assert_eq!(lower_letters(text, at, class_at), run(text, at, Class::is_lower_or_both));
            let is_ascii = |byte: &&u8| byte.is_ascii_alphabetic();
            prop_assert_eq!(ascii_letters(text, at), at + text[at..].iter().take_while(is_ascii).count());
        }
    }
}
