//! Cuts a text into added tokens and what lies between them, normalized.

use super::added::{AddedTokens, Stage};
use super::form::Form;
use super::normalize::Normalized;
use crate::Task;
use crate::tokens::{Error, TokenId};
use std::ops::Range;

/// What is done to a text before it is encoded.
pub(super) struct Preparation {
    pub(super) added: AddedTokens,
    pub(super) forms: Vec<Form>,
    /// Whether a text that does not begin with a blank gets one.
    pub(super) blank_before: bool,
}

/// A part of a text.
pub(super) struct Part<'p> {
    pub(super) content: Content<'p>,
    /// The bytes of the text that it stands for.
    pub(super) range: Range<usize>,
}

pub(super) enum Content<'p> {
    Token(TokenId),
    /// Text to encode.
    Text(&'p Normalized<'p>),
}

impl Part<'_> {
    /// The part of the original that bytes of the text stand for.
    pub(super) fn original(&self, text: &Normalized<'_>, range: Range<usize>) -> (usize, usize) {
        let start = self.range.start;
        (start + text.origin(range.start).0, start + text.origin(range.end - 1).1)
    }
}

impl Preparation {
    /// Calls `each` for each part until it returns false. If it is `plain`, special tokens are ordinary text.
    pub(super) fn parts(
        &self,
        text: &str,
        plain: bool,
        with_origins: bool,
        task: &Task<'_>,
        mut each: impl FnMut(Part<'_>) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        self.added.split(Stage::Raw, text, plain, task, |token, range| match token {
            Some(id) => each(Part { content: Content::Token(id), range }),
            None => {
                self.normalized_parts(&text[range.clone()], range.start, plain, with_origins, task, &mut each)
            }
        })?;
        Ok(())
    }

    fn normalized_parts(
        &self,
        text: &str,
        start: usize,
        plain: bool,
        with_origins: bool,
        task: &Task<'_>,
        each: &mut impl FnMut(Part<'_>) -> Result<bool, Error>,
    ) -> Result<bool, Error> {
        let normalized = Normalized::new(text).normalize(&self.forms, with_origins, task)?;
        self.added.split(Stage::Normalized, &normalized.text, plain, task, |token, range| {
            let first = start + normalized.origin_start(range.start, text.len());
            let last = start + normalized.origin_start(range.end, text.len());
            match token {
                Some(id) => each(Part { content: Content::Token(id), range: first..last }),
                None => {
                    let mut part = normalized.slice(range, text.len());
                    if self.blank_before {
                        part = part.with_blank()?;
                    }
                    each(Part { content: Content::Text(&part), range: first..last })
                }
            }
        })
    }
}
