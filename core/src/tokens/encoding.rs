//! An encoding: a pattern, a vocabulary and special tokens, and the operations on whole texts.
//!
//! Each operation cuts the text at the allowed special tokens (`specials.rs`) and passes the segments between
//! them to an [`Encoder`], stretch by stretch. Counting and truncating do the same, but keep no more tokens
//! than those of one stretch, so they need no list of the whole text.

use super::encoder::{Encoder, STRETCH, usual_tokens};
use super::specials::SpecialTokens;
use super::split::{Place, Splitter};
use super::vocabulary::{SHORT, Vocabulary};
use super::{Error, ErrorKind, Specials, TokenId};
use crate::task::Stretches;
use crate::{Stopped, Task, memory};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// A tokenizer: a pattern, a vocabulary and special tokens. Immutable; threads share it by reference.
///
/// ```
/// use offlock_core::tokens::{Encoding, Specials};
/// use offlock_core::Task;
///
/// let task = Task::new();
/// let ranks = (0..=255).map(|byte: u8| (vec![byte], byte.into()));
/// let ranks = ranks.chain([(b"ab".to_vec(), 256), (b"abc".to_vec(), 257)]);
/// let encoding = Encoding::new("tiny", r"\w+|\s+", ranks, [("<end>".to_owned(), 258)], &task)?;
/// assert_eq!(encoding.encode("abc ab<end>", Specials::All, &task)?, [257, 32, 256, 258]);
/// # Ok::<_, offlock_core::tokens::Error>(())
/// ```
pub struct Encoding {
    name: String,
    pub(super) splitter: Splitter,
    pub(super) vocabulary: Arc<Vocabulary>,
    pub(super) specials: SpecialTokens,
}

/// What [`Encoding::truncate`] keeps of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Truncated {
    /// The length of the text that is kept, in bytes; always a character boundary.
    pub bytes: usize,
    /// The tokens of that text.
    pub tokens: Vec<TokenId>,
}

/// A stretch of text: ordinary text, or one special token.
pub(super) enum Segment {
    Ordinary(Range<usize>),
    Special(Range<usize>, TokenId),
}

impl Encoding {
    /// A custom encoding. `pattern` is a regular expression in the dialect of the crate fancy-regex.
    ///
    /// # Errors
    ///
    /// `Stopped`; `BadPattern`; `BadVocabulary` when there are no ranks, when two tokens share a rank, or
    /// when a special token is the empty string.
    pub fn new(
        name: &str,
        pattern: &str,
        ranks: impl IntoIterator<Item = (Vec<u8>, TokenId)>,
        specials: impl IntoIterator<Item = (String, TokenId)>,
        task: &Task<'_>,
    ) -> Result<Self, Error> {
        Self::assemble(name, pattern, Arc::new(Vocabulary::new(ranks, task)?), specials)
    }

    pub(super) fn assemble(
        name: &str,
        pattern: &str,
        vocabulary: Arc<Vocabulary>,
        specials: impl IntoIterator<Item = (String, TokenId)>,
    ) -> Result<Self, Error> {
        let splitter = Splitter::new(pattern)?;
        Ok(Self { name: name.to_owned(), splitter, vocabulary, specials: SpecialTokens::new(specials)? })
    }

    /// What a model's tokenizer encodes ordinary text with.
    pub(super) fn of_parts(splitter: Splitter, vocabulary: Arc<Vocabulary>) -> Result<Self, Error> {
        Ok(Self { name: String::new(), splitter, vocabulary, specials: SpecialTokens::new([])? })
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The pattern that pieces of text match.
    pub fn pattern(&self) -> &str {
        self.splitter.pattern()
    }

    /// The number of ordinary tokens.
    pub fn n_ranks(&self) -> usize {
        self.vocabulary.len()
    }

    /// The number of special tokens.
    pub fn n_specials(&self) -> usize {
        self.specials.len()
    }

    /// The greatest token.
    pub fn max_token_value(&self) -> TokenId {
        let special = self.specials.iter().map(|(_, token)| token).max();
        self.vocabulary.max_token().max(special.unwrap_or(0))
    }

    /// One more than the greatest token.
    pub fn n_vocab(&self) -> usize {
        self.max_token_value() as usize + 1
    }

    /// The special tokens, in no particular order.
    pub fn specials(&self) -> impl Iterator<Item = (&str, TokenId)> {
        self.specials.iter()
    }

    /// The ordinary tokens in the order of their ranks.
    pub fn ranks(&self) -> impl Iterator<Item = (&[u8], TokenId)> {
        self.vocabulary.iter()
    }

    /// The bytes of the ordinary tokens in the order of the bytes.
    ///
    /// # Errors
    ///
    /// `Stopped`, and when there is no memory for them.
    pub fn token_byte_values(&self, task: &Task<'_>) -> Result<Vec<&[u8]>, Error> {
        memory::collected(self.vocabulary.sorted(task)?.into_iter().map(|(bytes, _)| Ok(bytes)))
    }

    /// The tokens of `text`, with special tokens' text treated as any other.
    ///
    /// # Errors
    ///
    /// `Stopped`; with custom encodings also `PatternFailed` and `UnknownByte`.
    pub fn encode_ordinary(&self, text: &str, task: &Task<'_>) -> Result<Vec<TokenId>, Error> {
        self.encode(text, Specials::None, task)
    }

    /// The tokens of `text`, in which the special tokens `allowed` are recognized.
    ///
    /// # Errors
    ///
    /// As [`encode_ordinary`](Self::encode_ordinary).
    pub fn encode(&self, text: &str, allowed: Specials<'_>, task: &Task<'_>) -> Result<Vec<TokenId>, Error> {
        let mut tokens = memory::with_capacity(usual_tokens(text.len()))?;
        self.run(text, allowed, task, &mut tokens, |_| {})?;
        Ok(tokens)
    }

    /// Appends the tokens of `text` to `tokens`, as [`encode`](Self::encode) gives them.
    ///
    /// # Errors
    ///
    /// As [`encode_ordinary`](Self::encode_ordinary).
    pub fn encode_to(
        &self,
        text: &str,
        allowed: Specials<'_>,
        tokens: &mut Vec<TokenId>,
        task: &Task<'_>,
    ) -> Result<(), Error> {
        self.run(text, allowed, task, tokens, |_| {})
    }

    /// The number of tokens that [`encode_ordinary`](Self::encode_ordinary) would give.
    ///
    /// # Errors
    ///
    /// As [`encode_ordinary`](Self::encode_ordinary).
    pub fn count_ordinary(&self, text: &str, task: &Task<'_>) -> Result<usize, Error> {
        self.count(text, Specials::None, task)
    }

    /// The number of tokens that [`encode`](Self::encode) would give.
    ///
    /// # Errors
    ///
    /// As [`encode_ordinary`](Self::encode_ordinary).
    pub fn count(&self, text: &str, allowed: Specials<'_>, task: &Task<'_>) -> Result<usize, Error> {
        let mut count = 0;
        let take = |tokens: &mut Vec<TokenId>| {
            count += tokens.len();
            tokens.clear();
        };
        self.run(text, allowed, task, &mut Vec::new(), take)?;
        Ok(count)
    }

    /// The longest prefix of `text` that consists of at most `max` whole tokens and of whole characters.
    ///
    /// # Errors
    ///
    /// As [`encode_ordinary`](Self::encode_ordinary).
    pub fn truncate(
        &self,
        text: &str,
        max: usize,
        allowed: Specials<'_>,
        task: &Task<'_>,
    ) -> Result<Truncated, Error> {
        let mut kept = Truncated { bytes: 0, tokens: Vec::new() };
        let mut tokens = Vec::new();
        for segment in self.segments(text, allowed, task) {
            let whole = match segment? {
                Segment::Special(range, token) => {
                    tokens.push(token);
                    self.keep(text, range, &mut tokens, max, &mut kept)?
                }
                Segment::Ordinary(range) => self.keep_ordinary(text, range, max, &mut kept, task)?,
            };
            if !whole {
                break;
            }
        }
        Ok(kept)
    }

    fn keep_ordinary(
        &self,
        text: &str,
        range: Range<usize>,
        max: usize,
        kept: &mut Truncated,
        task: &Task<'_>,
    ) -> Result<bool, Error> {
        let mut encoder = self.encoder(task);
        let segment = &text[range.clone()];
        let mut tokens = Vec::new();
        let mut place = Place::default();
        let mut stretches = Stretches::new(task, STRETCH);
        while let Some(piece) = self.splitter.next(segment, &mut place, task)? {
            stretches.check(piece.start)?;
            encoder.one(segment.as_bytes(), piece.clone(), &mut tokens)?;
            task.advance(piece.len() as u64);
            let piece = range.start + piece.start..range.start + piece.end;
            if !self.keep(text, piece, &mut tokens, max, kept)? {
                return Ok(false);
            }
        }
        // What the pattern does not match has no tokens.
        kept.bytes = range.end;
        Ok(true)
    }

    /// Moves the tokens of `text[piece]` to `kept` as far as they fit; true if all did.
    fn keep(
        &self,
        text: &str,
        piece: Range<usize>,
        tokens: &mut Vec<TokenId>,
        max: usize,
        kept: &mut Truncated,
    ) -> Result<bool, Error> {
        let room = max - kept.tokens.len();
        if tokens.len() <= room {
            memory::append(&mut kept.tokens, tokens)?;
            tokens.clear();
            kept.bytes = piece.end;
            return Ok(true);
        }
        let length = |&token: &TokenId| self.decode_single_token_bytes(token).map_or(0, <[u8]>::len);
        let (mut end, mut fitting) = (piece.start, 0);
        for (last, token) in tokens[..room].iter().enumerate() {
            end += length(token);
            if text.is_char_boundary(end) {
                (fitting, kept.bytes) = (last + 1, end);
            }
        }
        memory::append(&mut kept.tokens, &tokens[..fitting])?;
        Ok(false)
    }

    /// The token whose bytes these are, ordinary or special.
    pub fn encode_single_token(&self, bytes: &[u8]) -> Option<TokenId> {
        let special = || self.specials.token(std::str::from_utf8(bytes).ok()?);
        self.vocabulary.token(bytes).or_else(special)
    }

    /// The tokens of `bytes` taken as one piece, without cutting them by the pattern first.
    ///
    /// # Errors
    ///
    /// As [`encode_ordinary`](Self::encode_ordinary).
    pub fn encode_single_piece(&self, bytes: &[u8], task: &Task<'_>) -> Result<Vec<TokenId>, Error> {
        task.check()?;
        let mut tokens = Vec::new();
        self.encoder(task).one(bytes, 0..bytes.len(), &mut tokens)?;
        Ok(tokens)
    }

    /// The bytes that `tokens` stand for; not necessarily valid UTF-8.
    ///
    /// # Errors
    ///
    /// `UnknownToken` and `Stopped`.
    pub fn decode_bytes(&self, tokens: &[TokenId], task: &Task<'_>) -> Result<Vec<u8>, Error> {
        let mut bytes = memory::with_capacity(tokens.len().saturating_mul(4))?;
        self.decode_bytes_to(tokens, &mut bytes, task)?;
        Ok(bytes)
    }

    /// Appends the bytes that `tokens` stand for to `bytes`.
    ///
    /// # Errors
    ///
    /// `UnknownToken` and `Stopped`.
    pub fn decode_bytes_to(
        &self,
        tokens: &[TokenId],
        bytes: &mut Vec<u8>,
        task: &Task<'_>,
    ) -> Result<(), Error> {
        /// The number of tokens, if they are short, for which capacity is reserved at a time.
        const AT_ONCE: usize = 4096;
        const ROOM: usize = AT_ONCE * SHORT;
        for (index, &token) in tokens.iter().enumerate() {
            if index % AT_ONCE == 0 {
                task.check()?;
                memory::reserve(bytes, ROOM)?;
            }
            if !self.vocabulary.append(token, bytes, ROOM)? {
                let special = self.specials.text(token).ok_or(ErrorKind::UnknownToken { token, index })?;
                memory::reserve(bytes, special.len() + ROOM)?;
                bytes.extend_from_slice(special.as_bytes());
            }
        }
        task.advance(tokens.len() as u64);
        Ok(())
    }

    /// The bytes of one token, ordinary or special.
    pub fn decode_single_token_bytes(&self, token: TokenId) -> Option<&[u8]> {
        self.vocabulary.bytes(token).or_else(|| self.specials.text(token).map(str::as_bytes))
    }

    /// The special token that `token` is the number of.
    pub fn special_text(&self, token: TokenId) -> Option<&str> {
        self.specials.text(token)
    }

    /// The first of the strings `which` in `text`, and its byte offset. `Specials::Only` may list any
    /// strings.
    ///
    /// # Errors
    ///
    /// `Stopped`.
    pub fn find_special<'a>(
        &'a self,
        text: &str,
        which: Specials<'a>,
        task: &Task<'_>,
    ) -> Result<Option<(usize, &'a str)>, Stopped> {
        self.specials.find(text, which, task)
    }

    /// The beginning of a run.
    pub(super) fn encoder<'a>(&'a self, task: &'a Task<'a>) -> Encoder<'a> {
        Encoder::new(&self.splitter, &self.vocabulary, task)
    }

    /// Appends the tokens of `text` to `out` and calls `after` after each stretch.
    fn run(
        &self,
        text: &str,
        allowed: Specials<'_>,
        task: &Task<'_>,
        out: &mut Vec<TokenId>,
        mut after: impl FnMut(&mut Vec<TokenId>),
    ) -> Result<(), Error> {
        let mut encoder = self.encoder(task);
        for segment in self.segments(text, allowed, task) {
            match segment? {
                Segment::Special(_, token) => memory::push(out, token)?,
                Segment::Ordinary(range) => {
                    let start = range.start;
                    let mut at = 0;
                    while at < range.len() {
                        let next = encoder.stretch(&text[range.clone()], at, out);
                        at = next.map_err(|error| error.in_part_at(start))?;
                        after(out);
                    }
                }
            }
            after(out);
        }
        Ok(())
    }

    /// Cuts `text` at the special tokens that are allowed. The task is checked where these are few, and once
    /// for every stretch of text where they are many.
    pub(super) fn segments<'a>(
        &'a self,
        text: &'a str,
        allowed: Specials<'_>,
        task: &'a Task<'a>,
    ) -> impl Iterator<Item = Result<Segment, Stopped>> + use<'a> {
        let allowed = self.specials.choose(allowed);
        let mut stretches = Stretches::new(task, STRETCH);
        let mut at = 0;
        let mut waiting = None;
        std::iter::from_fn(move || {
            if let Some(special) = waiting.take() {
                return Some(Ok(special));
            }
            if at >= text.len() {
                return None;
            }
            let start = at;
            let checked = stretches.check(start);
            let found = match checked.and_then(|()| self.specials.next_allowed(text, start, &allowed, task)) {
                Ok(Some(found)) => found,
                Ok(None) => {
                    at = text.len();
                    return Some(Ok(Segment::Ordinary(start..at)));
                }
                Err(stopped) => return Some(Err(stopped)),
            };
            at = found.end;
            let special = Segment::Special(found.start..found.end, found.token);
            if found.start == start {
                return Some(Ok(special));
            }
            waiting = Some(special);
            Some(Ok(Segment::Ordinary(start..found.start)))
        })
    }
}

impl fmt::Debug for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Encoding").field("name", &self.name).finish_non_exhaustive()
    }
}
