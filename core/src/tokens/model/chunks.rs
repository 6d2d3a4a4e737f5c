//! Chunks of a text by a model's tokenizer.

use super::added::AddedTokens;
use super::parts::Content;
use super::tokenizer::{Options, Tokenizer};
use crate::tokens::chunks::{self, Source};
use crate::tokens::{Chunk, ChunkOptions, Error};
use crate::{Task, memory};

impl Tokenizer {
    /// Cuts `text` into chunks, as [`Encoding::chunks`](crate::tokens::Encoding::chunks) does. The tokens of a chunk
    /// are those that [`encode`](Self::encode) gives for its text without the template. An added token is not cut.
    ///
    /// A chunk of a text that normalization changes may be shorter than it could be.
    ///
    /// # Errors
    ///
    /// As [`encode`](Self::encode), and `LimitTooSmall` if a single character has more tokens.
    ///
    /// # Panics
    ///
    /// If `overlap` is not less than `max_tokens`.
    pub fn chunks(&self, text: &str, options: ChunkOptions, task: &Task<'_>) -> Result<Vec<Chunk>, Error> {
        let without_template = Options { add_special_tokens: false, ..Options::default() };
        let count = |part: &str| self.count(part, without_template, task);
        let (mut added, mut is_unchanged) = (Vec::new(), !self.preparation.blank_before);
        self.preparation.parts(text, false, true, task, |part| {
            match part.content {
                Content::Token(_) => memory::push(&mut added, part.range)?,
                Content::Text(found) => is_unchanged &= found.text == text[part.range],
            }
            Ok(true)
        })?;
        added.retain(|range| !range.is_empty());
        // What has to be a word of its own, or takes the blanks beside it, may be or do so at the end of a chunk only.
        let AddedTokens { list, take_blanks, .. } = &self.preparation.added;
        let depends = list.iter().any(|added| added.is_word) || *take_blanks && !added.is_empty();
        let adds_up = is_unchanged && !depends && self.encoding.splitter.scan().is_some();
        chunks::chunks(
            Source { encoding: &self.encoding, count: &count, added: &added, adds_up },
            text,
            options,
            task,
        )
    }
}
