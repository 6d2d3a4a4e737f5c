//! Patterns of custom encodings, run by fancy-regex.

use crate::tokens::{Error, ErrorKind};
use std::ops::Range;

/// A regular expression in the dialect of tiktoken.
pub(in crate::tokens) struct Regex {
    pattern: String,
    regex: fancy_regex::Regex,
}

impl Regex {
    pub(super) fn new(pattern: &str) -> Result<Self, Error> {
        let regex = fancy_regex::Regex::new(pattern);
        let regex = regex.map_err(|error| ErrorKind::BadPattern { message: error.to_string() })?;
        Ok(Self { pattern: pattern.to_owned(), regex })
    }

    pub(super) fn pattern(&self) -> &str {
        &self.pattern
    }

    /// The first match at or after `from` that is not empty.
    pub(super) fn next(&self, text: &str, from: usize) -> Result<Option<Range<usize>>, Error> {
        let mut from = from;
        loop {
            let found = self.regex.find_from_pos(text, from);
            let found = found
                .map_err(|error| ErrorKind::PatternFailed { message: error.to_string(), offset: from })?;
            match found {
                Some(piece) if piece.range().is_empty() => from = after(text, piece.end()),
                Some(piece) => return Ok(Some(piece.range())),
                None => return Ok(None),
            }
        }
    }
}

/// The offset after the character at `at`.
fn after(text: &str, at: usize) -> usize {
    text[at..].chars().next().map_or(at + 1, |c| at + c.len_utf8())
}
