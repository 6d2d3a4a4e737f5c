//! The normalization forms of Unicode, and the characters that they leave alone.
//!
//! Most characters are *stable* in a form: it leaves them as they are, and joins them with nothing that stands before them.
//! So a text may be cut before each stable character, and its parts are normalized on their own. To ask the tables of
//! Unicode takes 20 ns or more, so what they say of the characters of the first two planes is kept in bitmaps as these are met.

use crate::Task;
use crate::task::Stretches;
use crate::tokens::Error;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use unicode_normalization_alignments::char::canonical_combining_class;
use unicode_normalization_alignments::{
    IsNormalized, is_nfc_quick, is_nfd_quick, is_nfkc_quick, is_nfkd_quick,
};

/// A normalization form of Unicode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Nfc,
    Nfd,
    Nfkc,
    Nfkd,
}

/// The bytes that are skipped together if all of them are ASCII.
const ASCII: usize = 32;

/// The most characters between two checks of the task.
const MANY: usize = 64;

/// A set of characters of the first two planes.
struct Set([AtomicU64; 1 << 11]);

impl Set {
    const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; 1 << 11])
    }

    fn word(&self, character: char) -> Option<(&AtomicU64, u64)> {
        let number = character as usize;
        Some((self.0.get(number / 64)?, 1 << (number % 64)))
    }

    #[inline]
    fn has(&self, character: char) -> bool {
        self.word(character).is_some_and(|(word, bit)| word.load(Relaxed) & bit != 0)
    }

    fn add(&self, character: char) {
        if let Some((word, bit)) = self.word(character) {
            word.fetch_or(bit, Relaxed);
        }
    }
}

/// The characters that are known to be stable in each form.
static STABLE: [Set; 4] = [const { Set::new() }; 4];

impl Form {
    /// Whether the form leaves a character as it is, and joins it with nothing that stands before it.
    #[inline]
    pub(super) fn leaves(self, character: char) -> bool {
        character.is_ascii() || STABLE[self as usize].has(character) || self.looks_up(character)
    }

    #[cold]
    fn looks_up(self, character: char) -> bool {
        let stable = canonical_combining_class(character) == 0 && self.surely_has(std::iter::once(character));
        if stable {
            STABLE[self as usize].add(character);
        }
        stable
    }

    /// Whether a text is surely in this form.
    pub(super) fn surely_has(self, characters: impl Iterator<Item = char>) -> bool {
        let answer = match self {
            Self::Nfc => is_nfc_quick(characters),
            Self::Nfd => is_nfd_quick(characters),
            Self::Nfkc => is_nfkc_quick(characters),
            Self::Nfkd => is_nfkd_quick(characters),
        };
        answer == IsNormalized::Yes
    }

    /// The next part of a text, from `at` on, that this form may change: characters that are not stable, and the one before
    /// them. `None` if there is none.
    pub(super) fn next_part(
        self,
        text: &str,
        at: usize,
        task: &Task<'_>,
    ) -> Result<Option<Range<usize>>, Error> {
        let unstable = self.find(text, at, false, task)?;
        if unstable == text.len() {
            return Ok(None);
        }
        let before = text[at..unstable].chars().next_back().map_or(0, char::len_utf8);
        Ok(Some(unstable - before..self.find(text, unstable, true, task)?))
    }

    /// Where the first character from `at` on is that is stable, or not; the length of the text if there is none.
    fn find(self, text: &str, mut at: usize, stable: bool, task: &Task<'_>) -> Result<usize, Error> {
        let mut stretches = Stretches::of_items(task);
        while at < text.len() {
            stretches.check(at)?;
            let rest = &text[at..];
            if !stable && rest.as_bytes().first_chunk::<ASCII>().is_some_and(|bytes| bytes.is_ascii()) {
                at += ASCII;
                continue;
            }
            // Up to the next ASCII character, from which on there may be more.
            for character in rest.chars().take(MANY) {
                if self.leaves(character) == stable {
                    return Ok(at);
                }
                at += character.len_utf8();
                if character.is_ascii() {
                    break;
                }
            }
        }
        Ok(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_what_a_form_may_change_with_the_character_before() {
        let task = Task::new();
        let parts = |text: &str, form: Form| {
            let (mut parts, mut at) = (Vec::new(), 0);
            while let Some(part) = form.next_part(text, at, &task).unwrap() {
                at = part.end;
                parts.push(text[part].to_owned());
            }
            parts
        };
        let long = "x".repeat(1 << 16);
        assert_eq!(parts("", Form::Nfc), [""; 0]);
        assert_eq!(parts(&format!("{long}é{long}中"), Form::Nfc), [""; 0]);
        assert_eq!(parts("\u{301}", Form::Nfc), ["\u{301}"]);
        assert_eq!(
            parts(&format!("{long}ae\u{301}\u{323}b\u{301}{long}"), Form::Nfc),
            ["e\u{301}\u{323}", "b\u{301}"]
        );
        assert_eq!(parts("é중 ﬁ", Form::Nfd), ["é중"]);
        assert_eq!(parts("é중 ﬁ", Form::Nfkc), [" ﬁ"]);
        assert_eq!(parts("\u{1d15e}\u{1d165}", Form::Nfc), ["\u{1d15e}\u{1d165}"]);
    }

    #[test]
    fn a_long_search_is_stopped() {
        let task = Task::new();
        task.stop();
        assert!(Form::Nfc.next_part(&"中".repeat(1 << 16), 0, &task).is_err());
        assert!(Form::Nfc.next_part(&"x".repeat(1 << 16), 0, &task).is_err());
        assert!(Form::Nfc.next_part(&"\u{301}".repeat(1 << 16), 0, &task).is_err());
    }
}
