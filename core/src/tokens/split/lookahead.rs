//! Which pieces stay as they are, whatever text follows: how far the patterns that are matched by hand look
//! ahead.
//!
//! Such a pattern reads a text once, from the beginning of a piece on, and nothing before that. Behind the piece
//! that it finds it reads
//!
//! - the rest of a run of white space, if the piece ends in white space (whether a line break follows, or
//!   something else);
//! - the rest of a run of letters and marks, if the piece ends in one (whether one of lower case follows);
//! - one more character, and the two behind it if it is an apostrophe (a contraction).
//!
//! A piece that begins with an apostrophe is found with regard to the two characters behind it. So a piece is
//! final if all of this lies before the end of what is known of the text, and then the pieces before it are final,
//! too: what they look at ends no later.

use super::classes::{Class, class_at};
use super::cuts::Scan;
use super::scan::run;
use crate::tokens::encoder::STRETCH;
use crate::{Stopped, Task};

/// The number of bytes of an apostrophe and what a contraction may have behind it.
const CONTRACTION: usize = 3;

/// The end of the last final piece of `text` that begins less than a stretch after `at`, where a piece begins;
/// `at` if there is none. A piece that ends where `may_end` says no does not count, and the search goes on behind
/// a stretch without others.
pub(in crate::tokens) fn last_final(
    scan: Scan,
    text: &str,
    at: usize,
    may_end: impl Fn(usize) -> bool,
    task: &Task<'_>,
) -> Result<usize, Stopped> {
    let bytes = text.as_bytes();
    let (mut start, mut found, mut read) = (at, at, at);
    let mut limit = at + STRETCH;
    task.check()?;
    while start < bytes.len() && (start < limit || found == at) {
        if start >= limit {
            task.check()?;
            limit = start + STRETCH;
        }
        let end = scan(bytes, start);
        // Several pieces may lie in one run.
        read = if end <= read { read } else { run_behind(bytes, end) };
        if !is_final(bytes, start, read) {
            break;
        }
        if may_end(end) {
            found = end;
        }
        start = end;
    }
    Ok(found)
}

/// Whether the piece at `start`, for which runs are read up to `read`, stays as it is, whatever follows `text`.
fn is_final(text: &[u8], start: usize, read: usize) -> bool {
    let is_known = |at: usize| match text.get(at) {
        None => false,
        Some(b'\'') => text.len() >= at + CONTRACTION,
        Some(_) => true,
    };
    is_known(start) && is_known(read)
}

/// The end of the run that the pattern looks at behind a piece that ends at `end`.
fn run_behind(text: &[u8], end: usize) -> usize {
    match class_before(text, end) {
        last if last.is_space() => run(text, end, Class::is_space),
        last if is_in_word(last) => run(text, end, is_in_word),
        _ => end,
    }
}

fn is_in_word(class: Class) -> bool {
    class.is_letter() || class == Class::Mark
}

/// The class of the character that ends at `end`.
fn class_before(text: &[u8], end: usize) -> Class {
    let is_first = |at: &usize| !matches!(text[*at], 0x80..0xc0);
    let start = (0..end).rev().find(is_first).unwrap_or(0);
    class_at(text, start).0
}

#[cfg(test)]
mod tests {
    use super::super::{cl100k, deepseek, gpt2, kimi, llama3, o200k, tekken};
    use super::*;
    use proptest::prelude::*;

    const SCANS: [(&str, Scan); 10] = [
        ("gpt2", gpt2::end),
        ("gpt2 between digits", gpt2::between_digits),
        ("cl100k", cl100k::end),
        ("o200k", o200k::end),
        ("llama3", llama3::end),
        ("qwen", llama3::qwen),
        ("qwen35", llama3::qwen35),
        ("tekken", tekken::end),
        ("kimi", kimi::end),
        ("deepseek", deepseek::end),
    ];

    /// Of each class, and all that the patterns name.
    const CHARACTERS: [&str; 16] =
        ["\u{1}", "A", "a", "s", "l", "L", "日", "\u{301}", "1", " ", "\u{3000}", "\n", "'", "!", "/", "ſ"];

    fn ends(scan: Scan, text: &str) -> Vec<usize> {
        let next = |&at: &usize| (at < text.len()).then(|| scan(text.as_bytes(), at));
        std::iter::successors(next(&0), next).collect()
    }

    /// Checks every beginning of `text`.
    fn check(text: &str) -> Result<(), TestCaseError> {
        for (name, scan) in SCANS {
            let whole = ends(scan, text);
            for known in (0..=text.len()).filter(|&at| text.is_char_boundary(at)) {
                let end = last_final(scan, &text[..known], 0, |_| true, &Task::new()).unwrap();
                let before: Vec<_> = whole.iter().copied().take_while(|&other| other <= end).collect();
                prop_assert_eq!(before.last().copied().unwrap_or(0), end, "{} {:?} {}", name, text, known);
                let now = ends(scan, &text[..known]);
                prop_assert!(now.starts_with(&before), "{} {:?} {}", name, text, known);
            }
        }
        Ok(())
    }

    /// Calls `each` for all texts of `length` characters.
    fn all_texts(length: usize, text: &mut String, each: &mut impl FnMut(&str)) {
        if length == 0 {
            return each(text);
        }
        for character in CHARACTERS {
            text.push_str(character);
            all_texts(length - 1, text, each);
            text.truncate(text.len() - character.len());
        }
    }

    #[test]
    fn what_is_final_in_the_beginning_of_a_text_is_so_in_the_whole() {
        all_texts(4, &mut String::new(), &mut |text| check(text).unwrap());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3_000))]

        #[test]
        fn the_same_in_longer_texts(text in "[AaslLvVeEtT日〇⺀한\u{1}\u{200b}\u{301}1 \u{3000}\n'!/ſré\u{a0}\r]{5,24}") {
            check(&text)?;
        }
    }

    #[test]
    fn little_is_held_back() {
        for (name, scan) in SCANS {
            for (known, end) in
                [("one two", 3), ("one two.", 7), ("one two. ", 8), ("x = 1;", 5), ("a\n\nb", 3)]
            {
                let found = last_final(scan, known, 0, |_| true, &Task::new()).unwrap();
                assert_eq!(found, end, "{name} {known:?}");
            }
        }
    }

    #[test]
    fn only_ends_that_are_wanted_count() {
        let text = format!("{} end", "word".repeat(10).as_str().to_owned() + &" word".repeat(20_000));
        let end = last_final(cl100k::end, &text, 0, |end| end == 100_035, &Task::new()).unwrap();
        assert_eq!(end, 100_035);
    }
}
