//! Added tokens: strings that stand for a token of their own, found before the text is cut into pieces.
//!
//! The rules are those of Hugging Face's tokenizers: the leftmost match counts, and of several at one place
//! the longest. A match that is refused (a special token where these are ordinary text, or a part of a word
//! where a token has to be a word) still hides those that overlap it.

use super::unsupported;
use crate::task::Stretches;
use crate::tokens::beginnings::Beginnings;
use crate::tokens::{Error, ErrorKind, TokenId};
use crate::{Stopped, Task};
use aho_corasick::{AhoCorasick, Input, MatchKind};
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;

/// A token that was added to a vocabulary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Added {
    pub(super) text: String,
    pub(super) id: TokenId,
    pub(super) is_special: bool,
    /// Whether it is looked for in the normalized text.
    pub(super) in_normalized: bool,
    /// Whether it takes the blanks before and after it.
    pub(super) takes_left: bool,
    pub(super) takes_right: bool,
    /// Whether it is no part of a longer word.
    pub(super) is_word: bool,
}

/// The added tokens of a model.
pub(super) struct AddedTokens {
    pub(super) list: Vec<Added>,
    pub(super) by_id: FxHashMap<TokenId, usize>,
    raw: Finder,
    normalized: Finder,
    word: fancy_regex::Regex,
    /// Whether there are tokens that take the blanks around them.
    pub(super) take_blanks: bool,
}

/// Finds some of the tokens.
struct Finder {
    /// None if there is nothing to find.
    search: Option<AhoCorasick>,
    tokens: Vec<TokenId>,
    longest: usize,
}

/// What is not decided yet of a text that goes on.
pub(super) struct Rest {
    /// Where it begins.
    pub(super) start: usize,
    /// Up to where there is no added token in it.
    pub(super) end: usize,
    /// Where the search goes on.
    pub(super) search_from: usize,
}

/// Which of the two searches.
#[derive(Clone, Copy)]
pub(super) enum Stage {
    Raw,
    Normalized,
}

/// The bytes of text between two checks of the task.
const STRETCH: usize = 64 << 10;

/// The longest added token, and all together, in bytes. To prepare the search takes quadratic time in a token's length,
/// and a hundred times the memory. The longest of models have 100 bytes, and all together a megabyte.
const LONGEST: usize = 1024;
const MOST: usize = 4 << 20;

impl AddedTokens {
    /// Prepares the search. `normalize` gives the text as which a token occurs in normalized text.
    pub(super) fn new(
        list: Vec<Added>,
        normalize: impl Fn(&str) -> Result<String, Error>,
    ) -> Result<Self, Error> {
        if list.iter().any(|added| added.text.len() > LONGEST) {
            return Err(unsupported(format!("an added token of more than {LONGEST} bytes")));
        }
        if list.iter().map(|added| added.text.len()).sum::<usize>() > MOST {
            return Err(unsupported(format!("added tokens of more than {MOST} bytes together")));
        }
        let by_id = (0..).zip(&list).map(|(index, added)| (added.id, index)).collect();
        // Special tokens come first: of two with the same text, the first one counts.
        let chosen = |in_normalized: bool| {
            let of = move |special: bool| {
                move |added: &&Added| added.is_special == special && added.in_normalized == in_normalized
            };
            list.iter().filter(of(true)).chain(list.iter().filter(of(false)))
        };
        let raw = Finder::new(chosen(false).map(|added| Ok((added.text.clone(), added.id))))?;
        let normalized = Finder::new(chosen(true).map(|added| Ok((normalize(&added.text)?, added.id))))?;
        let word = fancy_regex::Regex::new(r"^\w$").expect("the pattern is valid");
        let take_blanks = list.iter().any(|added| added.takes_left || added.takes_right);
        Ok(Self { list, by_id, raw, normalized, word, take_blanks })
    }

    /// The texts that are special.
    pub(super) fn specials(&self) -> FxHashSet<&str> {
        self.list.iter().filter(|added| added.is_special).map(|added| &*added.text).collect()
    }

    pub(super) fn get(&self, id: TokenId) -> Option<&Added> {
        self.by_id.get(&id).map(|&index| &self.list[index])
    }

    /// Calls `part` for each added token in `text`, and with `None` for what lies between them, until it
    /// returns false. Returns whether it never did.
    pub(super) fn split(
        &self,
        stage: Stage,
        text: &str,
        without_special: bool,
        task: &Task<'_>,
        mut part: impl FnMut(Option<TokenId>, Range<usize>) -> Result<bool, Error>,
    ) -> Result<bool, Error> {
        let finder = self.finder(stage);
        let mut stretches = Stretches::new(task, STRETCH);
        let (mut from, mut done, mut searched) = (0, 0, 0);
        while let Some((id, found)) = finder.next(text, from, task)? {
            // Whether a longer token begins where one was found may be known only at that one's end.
            searched += found.end - from + finder.longest;
            stretches.check(searched)?;
            from = found.end;
            let Some(taken) = self.taken(id, found, text, done, without_special) else { continue };
            if done < taken.start && !part(None, done..taken.start)? {
                return Ok(false);
            }
            done = taken.end;
            if !part(Some(id), taken)? {
                return Ok(false);
            }
        }
        Ok(done >= text.len() || part(None, done..text.len())?)
    }

    /// As [`split`](Self::split), from `from` on, for a text that goes on in an unknown way, with the beginnings of
    /// all tokens; without them the text is whole. Calls `part` for each token that is certain and for what lies
    /// before it.
    #[expect(clippy::too_many_arguments, reason = "those of `split`, and what is known")]
    pub(super) fn split_known(
        &self,
        stage: Stage,
        text: &str,
        from: usize,
        beginnings: Option<&Beginnings>,
        without_special: bool,
        task: &Task<'_>,
        mut part: impl FnMut(Option<TokenId>, Range<usize>) -> Result<(), Error>,
    ) -> Result<Rest, Error> {
        let finder = self.finder(stage);
        let first_open = |from| beginnings.map_or(text.len(), |all| all.first_open(text, from));
        let mut stretches = Stretches::new(task, STRETCH);
        let (mut from, mut done, mut searched) = (from, 0, 0);
        let mut open = first_open(from);
        while let Some((id, found)) = finder.next(text, from, task)? {
            searched += found.end - from + finder.longest;
            stretches.check(searched)?;
            if found.start >= open {
                break;
            }
            let end = found.end;
            if let Some(taken) = self.taken(id, found, text, done, without_special) {
                let takes_more = self.get(id).is_some_and(|added| added.takes_right);
                if beginnings.is_some() && takes_more && taken.end == text.len() {
                    return Ok(Rest { start: done, end: taken.start, search_from: from });
                }
                if done < taken.start {
                    part(None, done..taken.start)?;
                }
                done = taken.end;
                part(Some(id), taken)?;
            }
            from = end.max(done);
            if from > open {
                open = first_open(from);
            }
        }
        let mut end = open;
        if beginnings.is_some() && self.take_blanks {
            end = done + text[done..end].trim_end().len();
        }
        Ok(Rest { start: done, end, search_from: from })
    }

    fn finder(&self, stage: Stage) -> &Finder {
        match stage {
            Stage::Raw => &self.raw,
            Stage::Normalized => &self.normalized,
        }
    }

    /// What a match covers, if it counts. Everything before `done` is taken.
    fn taken(
        &self,
        id: TokenId,
        found: Range<usize>,
        text: &str,
        done: usize,
        without_special: bool,
    ) -> Option<Range<usize>> {
        let added = self.get(id)?;
        let (before, after) = (&text[..found.start], &text[found.end..]);
        if without_special && added.is_special {
            return None;
        }
        if added.is_word
            && (self.is_in_word(before.chars().next_back()) || self.is_in_word(after.chars().next()))
        {
            return None;
        }
        // What is done beyond this match are the blanks behind it: an earlier token took all of them. Looking at
        // them for every match would take quadratic time where blanks themselves are added tokens.
        let free = &text[done.min(found.start)..found.start];
        let left = if added.takes_left { free.len() - free.trim_end().len() } else { 0 };
        let right = if !added.takes_right {
            0
        } else if done > found.end {
            done - found.end
        } else {
            after.len() - after.trim_start().len()
        };
        let end = found.end + right;
        // One that takes blanks leaves what is taken before it, and nothing is left of it if that is all.
        let start = if added.takes_left { (found.start - left).max(done) } else { found.start };
        (start < end).then_some(start..end)
    }

    fn is_in_word(&self, neighbour: Option<char>) -> bool {
        let mut bytes = [0; 4];
        neighbour.is_some_and(|c| self.word.is_match(c.encode_utf8(&mut bytes)).unwrap_or(false))
    }
}

impl Finder {
    fn new(tokens: impl Iterator<Item = Result<(String, TokenId), Error>>) -> Result<Self, Error> {
        let tokens = tokens.collect::<Result<Vec<_>, _>>()?;
        let (texts, ids): (Vec<_>, Vec<_>) = tokens.into_iter().filter(|(text, _)| !text.is_empty()).unzip();
        let longest = texts.iter().map(String::len).max().unwrap_or(0);
        if texts.is_empty() {
            return Ok(Self { search: None, tokens: ids, longest });
        }
        let search = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(texts);
        let search = search.map_err(|error| ErrorKind::BadVocabulary { message: error.to_string() })?;
        Ok(Self { search: Some(search), tokens: ids, longest })
    }

    /// The first match from `from` on.
    fn next(
        &self,
        text: &str,
        from: usize,
        task: &Task<'_>,
    ) -> Result<Option<(TokenId, Range<usize>)>, Stopped> {
        let Some(search) = &self.search else { return Ok(None) };
        let mut from = from;
        loop {
            // Every match that begins within the stretch also ends in what is searched.
            let starts = from.saturating_add(STRETCH);
            let end = text.len().min(starts.saturating_add(self.longest));
            match search.find(Input::new(text).span(from..end)) {
                Some(found) if found.start() < starts => {
                    return Ok(Some((self.tokens[found.pattern()], found.range())));
                }
                _ if end == text.len() && starts >= text.len() => return Ok(None),
                _ => from = starts,
            }
            task.check()?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(text: &str, id: TokenId) -> Added {
        Added {
            text: text.into(),
            id,
            is_special: false,
            in_normalized: false,
            takes_left: false,
            takes_right: false,
            is_word: false,
        }
    }

    fn split(list: Vec<Added>, text: &str, without_special: bool) -> Vec<(Option<TokenId>, String)> {
        let tokens = AddedTokens::new(list, |text| Ok(text.to_owned())).unwrap();
        let mut parts = Vec::new();
        let all = tokens.split(Stage::Raw, text, without_special, &Task::new(), |id, range| {
            parts.push((id, text[range].to_owned()));
            Ok(true)
        });
        assert!(all.unwrap());
        parts
    }

    #[test]
    fn the_longest_of_the_leftmost_counts() {
        let list = vec![added("<a", 1), added("<a>", 2), added("a>>", 3)];
        let parts = [(None, "x"), (Some(2), "<a>"), (Some(1), "<a"), (None, " ")];
        assert_eq!(split(list, "x<a><a ", false), parts.map(|(id, text)| (id, text.to_owned())));
    }

    #[test]
    fn blanks_that_are_tokens_take_linear_time() {
        let blank = Added { takes_left: true, takes_right: true, ..added(" ", 1) };
        let tokens = AddedTokens::new(vec![blank], |text| Ok(text.to_owned())).unwrap();
        let (text, began) = (format!("a{}b", " ".repeat(300_000)), std::time::Instant::now());
        let mut parts = Vec::new();
        let all = tokens.split(Stage::Raw, &text, false, &Task::new(), |id, range| {
            parts.push((id, range));
            Ok(true)
        });
        assert!(all.unwrap());
        assert_eq!(parts, [(None, 0..1), (Some(1), 1..300_001), (None, 300_001..300_002)]);
        assert!(began.elapsed() < std::time::Duration::from_secs(10), "{:?}", began.elapsed());
    }

    #[test]
    fn what_an_earlier_token_has_taken_is_left_to_it() {
        let both = |text: &str| Added { takes_left: true, takes_right: true, ..added(text, 1) };
        let ranges = |token: Added, text: &str| -> Vec<String> {
            split(vec![token], text, false).into_iter().map(|(_, part)| part).collect()
        };
        assert_eq!(ranges(both("  "), "a    b"), ["a", "    ", "b"]);
        assert_eq!(ranges(both(" <m>"), "a <m> <m> b"), ["a", " <m> ", "<m> ", "b"]);
        let right = Added { takes_right: true, ..added("  ", 1) };
        assert_eq!(ranges(right, "a    b"), ["a", "    ", "  ", "b"]);
    }

    #[test]
    fn blanks_and_words_are_looked_at() {
        let list = vec![
            Added { takes_left: true, takes_right: true, ..added("<m>", 1) },
            Added { is_word: true, ..added("ing", 2) },
            Added { is_special: true, ..added("<s>", 3) },
        ];
        let parts = [
            (None, "walking "),
            (Some(2), "ing"),
            (Some(1), "\n <m>\t "),
            (Some(1), "<m> "),
            (None, "é"),
            (Some(3), "<s>"),
        ];
        let text = "walking ing\n <m>\t <m> é<s>";
        assert_eq!(split(list.clone(), text, false), parts.map(|(id, text)| (id, text.to_owned())));
        assert_eq!(split(list, "<s> ingé", true), [(None, "<s> ingé".to_owned())]);
    }

    #[test]
    fn they_are_found_across_the_ends_of_stretches() {
        for at in [STRETCH - 3, STRETCH - 2, STRETCH - 1, STRETCH, STRETCH + 1, 2 * STRETCH - 1] {
            let text = format!("{}<a><a", "x".repeat(at));
            let parts = split(vec![added("<a>", 1), added("<a", 2)], &text, false);
            assert_eq!(parts[1..], [(Some(1), "<a>".to_owned()), (Some(2), "<a".to_owned())]);
        }
    }
}
