//! Cuts text into the pieces that are encoded one by one.
//!
//! The patterns of the public encodings are compiled by hand, each into a function that finds the end of a
//! piece in one pass, without backtracking: the time is linear in the length of the text. A character's class
//! is found by two table lookups (`classes.rs`); runs of ASCII letters are scanned eight bytes at a time
//! (`scan.rs`). All other patterns are run by fancy-regex, the engine that tiktoken uses.

pub(super) mod cl100k;
mod classes;
pub(super) mod gpt2;
pub(super) mod o200k;
mod regex;
mod scan;

use super::Error;
use regex::Regex;
use std::ops::Range;

/// A pattern, and how it is matched.
pub(super) enum Splitter {
    Gpt2,
    Cl100k,
    O200k,
    Regex(Box<Regex>),
}

impl Splitter {
    pub(super) fn new(pattern: &str) -> Result<Self, Error> {
        Ok(match pattern {
            gpt2::PATTERN => Self::Gpt2,
            cl100k::PATTERN => Self::Cl100k,
            o200k::PATTERN => Self::O200k,
            _ => Self::Regex(Box::new(Regex::new(pattern)?)),
        })
    }

    pub(super) fn pattern(&self) -> &str {
        match self {
            Self::Gpt2 => gpt2::PATTERN,
            Self::Cl100k => cl100k::PATTERN,
            Self::O200k => o200k::PATTERN,
            Self::Regex(regex) => regex.pattern(),
        }
    }

    /// The first piece at or after `from`.
    pub(super) fn next(&self, text: &str, from: usize) -> Result<Option<Range<usize>>, Error> {
        let end = match self {
            Self::Regex(regex) => return regex.next(text, from),
            _ if from == text.len() => return Ok(None),
            Self::Gpt2 => gpt2::end(text.as_bytes(), from),
            Self::Cl100k => cl100k::end(text.as_bytes(), from),
            Self::O200k => o200k::end(text.as_bytes(), from),
        };
        Ok(Some(from..end))
    }
}
