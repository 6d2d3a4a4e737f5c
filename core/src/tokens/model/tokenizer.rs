//! A model's tokenizer, and the operations on whole texts.

use super::byte_level;
use super::normalize::floor;
use super::parts::{Content, Preparation};
use crate::tokens::batch;
use crate::tokens::encoder::usual_tokens;
use crate::tokens::vocabulary::SHORT;
use crate::tokens::{Encoding, Error, TokenId, Truncated};
use crate::{Task, memory};
use rustc_hash::FxHashMap;
use std::fmt;

/// A model's tokenizer. Immutable; threads share it by reference.
///
/// ```no_run
/// use offlock_core::tokens::model::{Options, Tokenizer};
/// use offlock_core::Task;
///
/// let task = Task::new();
/// let tokenizer = Tokenizer::from_json(&std::fs::read("tokenizer.json")?, &task)?;
/// let tokens = tokenizer.encode("off the lock", Options::default(), &task)?;
/// assert_eq!(tokenizer.decode_bytes(&tokens, true, &task)?, b"off the lock");
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
pub struct Tokenizer {
    /// The pattern and the vocabulary. Added tokens are not among its special tokens.
    pub(super) encoding: Encoding,
    pub(super) preparation: Preparation,
    /// The template: the tokens before and after the text.
    pub(super) before: Vec<TokenId>,
    pub(super) after: Vec<TokenId>,
    pub(super) trim: Option<Trim>,
    /// Tokens that are not byte pair encoding's: added ones, and entries of the vocabulary that no text gives.
    pub(super) others: FxHashMap<TokenId, Other>,
    pub(super) sha256: [u8; 32],
}

/// Leaves blanks out of offsets.
#[derive(Clone, Copy)]
pub(super) struct Trim {
    /// A single blank at the beginning stays in: it may be one that was added.
    pub(super) keeps_first: bool,
}

/// A token that byte pair encoding does not make.
pub(super) struct Other {
    pub(super) text: String,
    /// What it decodes to.
    pub(super) bytes: Vec<u8>,
    pub(super) is_special: bool,
}

/// What a model adds to a text, and what it takes for more than text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Whether the tokens of the model's template go before and after the text.
    pub add_special_tokens: bool,
    /// Whether special tokens in the text are ordinary text. Other added tokens are recognized all the same.
    pub split_special_tokens: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { add_special_tokens: true, split_special_tokens: false }
    }
}

/// How often a prefix is truncated to what its tokens say before more is left out each time.
const ATTEMPTS: u32 = 8;

impl Tokenizer {
    /// The SHA-256 of the file that it was read from; of a `.tiktoken` file with the pattern and the special tokens.
    pub fn sha256(&self) -> &[u8; 32] {
        &self.sha256
    }

    /// The tokens of `text`.
    ///
    /// # Errors
    ///
    /// `Stopped`; `OutOfMemory`; `PatternFailed` with patterns that are not matched by hand.
    pub fn encode(&self, text: &str, options: Options, task: &Task<'_>) -> Result<Vec<TokenId>, Error> {
        let mut tokens = memory::with_capacity(usual_tokens(text.len()))?;
        self.run(text, options, task, &mut tokens, |_| {})?;
        Ok(tokens)
    }

    /// Appends the tokens of `text` to `tokens`, as [`encode`](Self::encode) gives them.
    ///
    /// # Errors
    ///
    /// As [`encode`](Self::encode).
    pub fn encode_to(
        &self,
        text: &str,
        options: Options,
        tokens: &mut Vec<TokenId>,
        task: &Task<'_>,
    ) -> Result<(), Error> {
        self.run(text, options, task, tokens, |_| {})
    }

    /// The number of tokens that [`encode`](Self::encode) would give.
    ///
    /// # Errors
    ///
    /// As [`encode`](Self::encode).
    pub fn count(&self, text: &str, options: Options, task: &Task<'_>) -> Result<usize, Error> {
        let mut count = 0;
        let take = |tokens: &mut Vec<TokenId>| {
            count += tokens.len();
            tokens.clear();
        };
        self.run(text, options, task, &mut Vec::new(), take)?;
        Ok(count)
    }

    /// The tokens of each text, computed on up to `threads` threads.
    ///
    /// # Errors
    ///
    /// As [`encode`](Self::encode), the first in the order of the texts.
    pub fn encode_batch(
        &self,
        texts: &[&str],
        options: Options,
        threads: usize,
        task: &Task<'_>,
    ) -> Result<Vec<Vec<TokenId>>, Error> {
        batch::map(texts, threads, task, |text| self.encode(text, options, task))
    }

    /// The number of tokens of each text, computed on up to `threads` threads.
    ///
    /// # Errors
    ///
    /// As [`encode_batch`](Self::encode_batch).
    pub fn count_batch(
        &self,
        texts: &[&str],
        options: Options,
        threads: usize,
        task: &Task<'_>,
    ) -> Result<Vec<usize>, Error> {
        batch::map(texts, threads, task, |text| self.count(text, options, task))
    }

    /// The longest prefix of `text` whose whole tokens, with those of the template, are at most `max`.
    ///
    /// # Errors
    ///
    /// As [`encode`](Self::encode).
    pub fn truncate(
        &self,
        text: &str,
        max: usize,
        options: Options,
        task: &Task<'_>,
    ) -> Result<Truncated, Error> {
        let (mut kept, mut is_changed) = self.truncate_once(text, max, options, task)?;
        // Normalization may put a mark before one that follows in the text. Without the latter, the prefix is another text.
        for attempt in 0_u32.. {
            if !is_changed || kept.bytes == text.len() {
                break;
            }
            let further = 1_usize.checked_shl(attempt.saturating_sub(ATTEMPTS)).unwrap_or(usize::MAX);
            let shorter = if attempt < ATTEMPTS { kept.bytes } else { kept.bytes.saturating_sub(further) };
            let prefix = &text[..floor(text, shorter)];
            let before = prefix.len();
            (kept, is_changed) = self.truncate_once(prefix, max, options, task)?;
            is_changed &= kept.bytes < before;
        }
        Ok(kept)
    }

    /// The same, and whether normalization has changed the text.
    fn truncate_once(
        &self,
        text: &str,
        max: usize,
        options: Options,
        task: &Task<'_>,
    ) -> Result<(Truncated, bool), Error> {
        let (before, after) = self.template(options);
        let Some(room) = max.checked_sub(before.len() + after.len()) else {
            return Ok((Truncated { bytes: 0, tokens: Vec::new() }, false));
        };
        let (mut kept, mut is_changed) = (Truncated { bytes: 0, tokens: memory::copied(before)? }, false);
        self.preparation.parts(text, options.split_special_tokens, true, task, |part| {
            let room = room + before.len() - kept.tokens.len();
            match part.content {
                Content::Token(_) if room == 0 => return Ok(false),
                Content::Token(id) => memory::push(&mut kept.tokens, id)?,
                Content::Text(text) => {
                    is_changed |= text.is_changed();
                    let found =
                        self.encoding.truncate(&text.text, room, crate::tokens::Specials::None, task)?;
                    memory::append(&mut kept.tokens, &found.tokens)?;
                    if found.bytes < text.text.len() {
                        if found.bytes > 0 {
                            kept.bytes = part.range.start + text.origin_start(found.bytes, part.range.len());
                        }
                        return Ok(false);
                    }
                }
            }
            kept.bytes = part.range.end;
            Ok(true)
        })?;
        memory::append(&mut kept.tokens, after)?;
        Ok((kept, is_changed))
    }

    /// The bytes that `tokens` stand for; not necessarily valid UTF-8. Numbers without a token stand for
    /// nothing: models have more numbers than tokens.
    ///
    /// # Errors
    ///
    /// `Stopped` and `OutOfMemory`.
    pub fn decode_bytes(
        &self,
        tokens: &[TokenId],
        skip_special_tokens: bool,
        task: &Task<'_>,
    ) -> Result<Vec<u8>, Error> {
        let mut bytes = memory::with_capacity(tokens.len().saturating_mul(4))?;
        self.decode_bytes_to(tokens, skip_special_tokens, &mut bytes, task)?;
        Ok(bytes)
    }

    /// Appends the bytes that `tokens` stand for to `bytes`.
    ///
    /// # Errors
    ///
    /// As [`decode_bytes`](Self::decode_bytes).
    pub fn decode_bytes_to(
        &self,
        tokens: &[TokenId],
        skip_special_tokens: bool,
        bytes: &mut Vec<u8>,
        task: &Task<'_>,
    ) -> Result<(), Error> {
        /// The number of tokens, if they are short, for which capacity is reserved at a time.
        const AT_ONCE: usize = 4096;
        const ROOM: usize = AT_ONCE * SHORT;
        for tokens in tokens.chunks(AT_ONCE) {
            task.check()?;
            memory::reserve(bytes, ROOM)?;
            for &token in tokens {
                match self.others.get(&token) {
                    Some(other) if other.is_special && skip_special_tokens => {}
                    Some(other) => {
                        memory::reserve(bytes, other.bytes.len() + ROOM)?;
                        bytes.extend_from_slice(&other.bytes);
                    }
                    None => _ = self.encoding.vocabulary.append(token, bytes, ROOM)?,
                }
            }
            task.advance(tokens.len() as u64);
        }
        Ok(())
    }

    /// The number of the token that `text` is in the model's vocabulary, where ordinary tokens are written in
    /// the byte-level alphabet.
    pub fn token_to_id(&self, text: &str) -> Option<TokenId> {
        let added = &self.preparation.added;
        let is_foreign = |&(&id, other): &(&TokenId, &Other)| other.text == text && added.get(id).is_none();
        let other = || self.others.iter().find(is_foreign).map(|(&id, _)| id);
        let ordinary = || self.encoding.vocabulary.token(&byte_level::bytes(text)?);
        let added = added.list.iter().rev().find(|added| added.text == text).map(|added| added.id);
        added.or_else(ordinary).or_else(other)
    }

    /// How the vocabulary writes the token `id`; an added token that is looked for in normalized text, as it occurs there.
    pub fn id_to_token(&self, id: TokenId) -> Option<String> {
        let other = self.others.get(&id).map(|other| other.text.clone());
        other.or_else(|| Some(byte_level::token(self.encoding.vocabulary.bytes(id)?)))
    }

    /// The number of different tokens.
    pub fn vocab_size(&self) -> usize {
        let ordinary = self.encoding.n_ranks();
        let doubly = self.others.keys().filter(|&&id| self.encoding.vocabulary.bytes(id).is_some());
        ordinary + self.others.len() - doubly.count()
    }

    /// One more than the greatest token.
    pub fn n_vocab(&self) -> usize {
        let other = self.others.keys().max().map_or(0, |&id| id as usize + 1);
        self.encoding.n_vocab().max(other)
    }

    /// The added tokens: their texts, their numbers and whether they are special.
    pub fn added_tokens(&self) -> impl Iterator<Item = (&str, TokenId, bool)> {
        self.preparation.added.list.iter().map(|added| (&*added.text, added.id, added.is_special))
    }

    /// The tokens that the template puts before and after a text.
    pub fn template(&self, options: Options) -> (&[TokenId], &[TokenId]) {
        if options.add_special_tokens { (&self.before, &self.after) } else { (&[], &[]) }
    }

    /// Whether every vocabulary's fast methods apply; otherwise a list of merges is followed step by step.
    pub fn is_fast(&self) -> bool {
        self.encoding.vocabulary.backtracker.is_some()
    }

    /// Appends the tokens of `text` to `out` and calls `after` after each stretch.
    fn run(
        &self,
        text: &str,
        options: Options,
        task: &Task<'_>,
        out: &mut Vec<TokenId>,
        mut after: impl FnMut(&mut Vec<TokenId>),
    ) -> Result<(), Error> {
        let (first, last) = self.template(options);
        memory::append(out, first)?;
        let mut encoder = self.encoding.encoder(task);
        self.preparation.parts(text, options.split_special_tokens, false, task, |part| {
            match part.content {
                Content::Token(id) => memory::push(out, id)?,
                Content::Text(text) => {
                    let mut at = 0;
                    while at < text.text.len() {
                        at = encoder.stretch(&text.text, at, out)?;
                        after(out);
                    }
                }
            }
            after(out);
            Ok(true)
        })?;
        memory::append(out, last)?;
        after(out);
        Ok(())
    }
}

impl fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokenizer").field("vocab_size", &self.vocab_size()).finish_non_exhaustive()
    }
}
