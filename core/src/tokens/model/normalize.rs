//! Unicode normalization, with the tables that Hugging Face's tokenizers use, and where each byte of the
//! result comes from.
//!
//! What a model was trained with decides which tables are right, not the newest Unicode: the crate
//! unicode-normalization-alignments has those of Unicode 9, and a mark that was added later is left alone.

use super::form::Form;
use crate::Task;
use crate::memory::{self, OutOfMemory};
use crate::task::Stretches;
use crate::tokens::Error;
use std::borrow::Cow;
use std::ops::Range;
use unicode_normalization_alignments::UnicodeNormalization;

/// The bytes that are kept as they are between two checks of the task.
const KEPT: usize = 1 << 16;

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
            if let Some(changed) = self.in_form(*form, with_origins, task)? {
                self = changed;
            }
        }
        Ok(self)
    }

    /// The text in a form; `None` if it is in that form.
    fn in_form(
        &self,
        form: Form,
        with_origins: bool,
        task: &Task<'_>,
    ) -> Result<Option<Normalized<'t>>, Error> {
        let mut changed: Option<Changed> = None;
        let (mut at, mut kept) = (0, 0);
        while let Some(part) = form.next_part(&self.text, at, task)? {
            at = part.end;
            if is_in_form(form, &self.text[part.clone()], task)? {
                continue;
            }
            let changed = match &mut changed {
                Some(changed) => changed,
                None => changed.insert(Changed::new(self.text.len(), with_origins)?),
            };
            changed.keep(self, kept..part.start, task)?;
            changed.replace(self, part, form, task)?;
            kept = at;
        }
        let Some(mut changed) = changed else { return Ok(None) };
        changed.keep(self, kept..self.text.len(), task)?;
        Ok(Some(changed.finish()))
    }

    /// Whether the text is another one than the original, whose places were asked for.
    pub(super) fn is_changed(&self) -> bool {
        !self.origins.is_empty()
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

/// Whether a part of a text is surely in a form.
fn is_in_form(form: Form, part: &str, task: &Task<'_>) -> Result<bool, Error> {
    let (mut stretches, mut goes_on) = (Stretches::of_items(task), Ok(()));
    let characters = part.char_indices().map_while(|(at, character)| {
        goes_on = stretches.check(at);
        goes_on.is_ok().then_some(character)
    });
    let is_in_form = form.surely_has(characters);
    goes_on?;
    Ok(is_in_form)
}

/// A text that a form has changed, up to now, and where it comes from.
struct Changed {
    text: Vec<u8>,
    origins: Option<Vec<Origin>>,
}

impl Changed {
    fn new(length: usize, with_origins: bool) -> Result<Self, OutOfMemory> {
        let origins = if with_origins { Some(memory::with_capacity(length)?) } else { None };
        Ok(Self { text: memory::with_capacity(length)?, origins })
    }

    /// Appends a part of a text as it is.
    fn keep(&mut self, of: &Normalized<'_>, part: Range<usize>, task: &Task<'_>) -> Result<(), Error> {
        for start in part.clone().step_by(KEPT) {
            task.check()?;
            let some = start..part.end.min(start + KEPT);
            memory::append(&mut self.text, &of.text.as_bytes()[some.clone()])?;
            if let Some(origins) = &mut self.origins {
                memory::reserve(origins, some.len())?;
                origins.extend(some.map(|at| of.origin(at)));
            }
        }
        Ok(())
    }

    /// Appends a part of a text in a form.
    fn replace(
        &mut self,
        of: &Normalized<'_>,
        part: Range<usize>,
        form: Form,
        task: &Task<'_>,
    ) -> Result<(), Error> {
        let text = &of.text[part.clone()];
        match form {
            Form::Nfc => self.append(of, part, text.nfc(), task),
            Form::Nfd => self.append(of, part, text.nfd(), task),
            Form::Nfkc => self.append(of, part, text.nfkc(), task),
            Form::Nfkd => self.append(of, part, text.nfkd(), task),
        }
    }

    /// Appends what a part of a text becomes: `characters`, each with the number of characters by which the text grows
    /// (one that is added after another) or shrinks (those that vanish into it).
    fn append(
        &mut self,
        of: &Normalized<'_>,
        part: Range<usize>,
        characters: impl Iterator<Item = (char, isize)>,
        task: &Task<'_>,
    ) -> Result<(), Error> {
        let mut replaced = of.text[part.clone()].chars();
        let (mut at, mut stretches) = (part.start, Stretches::of_items(task));
        for (number, (character, change)) in characters.enumerate() {
            stretches.check(number)?;
            let mut bytes = [0; 4];
            let bytes = character.encode_utf8(&mut bytes).as_bytes();
            memory::append(&mut self.text, bytes)?;
            let Some(origins) = &mut self.origins else { continue };
            // What is added shares the origin of what stands before it.
            let origin = match change {
                1.. if at == 0 => (0, 0),
                1.. => of.origin(at - 1),
                _ => of.origin(at),
            };
            for _ in bytes {
                memory::push(origins, origin)?;
            }
            let gone = usize::try_from(1 - change).unwrap_or(0);
            at += replaced.by_ref().take(gone).map(char::len_utf8).sum::<usize>();
        }
        Ok(())
    }

    fn finish<'t>(self) -> Normalized<'t> {
        let text = String::from_utf8(self.text).expect("parts of texts and characters are UTF-8");
        let origins = Cow::Owned(self.origins.unwrap_or_default());
        Normalized { text: Cow::Owned(text), origins, start: 0, has_blank: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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

    proptest! {
        #[test]
        fn parts_become_what_the_whole_does(text in texts()) {
            let (task, given) = (Task::new(), Normalized::new(&text));
            for form in [Form::Nfc, Form::Nfd, Form::Nfkc, Form::Nfkd] {
                let mut whole = Changed::new(text.len(), true).unwrap();
                whole.replace(&given, 0..text.len(), form, &task).unwrap();
                let expected = whole.finish();
                for with_origins in [false, true] {
                    let made = Normalized::new(&text).normalize(&[form], with_origins, &task).unwrap();
                    prop_assert_eq!(&made.text, &expected.text);
                    for at in (0..made.text.len()).filter(|_| with_origins) {
                        prop_assert_eq!(made.origin(at), expected.origin(at), "{} in {:?}", at, form);
                    }
                }
            }
        }
    }

    /// Texts with letters, marks of several classes, parts of syllables, and characters that forms replace.
    fn texts() -> impl Strategy<Value = String> {
        let marks = prop::sample::select(
            "\u{301}\u{323}\u{327}\u{94d}\u{93c}\u{5b4}\u{64b}\u{1d165}\u{345}".chars().collect::<Vec<_>>(),
        );
        let parts = prop::sample::select(
            "\u{1100}\u{1161}\u{11a8}가각\u{9c7}\u{9be}\u{1112}\u{1175}".chars().collect::<Vec<_>>(),
        );
        let replaced = prop::sample::select(
            "ﬁ①Å\u{958}\u{344}\u{212b}\u{2126}\u{f900}ḍ\u{1d15e}ẛ̣".chars().collect::<Vec<_>>(),
        );
        let other = prop::sample::select("ae é中ж".chars().collect::<Vec<_>>());
        let character = prop_oneof![marks, parts, replaced, other, any::<char>()];
        (prop::collection::vec(character, 0..40), 0..3_usize).prop_map(|(characters, long)| {
            let text: String = characters.into_iter().collect();
            text.clone() + &"long text of ASCII ".repeat(5 * long) + &text
        })
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
