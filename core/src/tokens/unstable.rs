//! Encoding of text that may continue: the tokens that are settled, and what the last ones may become.
//!
//! The results are tiktoken's: the tokens of the last piece are decoded to bytes, and for each way to cut
//! these bytes, all tokens that begin with the rest are tried as a continuation. That takes time proportional
//! to the number of such tokens, which may be thousands.

use super::encoding::Segment;
use super::split::Place;
use super::{Encoding, Error, Specials, TokenId};
use crate::{Task, memory};

/// Tokens; the last `last_piece` of them come from the last piece of the text.
struct Tail {
    tokens: Vec<TokenId>,
    last_piece: usize,
}

impl Encoding {
    /// The settled tokens of `text`, and all ways in which the rest may be encoded if more text follows, in
    /// sorted order.
    ///
    /// # Errors
    ///
    /// As [`encode_ordinary`](Self::encode_ordinary).
    pub fn encode_with_unstable(
        &self,
        text: &str,
        allowed: Specials<'_>,
        task: &Task<'_>,
    ) -> Result<(Vec<TokenId>, Vec<Vec<TokenId>>), Error> {
        let mut tail = self.encode_tail(text, allowed, task)?;
        self.widen_over_spaces(&mut tail);
        let settled = tail.tokens.len() - tail.last_piece;
        let unstable = self.decode_bytes(&tail.tokens[settled..], task)?;
        tail.tokens.truncate(settled);
        let completions = self.completions(&unstable, task)?;
        Ok((tail.tokens, completions))
    }

    /// The tokens of bytes that need not be valid UTF-8: the last piece of the valid prefix and everything
    /// after it are encoded as one piece.
    ///
    /// # Errors
    ///
    /// As [`encode_ordinary`](Self::encode_ordinary).
    pub fn encode_bytes(&self, bytes: &[u8], task: &Task<'_>) -> Result<Vec<TokenId>, Error> {
        let Some(chunk) = bytes.utf8_chunks().next() else { return Ok(Vec::new()) };
        let valid = chunk.valid();
        if valid.len() == bytes.len() {
            return self.encode_ordinary(valid, task);
        }
        let mut tail = self.encode_tail(valid, Specials::None, task)?;
        self.widen_over_spaces(&mut tail);
        let settled = tail.tokens.len() - tail.last_piece;
        let mut rest = self.decode_bytes(&tail.tokens[settled..], task)?;
        memory::append(&mut rest, &bytes[valid.len()..])?;
        tail.tokens.truncate(settled);
        memory::append(&mut tail.tokens, &self.encode_single_piece(&rest, task)?)?;
        Ok(tail.tokens)
    }

    fn encode_tail(&self, text: &str, allowed: Specials<'_>, task: &Task<'_>) -> Result<Tail, Error> {
        let mut tail = Tail { tokens: Vec::new(), last_piece: 0 };
        for segment in self.segments(text, allowed, task) {
            match segment? {
                Segment::Special(_, token) => {
                    memory::push(&mut tail.tokens, token)?;
                    tail.last_piece = 0;
                }
                Segment::Ordinary(range) => self.extend_tail(&mut tail, &text[range], task)?,
            }
        }
        Ok(tail)
    }

    fn extend_tail(&self, tail: &mut Tail, text: &str, task: &Task<'_>) -> Result<(), Error> {
        let mut encoder = self.encoder(task);
        let mut place = Place::default();
        while let Some(piece) = self.splitter.next(text, &mut place, task)? {
            task.check()?;
            let before = tail.tokens.len();
            encoder.one(text.as_bytes(), piece, &mut tail.tokens)?;
            tail.last_piece = tail.tokens.len() - before;
        }
        Ok(())
    }

    /// Adds blank tokens before a blank last piece to that piece: where a run of blanks is cut depends on the
    /// text that follows.
    fn widen_over_spaces(&self, tail: &mut Tail) {
        let blank = |place: usize| {
            let bytes = self.vocabulary.bytes(tail.tokens[place]);
            bytes.is_some_and(|bytes| bytes.iter().all(|byte| b" \n\t".contains(byte)))
        };
        let mut settled = tail.tokens.len() - tail.last_piece;
        if tail.last_piece > 0 && blank(settled) {
            while settled > 0 && blank(settled - 1) {
                settled -= 1;
            }
        }
        tail.last_piece = tail.tokens.len() - settled;
    }

    /// The possible encodings of `unstable`, sorted and without duplicates.
    fn completions(&self, unstable: &[u8], task: &Task<'_>) -> Result<Vec<Vec<TokenId>>, Error> {
        let mut completions = Vec::new();
        if unstable.is_empty() {
            return Ok(completions);
        }
        let sorted = self.vocabulary.sorted(task)?;
        for (_, token) in starting_with(&sorted, unstable) {
            memory::push(&mut completions, vec![token])?;
        }
        for cut in 1..unstable.len() {
            task.check()?;
            let (prefix, suffix) = unstable.split_at(cut);
            for (bytes, _) in starting_with(&sorted, suffix) {
                let possible = memory::joined(&[prefix, bytes])?;
                memory::push(&mut completions, self.complete(&possible, unstable.len(), task)?)?;
            }
        }
        if let Some(cut) = self.cut_before_blank(unstable, task)? {
            memory::push(&mut completions, cut)?;
        }
        completions.sort_unstable();
        completions.dedup();
        Ok(completions)
    }

    /// The tokens of a possible continuation, up to the token that covers the first `length` bytes.
    fn complete(&self, possible: &[u8], length: usize, task: &Task<'_>) -> Result<Vec<TokenId>, Error> {
        let mut tokens = match std::str::from_utf8(possible) {
            Ok(text) => self.encode_ordinary(text, task)?,
            Err(_) => self.split_piece(possible, task)?,
        };
        let mut covered = 0;
        let needed = tokens.iter().position(|&token| {
            covered += self.vocabulary.bytes(token).map_or(0, <[u8]>::len);
            covered >= length
        });
        tokens.truncate(needed.map_or(tokens.len(), |last| last + 1));
        Ok(tokens)
    }

    /// Byte pair encoding of a piece, even if the piece is a token.
    fn split_piece(&self, piece: &[u8], task: &Task<'_>) -> Result<Vec<TokenId>, Error> {
        let mut tokens = Vec::new();
        self.encoder(task).split(piece, 0..piece.len(), &mut tokens)?;
        Ok(tokens)
    }

    /// A trailing blank may become a piece of its own when more text follows.
    fn cut_before_blank(&self, unstable: &[u8], task: &Task<'_>) -> Result<Option<Vec<TokenId>>, Error> {
        let Some(last) = last_char(unstable) else { return Ok(None) };
        let cut = unstable.len() - last.len_utf8();
        if cut == 0 || !last.is_whitespace() {
            return Ok(None);
        }
        let mut tokens = self.split_piece(&unstable[..cut], task)?;
        memory::append(&mut tokens, &self.split_piece(&unstable[cut..], task)?)?;
        Ok(Some(tokens))
    }
}

fn starting_with<'a>(
    sorted: &'a [(&'a [u8], TokenId)],
    prefix: &'a [u8],
) -> impl Iterator<Item = (&'a [u8], TokenId)> {
    let from = sorted.partition_point(|&(bytes, _)| bytes < prefix);
    sorted[from..].iter().copied().take_while(move |(bytes, _)| bytes.starts_with(prefix))
}

/// The last character, if the bytes end with a valid one.
fn last_char(bytes: &[u8]) -> Option<char> {
    let start = bytes.iter().rposition(|&byte| byte & 0xc0 != 0x80)?;
    std::str::from_utf8(&bytes[start..]).ok()?.chars().next()
}
