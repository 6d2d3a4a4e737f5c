//! Tokens with the part of the text that each stands for.

use super::normalize::{Normalized, ceil, floor};
use super::parts::{Content, Part};
use super::tokenizer::{Options, Tokenizer};
use crate::task::Stretches;
use crate::tokens::encoder::Encoder;
use crate::tokens::split::Place;
use crate::tokens::{Error, TokenId};
use crate::{Task, memory};

/// In what offsets are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Bytes of UTF-8.
    Bytes,
    /// Unicode code points.
    Characters,
}

/// The tokens of a text, and where they come from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Encoded {
    /// The tokens.
    pub tokens: Vec<TokenId>,
    /// For each token, the start and the end of the characters of which it has bytes. Both are 0 for the
    /// tokens of the template.
    pub offsets: Vec<(usize, usize)>,
}

/// The bytes of text between two checks of the task.
const STRETCH: usize = 16 << 10;

impl Encoded {
    fn push(&mut self, token: TokenId, offsets: (usize, usize)) -> Result<(), Error> {
        memory::push(&mut self.tokens, token)?;
        Ok(memory::push(&mut self.offsets, offsets)?)
    }
}

impl Tokenizer {
    /// The tokens of `text` and where they come from.
    ///
    /// # Errors
    ///
    /// As [`encode`](Self::encode).
    pub fn encode_with_offsets(
        &self,
        text: &str,
        unit: Unit,
        options: Options,
        task: &Task<'_>,
    ) -> Result<Encoded, Error> {
        let mut encoded = Encoded::default();
        let mut encoder = self.encoding.encoder(task);
        let mut added = Vec::new();
        self.preparation.parts(text, options.split_special_tokens, true, task, |part| {
            match part.content {
                Content::Token(id) => {
                    if self.trim.is_some() {
                        let blanks = blanks(&text[part.range.clone()]);
                        memory::push(&mut added, (encoded.tokens.len(), blanks))?;
                    }
                    encoded.push(id, (part.range.start, part.range.end))?;
                }
                Content::Text(normalized) => {
                    self.encode_part(&part, normalized, &mut encoder, &mut encoded, task)?
                }
            }
            Ok(true)
        })?;
        if unit == Unit::Characters && !text.is_ascii() {
            to_characters(text, &mut encoded.offsets, task)?;
        }
        let bytes_of = (unit == Unit::Bytes).then_some(text);
        self.trim(&mut encoded, added, bytes_of);
        self.with_template(encoded, options)
    }

    fn encode_part(
        &self,
        part: &Part<'_>,
        normalized: &Normalized<'_>,
        encoder: &mut Encoder<'_>,
        encoded: &mut Encoded,
        task: &Task<'_>,
    ) -> Result<(), Error> {
        let text = &*normalized.text;
        let mut stretches = Stretches::new(task, STRETCH);
        let (mut place, mut tokens) = (Place::default(), Vec::new());
        while let Some(piece) = self.encoding.splitter.next(text, &mut place, task)? {
            stretches.check(piece.start)?;
            encoder.one(text.as_bytes(), piece.clone(), &mut tokens)?;
            let mut at = piece.start;
            for token in tokens.drain(..) {
                let end = at + self.encoding.vocabulary.bytes(token).map_or(0, <[u8]>::len);
                let origin = part.original(normalized, floor(text, at)..ceil(text, end));
                encoded.push(token, origin)?;
                at = end;
            }
        }
        Ok(())
    }

    /// Leaves blanks at both ends out of the offsets, if the model says so. `added` has the places of added tokens, with the
    /// blanks that these have in the text. `bytes_of` is the text if the offsets count its bytes.
    fn trim(&self, encoded: &mut Encoded, added: Vec<(usize, (usize, usize))>, bytes_of: Option<&str>) {
        let Some(trim) = self.trim else { return };
        let mut added = added.into_iter().peekable();
        for (index, (&token, offsets)) in encoded.tokens.iter().zip(&mut encoded.offsets).enumerate() {
            let of_added = added.next_if(|(place, _)| *place == index).map(|(_, blanks)| blanks);
            let (mut left, right) = of_added.unwrap_or_else(|| self.blanks(token));
            let is_first = index == 0 || offsets.0 == 0;
            if is_first && trim.keeps_first && left == 1 {
                left = 0;
            }
            offsets.0 = forward(bytes_of, offsets.0, left).min(offsets.1);
            offsets.1 = back(bytes_of, offsets.1, right).unwrap_or(offsets.1).max(offsets.0);
        }
    }

    /// The number of blanks at the beginning and at the end of a token of the vocabulary.
    fn blanks(&self, token: TokenId) -> (usize, usize) {
        let bytes = self.encoding.vocabulary.bytes(token).unwrap_or_default();
        let is_blank = |byte: &&u8| **byte == b' ';
        (bytes.iter().take_while(is_blank).count(), bytes.iter().rev().take_while(is_blank).count())
    }

    fn with_template(&self, encoded: Encoded, options: Options) -> Result<Encoded, Error> {
        let (before, after) = self.template(options);
        if before.is_empty() && after.is_empty() {
            return Ok(encoded);
        }
        let none = |tokens: &[TokenId]| memory::filled((0, 0), tokens.len());
        Ok(Encoded {
            tokens: memory::joined(&[before, &encoded.tokens, after])?,
            offsets: memory::joined(&[&none(before)?, &encoded.offsets, &none(after)?])?,
        })
    }
}

/// The number of blanks at the beginning and at the end of a text.
fn blanks(text: &str) -> (usize, usize) {
    let is_blank = |c: &char| *c == 'Ġ' || c.is_whitespace();
    (text.chars().take_while(is_blank).count(), text.chars().rev().take_while(is_blank).count())
}

/// The place this many characters behind `at`.
fn forward(bytes_of: Option<&str>, at: usize, characters: usize) -> usize {
    match bytes_of {
        Some(text) => at + text[at..].chars().take(characters).map(char::len_utf8).sum::<usize>(),
        None => at + characters,
    }
}

/// The place this many characters before `at`, if there are so many.
fn back(bytes_of: Option<&str>, at: usize, characters: usize) -> Option<usize> {
    match bytes_of {
        Some(text) if characters > 0 => {
            text[..at].char_indices().rev().nth(characters - 1).map(|(place, _)| place)
        }
        _ => at.checked_sub(characters),
    }
}

/// Turns offsets in bytes into offsets in characters. They mostly ascend.
fn to_characters(text: &str, offsets: &mut [(usize, usize)], task: &Task<'_>) -> Result<(), Error> {
    let mut stretches = Stretches::of_items(task);
    let (mut byte, mut character) = (0, 0);
    let mut count = |to: usize| {
        if to < byte {
            character -= text[to..byte].chars().count();
        } else {
            character += text[byte..to].chars().count();
        }
        byte = to;
        character
    };
    for (number, (start, end)) in offsets.iter_mut().enumerate() {
        stretches.check(number)?;
        (*start, *end) = (count(*start), count(*end));
    }
    Ok(())
}
