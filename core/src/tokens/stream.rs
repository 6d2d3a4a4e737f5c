//! Encodes a text that arrives in pieces, each token as soon as no continuation of the text can change it.
//!
//! A stream keeps the end of the text of which the tokens are not final yet. With each piece of text, it looks
//! for the longest beginning of what it has kept that can be encoded by itself:
//!
//! ```text
//! kept       the␣lo                 then            ck<|endof            then       text|>!
//! final      the|                                   ␣lock|               (special)  <|endoftext|>|
//! kept       ␣lo                                    <|endof                         !
//! ```
//!
//! 1. Special tokens: from the first place on at which one may begin that is not complete, the text is kept
//!    (`beginnings.rs`).
//! 2. Pieces of the pattern: how far the patterns that are matched by hand look ahead is known
//!    (`split/lookahead.rs`). Others may look anywhere, so they cannot be streamed.
//! 3. Models that normalize texts: what is kept begins where nothing is joined across (`model/stream.rs`).
//!
//! What is kept is therefore the longest piece of the text, what the pattern looks at behind it, and the beginning
//! of a special token. A long piece is not searched anew each time that it grows: after [`PATIENT`] bytes, the
//! stream waits until a quarter has been added, so that the time stays linear in the length of the text.

use super::encoder::Encoder;
use super::split::{Scan, last_final};
use super::{Error, ErrorKind, TokenId};
use crate::Task;
use crate::memory::{self, OutOfMemory};
use std::fmt;

/// From this length on, what is kept is not searched for each new piece.
const PATIENT: usize = 4 << 10;

/// The bytes of text between two checks of the task while they are read.
const STRETCH: usize = 256 << 10;

/// A text that is encoded as it arrives. The tokens of all calls, joined, are those of the whole text.
///
/// ```
/// use offlock_core::tokens::{self, Specials, Stream};
/// use offlock_core::Task;
///
/// let task = Task::new();
/// let encoding = tokens::get("o200k_base").unwrap();
/// let mut stream = Stream::of_encoding(encoding, Specials::All, None)?;
/// let mut tokens = stream.feed(b"off th", &task)?;
/// assert_eq!(tokens, [2864]);
/// assert_eq!(stream.total(&task)?, 2);
/// tokens.extend(stream.feed(b"e lock", &task)?);
/// tokens.extend(stream.finish(&task)?);
/// assert_eq!(tokens, [2864, 290, 8109]);
/// # Ok::<_, tokens::Error>(())
/// ```
pub struct Stream {
    source: Box<dyn Source>,
    /// The most bytes that may be kept back.
    limit: usize,
    /// The text that is kept, and behind it what a call has added that was not accepted.
    text: String,
    /// The length of the text that is kept.
    kept: usize,
    /// The bytes of a character of which more have to come.
    partial: Vec<u8>,
    place: Place,
    /// The length from which on the kept text is searched again.
    patience: usize,
    /// The length of the text so far, in bytes.
    length: usize,
    /// The number of final tokens.
    count: usize,
    has_begun: bool,
    has_ended: bool,
}

/// What a piece of text makes of a stream, once it is accepted.
#[must_use = "the stream stays as it is until it accepts this"]
pub struct Fed {
    tokens: Vec<TokenId>,
    count: usize,
    /// What is kept then, if it is no longer all of the text.
    rest: Option<String>,
    partial: Vec<u8>,
    place: Place,
    length: usize,
    begins: bool,
    ends: bool,
}

impl Fed {
    /// The tokens that became final; none if they are only counted.
    pub fn tokens(&self) -> &[TokenId] {
        &self.tokens
    }

    /// The memory that it has, for callers that free it elsewhere.
    pub fn into_memory(self) -> (Vec<TokenId>, Vec<u8>) {
        (self.tokens, self.rest.map_or_else(Vec::new, String::into_bytes))
    }

    /// The memory that it has, in bytes.
    pub fn memory(&self) -> usize {
        size_of_val(self.tokens()) + self.rest.as_ref().map_or(0, String::capacity)
    }

    /// The number of tokens that became final.
    pub fn count(&self) -> usize {
        self.count
    }
}

/// What is wanted of the tokens.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Want {
    Tokens,
    Count,
}

/// What a stream knows besides the text that it keeps.
#[derive(Clone, Copy)]
pub(super) struct Place {
    /// Whether the kept text begins a text, or follows an added token.
    pub(super) begins: bool,
    /// Where in the kept text the search for added tokens goes on.
    pub(super) search_from: usize,
}

impl Place {
    pub(super) const START: Self = Self { begins: true, search_from: 0 };
}

/// Takes tokens out of the list that they are appended to.
pub(super) type Sink<'a> = &'a mut dyn FnMut(&mut Vec<TokenId>) -> Result<(), Error>;

/// A tokenizer for a stream.
pub(super) trait Source: Send + Sync {
    /// Passes the final tokens of `text`, or all of them if it `is_whole`, to `sink`. Returns where the rest
    /// begins.
    fn settle(
        &self,
        text: &str,
        place: Place,
        is_whole: bool,
        sink: Sink<'_>,
        task: &Task<'_>,
    ) -> Result<(usize, Place), Error>;

    /// The tokens that go before and after a text.
    fn template(&self) -> (&[TokenId], &[TokenId]) {
        (&[], &[])
    }
}

impl Stream {
    pub(super) fn new(source: impl Source + 'static, limit: Option<usize>) -> Self {
        Self {
            source: Box::new(source),
            limit: limit.unwrap_or(usize::MAX),
            text: String::new(),
            kept: 0,
            partial: Vec::new(),
            place: Place::START,
            patience: 0,
            length: 0,
            count: 0,
            has_begun: false,
            has_ended: false,
        }
    }

    /// Adds a piece of the text in UTF-8, which may begin and end within a character. Returns the tokens that
    /// became final.
    ///
    /// After an error the stream is as before the call.
    ///
    /// # Errors
    ///
    /// `InvalidUtf8`; `KeptTooMuch`; `StreamEnded`; `OutOfMemory`; `Stopped`.
    pub fn feed(&mut self, piece: &[u8], task: &Task<'_>) -> Result<Vec<TokenId>, Error> {
        let mut fed = self.try_feed(piece, task)?;
        self.accept(&mut fed);
        Ok(fed.tokens)
    }

    /// As [`feed`](Self::feed), but returns only the number of the tokens.
    ///
    /// # Errors
    ///
    /// As [`feed`](Self::feed).
    pub fn count(&mut self, piece: &[u8], task: &Task<'_>) -> Result<usize, Error> {
        let mut fed = self.try_count(piece, task)?;
        self.accept(&mut fed);
        Ok(fed.count)
    }

    /// Ends the text, and returns the rest of the tokens.
    ///
    /// # Errors
    ///
    /// As [`feed`](Self::feed); `InvalidUtf8` also if the last character is not complete.
    pub fn finish(&mut self, task: &Task<'_>) -> Result<Vec<TokenId>, Error> {
        let mut fed = self.try_finish(&[], task)?;
        self.accept(&mut fed);
        Ok(fed.tokens)
    }

    /// What [`feed`](Self::feed) would do. The stream stays as it is until it accepts the result, for callers that
    /// may fail to pass the tokens on.
    ///
    /// # Errors
    ///
    /// As [`feed`](Self::feed).
    pub fn try_feed(&mut self, piece: &[u8], task: &Task<'_>) -> Result<Fed, Error> {
        self.add(piece, false, Want::Tokens, task)
    }

    /// What [`count`](Self::count) would do, as [`try_feed`](Self::try_feed).
    ///
    /// # Errors
    ///
    /// As [`feed`](Self::feed).
    pub fn try_count(&mut self, piece: &[u8], task: &Task<'_>) -> Result<Fed, Error> {
        self.add(piece, false, Want::Count, task)
    }

    /// What [`finish`](Self::finish) would do after `last`, the last piece, as [`try_feed`](Self::try_feed).
    ///
    /// # Errors
    ///
    /// As [`finish`](Self::finish).
    pub fn try_finish(&mut self, last: &[u8], task: &Task<'_>) -> Result<Fed, Error> {
        self.add(last, true, Want::Tokens, task)
    }

    /// Takes what the last call has found out; `fed` has to be its result. Afterwards `fed` has the memory of the
    /// text that is no longer needed.
    pub fn accept(&mut self, fed: &mut Fed) {
        if let Some(rest) = &mut fed.rest {
            std::mem::swap(&mut self.text, rest);
        }
        let has_shrunk = fed.rest.is_some();
        self.kept = self.text.len();
        if has_shrunk || self.kept >= self.patience {
            self.patience = if self.kept < PATIENT { 0 } else { self.kept + self.kept / 4 };
        }
        std::mem::swap(&mut self.partial, &mut fed.partial);
        self.place = fed.place;
        self.length += fed.length;
        self.count += fed.count;
        self.has_begun |= fed.begins;
        self.has_ended = fed.ends;
    }

    /// The number of tokens of the text so far, as if it ended here; without a character that is not complete.
    /// Takes time in proportion to what is kept back.
    ///
    /// # Errors
    ///
    /// `OutOfMemory` and `Stopped`.
    pub fn total(&self, task: &Task<'_>) -> Result<usize, Error> {
        if self.has_ended {
            return Ok(self.count);
        }
        let mut count = self.count;
        let mut sink = |new: &mut Vec<TokenId>| {
            count += new.len();
            Ok(())
        };
        self.settle(&self.text[..self.kept], true, &mut sink, task)?;
        Ok(count)
    }

    /// The number of tokens that are final.
    pub fn final_count(&self) -> usize {
        self.count
    }

    /// The number of bytes of text that are kept back.
    pub fn pending(&self) -> usize {
        self.kept + self.partial.len()
    }

    fn add(&mut self, piece: &[u8], ends: bool, want: Want, task: &Task<'_>) -> Result<Fed, Error> {
        if self.has_ended {
            return Err(ErrorKind::StreamEnded.into());
        }
        let (length, place) = (piece.len(), self.place);
        let partial = self.append(piece, task)?;
        if ends && !partial.is_empty() {
            return Err(ErrorKind::InvalidUtf8 { offset: self.length + length - partial.len() }.into());
        }
        let mut fed =
            Fed { tokens: Vec::new(), count: 0, rest: None, partial, place, length, begins: false, ends };
        if ends || self.text.len() >= self.patience || self.text.len() > self.limit {
            self.advance(&mut fed, want, task)?;
        }
        Ok(fed)
    }

    /// Appends the characters that `piece` completes to the text. Returns the rest.
    fn append(&mut self, piece: &[u8], task: &Task<'_>) -> Result<Vec<u8>, Error> {
        self.text.truncate(self.kept);
        let mut partial = self.partial.clone();
        let invalid = |offset| ErrorKind::InvalidUtf8 { offset };
        let mut read = 0;
        self.text.try_reserve(partial.len() + piece.len()).map_err(OutOfMemory::from)?;
        while !partial.is_empty() && read < piece.len() {
            partial.push(piece[read]);
            read += 1;
            let character = utf8_prefix(&partial).ok_or_else(|| invalid(self.length - self.partial.len()))?;
            if !character.is_empty() {
                self.text.push_str(character);
                partial.clear();
            }
        }
        while read < piece.len() {
            task.check()?;
            let end = piece.len().min(read + STRETCH);
            let some = &piece[read..end];
            let text = utf8_prefix(some).ok_or_else(|| invalid(self.length + read + valid(some)))?;
            self.text.push_str(text);
            read += text.len();
            if end == piece.len() {
                partial.extend_from_slice(&piece[read..]);
                break;
            }
        }
        Ok(partial)
    }

    /// Looks for tokens that are final.
    fn advance(&self, fed: &mut Fed, want: Want, task: &Task<'_>) -> Result<(), Error> {
        let Fed { tokens, count, .. } = fed;
        let mut sink = |new: &mut Vec<TokenId>| {
            *count += new.len();
            match want {
                Want::Tokens => Ok(memory::append(tokens, new)?),
                Want::Count => Ok(()),
            }
        };
        let (settled, place) = self.settle(&self.text, fed.ends, &mut sink, task)?;
        let rest = &self.text[settled..];
        if rest.len() > self.limit {
            return Err(ErrorKind::KeptTooMuch { limit: self.limit }.into());
        }
        if settled > 0 {
            let mut kept = String::new();
            kept.try_reserve_exact(rest.len()).map_err(OutOfMemory::from)?;
            kept.push_str(rest);
            fed.rest = Some(kept);
        }
        (fed.place, fed.begins) = (place, true);
        Ok(())
    }

    /// As [`Source::settle`], with the template.
    fn settle(
        &self,
        text: &str,
        is_whole: bool,
        sink: Sink<'_>,
        task: &Task<'_>,
    ) -> Result<(usize, Place), Error> {
        let (before, after) = self.source.template();
        if !self.has_begun {
            sink(&mut memory::copied(before)?)?;
        }
        let settled = self.source.settle(text, self.place, is_whole, sink, task)?;
        if is_whole {
            sink(&mut memory::copied(after)?)?;
        }
        Ok(settled)
    }
}

/// The longest prefix of whole characters; `None` if what follows it is not the beginning of one.
fn utf8_prefix(bytes: &[u8]) -> Option<&str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Some(text),
        Err(error) if error.error_len().is_none() => std::str::from_utf8(&bytes[..error.valid_up_to()]).ok(),
        Err(_) => None,
    }
}

/// The number of bytes of the longest prefix of whole characters.
fn valid(bytes: &[u8]) -> usize {
    std::str::from_utf8(bytes).map_or_else(|error| error.valid_up_to(), str::len)
}

/// Passes the tokens of the final pieces of `text` from `at` on to `sink`, as far as the last one that ends where
/// `may_end` allows. Returns the end of that.
pub(super) fn encode_final(
    encoder: &mut Encoder<'_>,
    scan: Scan,
    text: &str,
    at: usize,
    may_end: impl Fn(usize) -> bool,
    sink: Sink<'_>,
    task: &Task<'_>,
) -> Result<usize, Error> {
    let mut at = at;
    loop {
        let end = last_final(scan, text, at, &may_end, task)?;
        if end == at {
            return Ok(at);
        }
        at = encode(encoder, text, at, end, sink)?;
    }
}

/// Passes the tokens of the pieces of `text` that start in a range to `sink`.
pub(super) fn encode(
    encoder: &mut Encoder<'_>,
    text: &str,
    start: usize,
    end: usize,
    sink: Sink<'_>,
) -> Result<usize, Error> {
    let (mut at, mut tokens) = (start, Vec::new());
    while at < end {
        at = encoder.until(text, at..end, &mut tokens)?;
        sink(&mut tokens)?;
        tokens.clear();
    }
    Ok(at)
}

impl fmt::Debug for Fed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fed").field("count", &self.count).finish_non_exhaustive()
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream")
            .field("final_count", &self.count)
            .field("pending", &self.pending())
            .finish_non_exhaustive()
    }
}
