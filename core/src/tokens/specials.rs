//! Special tokens: strings that stand for a token of their own.
//!
//! The search looks for the longest common prefix of all strings (`<|` in the public encodings) with memchr's
//! substring search and, at each hit, narrows the sorted list of strings byte by byte. So text without
//! special tokens is scanned at memchr's speed, and thousands of special tokens cost little more than a few:
//! a hit takes O(length · log count) steps.

use super::{Error, ErrorKind, TokenId};
use crate::{Stopped, Task};
use memchr::memmem;
use rustc_hash::FxHashMap;
use std::ops::Range;

/// The amount of text that is searched between two checks of the task, in bytes.
const STRETCH: usize = 16 << 10;

/// A choice among the special tokens of an encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Specials<'a> {
    /// No special token.
    None,
    /// Every special token of the encoding.
    All,
    /// These strings.
    Only(&'a [&'a str]),
    /// Every special token of the encoding but these strings.
    Except(&'a [&'a str]),
}

/// A special token found in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) token: TokenId,
}

/// The special tokens of an encoding, prepared for searching.
#[derive(Debug)]
pub(super) struct SpecialTokens {
    needles: Needles,
    tokens: Vec<TokenId>,
    by_token: FxHashMap<TokenId, usize>,
}

impl SpecialTokens {
    pub(super) fn new(specials: impl IntoIterator<Item = (String, TokenId)>) -> Result<Self, Error> {
        let given: Vec<_> = specials.into_iter().collect();
        let mut unique = FxHashMap::with_capacity_and_hasher(given.len(), Default::default());
        for (text, token) in given {
            if text.is_empty() {
                return Err(bad(format!("the special token {token} is the empty string")));
            }
            unique.insert(text, token);
        }
        // Where two special tokens match at the same position, tiktoken takes the one that its hash map lists
        // first. This is the same map, filled in the same way.
        let (texts, tokens): (Vec<String>, Vec<TokenId>) = unique.into_iter().unzip();
        let by_token = tokens.iter().enumerate().map(|(index, &token)| (token, index)).collect();
        Ok(Self { needles: Needles::new(texts), tokens, by_token })
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, TokenId)> {
        self.needles.texts.iter().map(String::as_str).zip(self.tokens.iter().copied())
    }

    pub(super) fn len(&self) -> usize {
        self.tokens.len()
    }

    pub(super) fn token(&self, text: &str) -> Option<TokenId> {
        self.needles.position(text).map(|index| self.tokens[index])
    }

    pub(super) fn text(&self, token: TokenId) -> Option<&str> {
        self.by_token.get(&token).map(|&index| self.needles.texts[index].as_str())
    }

    /// The chosen ones among the special tokens, by index.
    pub(super) fn choose(&self, which: Specials<'_>) -> Choice {
        let indices = |texts: &[&str]| {
            let mut found: Vec<_> = texts.iter().filter_map(|text| self.needles.position(text)).collect();
            found.sort_unstable();
            found
        };
        match which {
            Specials::None => Choice { listed: Vec::new(), others: false },
            Specials::All => Choice { listed: Vec::new(), others: true },
            Specials::Only(texts) => Choice { listed: indices(texts), others: false },
            Specials::Except(texts) => Choice { listed: indices(texts), others: true },
        }
    }

    /// The first special token at or after `from` that is allowed.
    ///
    /// As in tiktoken, one that is not allowed hides the others that begin at the same place.
    pub(super) fn next_allowed(
        &self,
        text: &str,
        from: usize,
        allowed: &Choice,
        task: &Task<'_>,
    ) -> Result<Option<Found>, Stopped> {
        if allowed.is_empty() {
            return Ok(None);
        }
        let mut from = from;
        while let Some((start, index)) = self.needles.find(text.as_bytes(), from, |_| true, task)? {
            if allowed.has(index) {
                let end = start + self.needles.texts[index].len();
                return Ok(Some(Found { start, end, token: self.tokens[index] }));
            }
            from = start + 1;
        }
        Ok(None)
    }

    /// The first of the strings `which` in `text`, whether the encoding has them or not.
    pub(super) fn find<'a>(
        &'a self,
        text: &str,
        which: Specials<'a>,
        task: &Task<'_>,
    ) -> Result<Option<(usize, &'a str)>, Stopped> {
        let text = text.as_bytes();
        match which {
            Specials::None => Ok(None),
            Specials::Only(texts) => {
                let needles = Needles::new(texts.iter().map(|&text| text.to_owned()).collect());
                let found = needles.find(text, 0, |_| true, task)?;
                Ok(found.map(|(start, index)| (start, texts[index])))
            }
            Specials::All | Specials::Except(_) => {
                let wanted = self.choose(which);
                let found = self.needles.find(text, 0, |index| wanted.has(index), task)?;
                Ok(found.map(|(start, index)| (start, self.needles.texts[index].as_str())))
            }
        }
    }
}

/// A resolved [`Specials`]: indices of special tokens.
pub(super) struct Choice {
    listed: Vec<usize>,
    others: bool,
}

impl Choice {
    pub(super) fn is_empty(&self) -> bool {
        self.listed.is_empty() && !self.others
    }

    fn has(&self, index: usize) -> bool {
        self.listed.binary_search(&index).is_ok() != self.others
    }
}

/// A set of strings to search for; of those that match at the same position, the first in the list counts.
#[derive(Debug)]
struct Needles {
    texts: Vec<String>,
    /// Indices into `texts` in the order of the strings.
    sorted: Vec<usize>,
    /// The common prefix of all strings.
    prefix: memmem::Finder<'static>,
}

impl Needles {
    fn new(texts: Vec<String>) -> Self {
        let mut sorted: Vec<_> = (0..texts.len()).collect();
        sorted.sort_unstable_by(|&a, &b| texts[a].cmp(&texts[b]));
        let prefix = match (sorted.first(), sorted.last()) {
            (Some(&first), Some(&last)) => common_prefix(texts[first].as_bytes(), texts[last].as_bytes()),
            _ => &[],
        };
        let prefix = memmem::Finder::new(prefix).into_owned();
        Self { texts, sorted, prefix }
    }

    fn position(&self, text: &str) -> Option<usize> {
        let place = self.sorted.binary_search_by(|&index| self.texts[index].as_str().cmp(text)).ok()?;
        Some(self.sorted[place])
    }

    /// The leftmost match at or after `from` among the strings that `wanted` accepts: its position and its
    /// index.
    fn find(
        &self,
        text: &[u8],
        from: usize,
        wanted: impl Fn(usize) -> bool,
        task: &Task<'_>,
    ) -> Result<Option<(usize, usize)>, Stopped> {
        if self.texts.is_empty() {
            return Ok(None);
        }
        let mut from = from;
        loop {
            let end = text.len().min(from + STRETCH);
            let found = self.find_in(text, from..end, &wanted);
            if found.is_some() || end == text.len() {
                return Ok(found);
            }
            task.check()?;
            from = end;
        }
    }

    /// The same among the matches that begin in `starts` or at its end.
    fn find_in(
        &self,
        text: &[u8],
        starts: Range<usize>,
        wanted: impl Fn(usize) -> bool,
    ) -> Option<(usize, usize)> {
        let prefixes = &text[..text.len().min(starts.end + self.prefix.needle().len())];
        let mut from = starts.start;
        while from <= starts.end {
            let start = from + self.prefix.find(&prefixes[from..])?;
            if let Some(index) = self.first_at(&text[start..], &wanted) {
                return Some((start, index));
            }
            from = start + 1;
        }
        None
    }

    /// The first string in the list that `text` begins with, among those that `wanted` accepts.
    fn first_at(&self, text: &[u8], wanted: impl Fn(usize) -> bool) -> Option<usize> {
        let depth = self.prefix.needle().len();
        let mut fitting = self.sorted.as_slice();
        let mut best = None;
        for depth in depth.. {
            while let [index, rest @ ..] = fitting
                && self.texts[*index].len() == depth
            {
                if wanted(*index) && best.is_none_or(|best| *index < best) {
                    best = Some(*index);
                }
                fitting = rest;
            }
            let Some(&byte) = text.get(depth) else { break };
            let from = fitting.partition_point(|&index| self.texts[index].as_bytes()[depth] < byte);
            fitting = &fitting[from..];
            let to = fitting.partition_point(|&index| self.texts[index].as_bytes()[depth] == byte);
            fitting = &fitting[..to];
            if fitting.is_empty() {
                break;
            }
        }
        best
    }
}

fn common_prefix<'a>(a: &'a [u8], b: &[u8]) -> &'a [u8] {
    &a[..a.iter().zip(b).take_while(|(a, b)| a == b).count()]
}

fn bad(message: String) -> Error {
    ErrorKind::BadVocabulary { message }.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn specials(texts: &[&str]) -> SpecialTokens {
        SpecialTokens::new(texts.iter().map(|&text| text.to_owned()).zip(0..)).unwrap()
    }

    #[test]
    fn they_are_found_across_the_ends_of_stretches() {
        let (specials, task) = (specials(&["<|one|>", "<|two|>"]), Task::new());
        for at in [0, 1, STRETCH - 8, STRETCH - 7, STRETCH - 1, STRETCH, STRETCH + 1, 3 * STRETCH - 3] {
            let text = format!("{}<|two|><|one|>", "<|".repeat(at / 2) + &"x".repeat(at % 2));
            for which in [Specials::All, Specials::Except(&["<|one|>"]), Specials::Only(&["<|two|>"])] {
                assert_eq!(specials.find(&text, which, &task), Ok(Some((at, "<|two|>"))));
            }
            assert_eq!(
                specials.find(&text, Specials::Only(&["<|one|>"]), &task),
                Ok(Some((at + 7, "<|one|>")))
            );
            let allowed = specials.choose(Specials::All);
            let found = specials.next_allowed(&text, 0, &allowed, &task).unwrap().unwrap();
            assert_eq!((found.start, found.end), (at, at + 7));
        }
    }

    #[test]
    fn the_empty_string_is_found_everywhere() {
        let (specials, task) = (specials(&["<|one|>"]), Task::new());
        for text in ["", "text"] {
            assert_eq!(specials.find(text, Specials::Only(&[""]), &task), Ok(Some((0, ""))));
        }
    }

    #[test]
    fn a_search_that_finds_nothing_is_stopped() {
        let (specials, checks) = (specials(&["<|one|>"]), AtomicUsize::new(0));
        let poll = |_| checks.fetch_add(1, Ordering::Relaxed) == 2;
        let text = "<|on".repeat(2 * STRETCH);
        assert_eq!(specials.find(&text, Specials::All, &Task::with_poll(&poll)), Err(Stopped));
        checks.store(0, Ordering::Relaxed);
        let allowed = specials.choose(Specials::All);
        assert!(specials.next_allowed(&text, 0, &allowed, &Task::with_poll(&poll)).is_err());
    }
}
