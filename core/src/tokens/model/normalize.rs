//! Unicode normalization, with the tables that Hugging Face's tokenizers use, and where each byte of the
//! result comes from.
//!
//! What a model was trained with decides which tables are right, not the newest Unicode: the crate
//! unicode-normalization-alignments has those of Unicode 9, and a mark that was added later is left alone.

use crate::memory::{self, OutOfMemory};
use crate::tokens::Error;
use crate::{Stopped, Task};
use std::borrow::Cow;
use std::ops::Range;
use unicode_normalization_alignments::char::canonical_combining_class;
use unicode_normalization_alignments::{
    IsNormalized, UnicodeNormalization, is_nfc_quick, is_nfd_quick, is_nfkc_quick, is_nfkd_quick,
};

/// A normalization form of Unicode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Nfc,
    Nfd,
    Nfkc,
    Nfkd,
}

/// The characters between two checks of the task.
const STRETCH: usize = 4096;

/// A text, and where it comes from.
pub(super) struct Normalized<'t> {
    pub(super) text: Cow<'t, str>,
    /// For each byte, the bytes of the original that its character stands for; none if nothing was changed,
    /// or if nobody asked.
    origins: Cow<'t, [Origin]>,
    /// Where in the original the origins begin to count.
    start: usize,
    /// Whether the text has a blank in front, which the origins do not count.
    has_blank: bool,
}

/// The start and end of a part of the original, in bytes.
pub(super) type Origin = (usize, usize);

impl<'t> Normalized<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text: Cow::Borrowed(text), origins: Cow::default(), start: 0, has_blank: false }
    }

    /// Applies the forms one after the other.
    pub(super) fn normalize(
        mut self,
        forms: &[Form],
        with_origins: bool,
        task: &Task<'_>,
    ) -> Result<Self, Error> {
        for form in forms {
            if !is_normalized(&self.text, *form, task)? {
                let text = &*self.text;
                self = match form {
                    Form::Nfc => self.replaced(text.nfc(), with_origins, task)?,
                    Form::Nfd => self.replaced(text.nfd(), with_origins, task)?,
                    Form::Nfkc => self.replaced(text.nfkc(), with_origins, task)?,
                    Form::Nfkd => self.replaced(text.nfkd(), with_origins, task)?,
                };
            }
        }
        Ok(self)
    }

    /// The text that consists of `characters`, each with the number of characters by which the text grows
    /// (one that is added after another) or shrinks (those that vanish into it).
    fn replaced(
        &self,
        characters: impl Iterator<Item = (char, isize)>,
        with_origins: bool,
        task: &Task<'_>,
    ) -> Result<Normalized<'t>, Error> {
        let mut text = memory::with_capacity(self.text.len())?;
        let mut origins = memory::with_capacity(if with_origins { self.text.len() } else { 0 })?;
        let mut replaced = self.text.chars();
        let mut at = 0;
        for (number, (character, change)) in characters.enumerate() {
            if number.is_multiple_of(STRETCH) {
                task.check()?;
            }
            let mut bytes = [0; 4];
            let bytes = character.encode_utf8(&mut bytes).as_bytes();
            memory::append(&mut text, bytes)?;
            if with_origins {
                // What is added shares the origin of what stands before it.
                let origin = match change {
                    1.. if at == 0 => (0, 0),
                    1.. => self.origin(at - 1),
                    _ => self.origin(at),
                };
                for _ in bytes {
                    memory::push(&mut origins, origin)?;
                }
                let gone = usize::try_from(1 - change).unwrap_or(0);
                at += replaced.by_ref().take(gone).map(char::len_utf8).sum::<usize>();
            }
        }
        let text = String::from_utf8(text).expect("characters are UTF-8");
        Ok(Normalized { text: Cow::Owned(text), origins: Cow::Owned(origins), start: 0, has_blank: false })
    }

    /// The bytes of the original that the byte at `at` stands for.
    pub(super) fn origin(&self, at: usize) -> Origin {
        let blank = usize::from(self.has_blank);
        // The blank in front stands for what the first character does.
        let at = at.max(blank);
        if let Some(&(start, end)) = self.origins.get(at - blank) {
            return (start.saturating_sub(self.start), end.saturating_sub(self.start));
        }
        let start = floor(&self.text, at);
        (start - blank, ceil(&self.text, start + 1) - blank)
    }

    /// Where in an original of `length` bytes the byte at `at`, or the end, comes from.
    pub(super) fn origin_start(&self, at: usize, length: usize) -> usize {
        if at == self.text.len() {
            return length;
        }
        let at = at.saturating_sub(usize::from(self.has_blank));
        self.origins.get(at).map_or(at, |&(start, _)| start.saturating_sub(self.start))
    }

    /// A part of the text, whose original is a part of this one's `length` bytes.
    pub(super) fn slice(&self, range: Range<usize>, length: usize) -> Normalized<'_> {
        Normalized {
            start: self.start + self.origin_start(range.start, length),
            origins: Cow::Borrowed(self.origins.get(range.clone()).unwrap_or_default()),
            text: Cow::Borrowed(&self.text[range]),
            has_blank: false,
        }
    }

    /// Puts a blank before a text that has none, as the original's first character.
    pub(super) fn with_blank(self) -> Result<Self, OutOfMemory> {
        if self.text.is_empty() || self.text.starts_with(' ') {
            return Ok(self);
        }
        let text = memory::joined(&[b" ", self.text.as_bytes()])?;
        let text = Cow::Owned(String::from_utf8(text).expect("a blank and a text are UTF-8"));
        Ok(Self { text, has_blank: true, ..self })
    }
}

/// The start of the character that has a byte at `at`.
pub(super) fn floor(text: &str, at: usize) -> usize {
    (0..=at).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0)
}

/// The end of the character that has a byte before `at`.
pub(super) fn ceil(text: &str, at: usize) -> usize {
    (at..text.len()).find(|&at| text.is_char_boundary(at)).unwrap_or(text.len())
}

/// Whether the forms leave a character as it is, and join it with nothing that stands before it.
pub(super) fn is_stable(character: char, forms: &[Form]) -> bool {
    let is_left = |form: &Form| quick_check(*form, std::iter::once(character)) == IsNormalized::Yes;
    forms.is_empty()
        || character.is_ascii()
        || canonical_combining_class(character) == 0 && forms.iter().all(is_left)
}

fn quick_check(form: Form, characters: impl Iterator<Item = char>) -> IsNormalized {
    match form {
        Form::Nfc => is_nfc_quick(characters),
        Form::Nfd => is_nfd_quick(characters),
        Form::Nfkc => is_nfkc_quick(characters),
        Form::Nfkd => is_nfkd_quick(characters),
    }
}

/// Whether the text is surely in this form.
fn is_normalized(text: &str, form: Form, task: &Task<'_>) -> Result<bool, Stopped> {
    if text.is_ascii() {
        return Ok(true);
    }
    let mut count = 0_usize;
    let mut goes_on = true;
    let characters = text.chars().take_while(|_| {
        count += 1;
        goes_on = !count.is_multiple_of(STRETCH) || task.check().is_ok();
        goes_on
    });
    let is_normalized = quick_check(form, characters);
    if goes_on { Ok(is_normalized == IsNormalized::Yes) } else { Err(Stopped) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nfc(text: &str) -> (String, Vec<Origin>) {
        let normalized = Normalized::new(text).normalize(&[Form::Nfc], true, &Task::new()).unwrap();
        let origins = (0..normalized.text.len()).map(|at| normalized.origin(at)).collect();
        (normalized.text.into_owned(), origins)
    }

    #[test]
    fn a_composed_character_comes_from_its_base() {
        assert_eq!(nfc("ae\u{301}b"), ("aéb".into(), vec![(0, 1), (1, 2), (1, 2), (4, 5)]));
    }

    #[test]
    fn a_decomposed_character_comes_from_the_whole() {
        let origins = vec![(0, 2), (0, 2), (0, 2), (0, 2)];
        assert_eq!(nfc("\u{344}"), ("\u{308}\u{301}".into(), origins));
    }

    #[test]
    fn what_is_in_the_form_stays_where_it_is() {
        assert!(matches!(Normalized::new("é").normalize(&[Form::Nfc], true, &Task::new()),
            Ok(Normalized { text: Cow::Borrowed("é"), origins, .. }) if origins.is_empty()));
    }

    #[test]
    fn a_blank_is_put_before_a_text_that_has_none() {
        let text = |text| Normalized::new(text).with_blank().unwrap();
        assert_eq!((&*text("é").text, text("é").origin(0), text("é").origin(1)), (" é", (0, 2), (0, 2)));
        assert_eq!((&*text(" a").text, &*text("").text), (" a", ""));
    }
}
