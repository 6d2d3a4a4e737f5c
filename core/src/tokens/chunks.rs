//! Cuts a text into chunks of a limited number of tokens, in one pass.
//!
//! A window holds the pieces from the start of the next chunk on, each with its number of tokens, until one
//! of them does not fit. The chunk ends at the last piece in the window that ends where the caller wants,
//! such as a sentence, and the pieces behind it stay for the next chunk:
//!
//! ```text
//! pieces   Off|␣the|␣lock|.|␣It|␣runs|␣in|␣parallel|…       at most 7 tokens, sentences
//! window   ├──────────────────────────────┤
//! chunk    ├──────────────┤                                 "Off the lock."
//! window                  ├────────────────────────────…
//! ```
//!
//! A chunk has the tokens that its own text is encoded to. For patterns that are matched by hand these are the
//! tokens of its pieces: how such a pattern cuts a text neither depends on what comes before a piece nor, but
//! for white space, on what comes after it. White space at the end of a chunk is counted again, and so are whole
//! chunks of other patterns, and those of a model's tokenizer that changes the text, or has added tokens that depend on what
//! is beside them.
//!
//! A piece that has too many tokens is cut between these. Its parts are counted again, because a pattern may
//! cut a part otherwise than the whole.
//!
//! For patterns that are matched by hand, the time is linear in the length of all chunks together, overlaps
//! included, and `max_tokens` for each of them.

use super::encoder::{Encoder, STRETCH};
use super::encoding::Encoding;
use super::split::Place;
use super::{Error, ErrorKind, TokenId};
use crate::memory::OutOfMemory;
use crate::task::Stretches;
use crate::{Task, memory};
use std::collections::VecDeque;
use std::ops::Range;
use unicode_normalization_alignments::char::is_combining_mark;

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// Where it is, in bytes; both ends are character boundaries.
    pub bytes: Range<usize>,
    /// The same in characters.
    pub characters: Range<usize>,
    /// The number of tokens of its text.
    pub tokens: usize,
}

/// Where chunks end, from the finest on. A chunk in which nothing of a kind ends has the next finer ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Boundary {
    /// Between two pieces of the encoding's pattern.
    Token,
    /// Also not within a word or a number with separators that the pattern cuts, such as `don't` or `12345`.
    /// Scripts without spaces have no such words.
    Word,
    /// After `.`, `!`, `?`, `…` and closing quotes and brackets if white space follows, after `。`, `！`, `？`, and
    /// after a blank line.
    Sentence,
    /// After the end of a line.
    Line,
    /// After a blank line.
    Paragraph,
}

impl Boundary {
    /// The boundary that both front ends call `name`.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "token" => Self::Token,
            "word" => Self::Word,
            "sentence" => Self::Sentence,
            "line" => Self::Line,
            "paragraph" => Self::Paragraph,
            _ => return None,
        })
    }
}

/// How [`Encoding::chunks`] cuts.
#[derive(Debug, Clone, Copy)]
pub struct ChunkOptions {
    /// The largest number of tokens of a chunk; at least 1.
    pub max_tokens: usize,
    /// The largest number of tokens at the end of a chunk that the next one begins with; less than
    /// `max_tokens`.
    pub overlap: usize,
    /// Where chunks end and begin, if they can.
    pub boundary: Boundary,
}

impl Encoding {
    /// Cuts `text` into chunks, each as long as it can be, whose text [`encode_ordinary`](Self::encode_ordinary)
    /// gives at most `max_tokens` tokens for. Without an overlap the chunks joined are the text.
    ///
    /// # Errors
    ///
    /// As [`encode_ordinary`](Self::encode_ordinary), and `LimitTooSmall` if a single character has more tokens.
    ///
    /// # Panics
    ///
    /// If `overlap` is not less than `max_tokens`.
    pub fn chunks(&self, text: &str, options: ChunkOptions, task: &Task<'_>) -> Result<Vec<Chunk>, Error> {
        let count = |part: &str| self.count_ordinary(part, task);
        let adds_up = self.splitter.scan().is_some();
        chunks(Source { encoding: self, count: &count, added: &[], adds_up }, text, options, task)
    }
}

/// What encodes the text.
pub(super) struct Source<'a> {
    /// The pattern and the vocabulary.
    pub(super) encoding: &'a Encoding,
    /// Counts the tokens of a part.
    pub(super) count: &'a dyn Fn(&str) -> Result<usize, Error>,
    /// Where added tokens are in the text, in its order.
    pub(super) added: &'a [Range<usize>],
    /// Whether a part has the tokens of its pieces.
    pub(super) adds_up: bool,
}

/// See [`Encoding::chunks`].
pub(super) fn chunks(
    source: Source<'_>,
    text: &str,
    options: ChunkOptions,
    task: &Task<'_>,
) -> Result<Vec<Chunk>, Error> {
    assert!(options.overlap < options.max_tokens, "chunks that overlap as much as they are long");
    let mut cutter = Cutter {
        encoder: source.encoding.encoder(task),
        source,
        text,
        options,
        task,
        stretches: Stretches::new(task, STRETCH),
        done: 0,
        place: Place::default(),
        base: 0,
        window: VecDeque::new(),
        start: 0,
        scratch: Vec::new(),
        chunks: Vec::new(),
    };
    while cutter.start < text.len() {
        task.check()?;
        cutter.cut()?;
    }
    Ok(cutter.chunks)
}

/// A piece of the text.
#[derive(Debug, Clone, Copy)]
struct Piece {
    start: usize,
    end: usize,
    tokens: usize,
}

struct Cutter<'a> {
    source: Source<'a>,
    text: &'a str,
    options: ChunkOptions,
    task: &'a Task<'a>,
    encoder: Encoder<'a>,
    stretches: Stretches<'a>,
    /// The number of bytes that have been cut into pieces, those that were cut anew included.
    done: usize,
    /// How far the text from `base` on has been cut into pieces.
    place: Place,
    base: usize,
    /// The pieces from `start` on, as far as they have been cut.
    window: VecDeque<Piece>,
    /// Where the next chunk starts.
    start: usize,
    scratch: Vec<TokenId>,
    chunks: Vec<Chunk>,
}

impl Cutter<'_> {
    /// Makes the next chunk, or several from a piece that is too long.
    fn cut(&mut self) -> Result<(), Error> {
        let fitting = self.fill()?;
        let is_rest = fitting == self.window.len();
        let rest = if is_rest { self.fitting(self.text.len())? } else { None };
        let chosen = if rest.is_some() { rest } else { self.choose_end(fitting)? };
        let Some((end, tokens)) = chosen else {
            return self.cut_what_is_left();
        };
        self.push(end, tokens)?;
        let start = if end < self.text.len() { self.choose_start(end)? } else { end };
        self.advance(start)
    }

    /// Cuts pieces until one does not fit; returns how many fit.
    fn fill(&mut self) -> Result<usize, Error> {
        let (mut count, mut tokens) = (0, 0);
        loop {
            let piece = match self.window.get(count) {
                Some(&piece) => piece,
                None => match self.next_piece()? {
                    Some(piece) => piece,
                    None => return Ok(count),
                },
            };
            tokens += piece.tokens;
            if tokens > self.options.max_tokens {
                return Ok(count);
            }
            count += 1;
        }
    }

    /// Appends the next piece to the window.
    fn next_piece(&mut self) -> Result<Option<Piece>, Error> {
        let next = self.added_from(self.base);
        let rest = &self.text[self.base..next.as_ref().map_or(self.text.len(), |added| added.start)];
        let piece = match self.source.encoding.splitter.next(rest, &mut self.place, self.task)? {
            Some(found) => self.piece(self.base + found.start..self.base + found.end)?,
            None => {
                let Some(Range { start, end }) = next else { return Ok(None) };
                (self.base, self.place) = (end, Place::default());
                Piece { start, end, tokens: 1 }
            }
        };
        self.window.try_reserve(1).map_err(OutOfMemory::from)?;
        self.window.push_back(piece);
        Ok(Some(piece))
    }

    /// The first added token that starts at `at` or behind it.
    fn added_from(&self, at: usize) -> Option<Range<usize>> {
        let added = self.source.added;
        added.get(added.partition_point(|added| added.start < at)).cloned()
    }

    fn piece(&mut self, range: Range<usize>) -> Result<Piece, Error> {
        self.done += range.len();
        self.stretches.check(self.done)?;
        self.scratch.clear();
        self.encoder.one(self.text.as_bytes(), range.clone(), &mut self.scratch)?;
        self.task.advance(range.len() as u64);
        Ok(Piece { start: range.start, end: range.end, tokens: self.scratch.len() })
    }

    /// The best end of a chunk, if so many pieces fit into it, and the number of its tokens; `None` if no end is
    /// further than the previous chunk's, or all chunks would be too long.
    fn choose_end(&self, fitting: usize) -> Result<Option<(usize, usize)>, Error> {
        let least = self.end_of_last().max(self.start);
        let most = self.window.get(fitting).map_or(self.text.len(), |piece| piece.end);
        for kind in self.kinds() {
            let pieces = (0..self.window.len().min(fitting + 1)).rev();
            let ends = pieces.flat_map(|index| self.ends_in_piece(kind, index));
            for end in ends.take_while(|&end| end > least).filter(|&end| end <= most) {
                if let Some(chosen) = self.fitting(end)? {
                    return Ok(Some(chosen));
                }
            }
        }
        Ok(None)
    }

    /// The end of a chunk and the number of its tokens; `None` if these are too many.
    fn fitting(&self, end: usize) -> Result<Option<(usize, usize)>, Error> {
        let tokens = self.tokens_until(end)?;
        Ok((tokens <= self.options.max_tokens).then_some((end, tokens)))
    }

    /// Where the chunk after one that ends at `end` starts.
    fn choose_start(&self, end: usize) -> Result<usize, Error> {
        let is_before = |piece: &&Piece| piece.start < end;
        let count = self.window.iter().take_while(is_before).count();
        let mut tokens = 0;
        let fits = |index: &usize| {
            tokens += self.window[*index].tokens;
            tokens <= self.options.overlap
        };
        // With what comes before the first piece that fits.
        let first = (0..count).rev().take_while(fits).last().unwrap_or(count).saturating_sub(1);
        for kind in self.kinds().filter(|_| self.options.overlap > 0) {
            let starts = (first..count).flat_map(|index| self.ends_in_piece(kind, index).rev());
            for start in starts.filter(|&start| start > self.start && start < end) {
                if self.count(start..end)? <= self.options.overlap {
                    return Ok(start);
                }
            }
        }
        Ok(end)
    }

    /// The kinds of boundaries, the wanted one first.
    fn kinds(&self) -> impl Iterator<Item = Boundary> + use<> {
        let wanted = self.options.boundary;
        KINDS.into_iter().skip_while(move |&kind| kind > wanted)
    }

    /// Where something of this kind ends in a piece, the last one first: at its end or, as a pattern may join
    /// a full stop with the word behind it, after its first character.
    fn ends_in_piece(&self, kind: Boundary, index: usize) -> impl DoubleEndedIterator<Item = usize> + use<> {
        let piece = self.window[index];
        let first = self.text[piece.start..].chars().next();
        let inside = first
            .filter(|&c| kind == Boundary::Sentence && is_full_stop(c))
            .map(|c| piece.start + c.len_utf8());
        let inside = inside.filter(|&at| at < piece.end && self.is_boundary(kind, at));
        let end = Some(piece.end).filter(|&at| self.is_boundary(kind, at));
        end.into_iter().chain(inside)
    }

    /// The number of tokens of the text from the start to `end`.
    fn tokens_until(&self, end: usize) -> Result<usize, Error> {
        if !self.source.adds_up {
            return self.count(self.start..end);
        }
        let whole = self.window.iter().take_while(|piece| piece.end <= end).count();
        let is_blank = |piece: &&Piece| self.text[piece.start..piece.end].trim_start().is_empty();
        // White space before a word may be two pieces, but is one at the end of a text.
        let blank = self.window.range(..whole).rev().take_while(is_blank).count();
        let same = if blank < 2 && self.end_of_pieces(whole) == end { whole } else { whole - blank };
        let tokens: usize = self.window.range(..same).map(|piece| piece.tokens).sum();
        let start = self.end_of_pieces(same);
        Ok(tokens + if start < end { self.count(start..end)? } else { 0 })
    }

    /// Where the first `count` pieces end.
    fn end_of_pieces(&self, count: usize) -> usize {
        count.checked_sub(1).map_or(self.start, |last| self.window[last].end)
    }

    fn count(&self, range: Range<usize>) -> Result<usize, Error> {
        (self.source.count)(&self.text[range.clone()]).map_err(|error| error.in_part_at(range.start))
    }

    /// Lets the next chunk start at `start`, and keeps the pieces behind it.
    fn advance(&mut self, start: usize) -> Result<(), Error> {
        while self.window.front().is_some_and(|piece| piece.end <= start) {
            self.window.pop_front();
        }
        let Some(&cut) = self.window.front().filter(|piece| piece.start < start) else {
            self.start = start;
            return Ok(());
        };
        let scan = self.source.encoding.splitter.scan().filter(|_| self.source.adds_up);
        let limit = self.added_from(start).map_or(self.text.len(), |added| added.start);
        let end = scan.map(|scan| scan(&self.text.as_bytes()[..limit], start));
        if end != Some(cut.end) {
            self.restart(start);
            return Ok(());
        }
        self.window[0] = self.piece(start..cut.end)?;
        self.start = start;
        Ok(())
    }

    /// Lets the next chunk start at `start`, from where on the text is cut into pieces anew.
    fn restart(&mut self, start: usize) {
        self.window.clear();
        (self.start, self.base, self.place) = (start, start, Place::default());
    }

    /// Goes on without the overlap, with which no chunk would end further than the last one; without one,
    /// cuts the first piece.
    fn cut_what_is_left(&mut self) -> Result<(), Error> {
        let end = self.end_of_last();
        if self.start < end {
            self.restart(end);
            return Ok(());
        }
        self.cut_piece(self.window[0])
    }

    /// Cuts a piece that has too many tokens, apart from its end, which is left for the next chunk.
    fn cut_piece(&mut self, piece: Piece) -> Result<(), Error> {
        self.scratch.clear();
        self.encoder.one(self.text.as_bytes(), piece.start..piece.end, &mut self.scratch)?;
        let tokens = std::mem::take(&mut self.scratch);
        let length =
            |&token: &TokenId| self.source.encoding.decode_single_token_bytes(token).map_or(0, <[u8]>::len);
        let mut end = piece.start;
        let ends = memory::collected(tokens.iter().map(|token| {
            end += length(token);
            Ok::<_, OutOfMemory>(end)
        }))?;
        self.scratch = tokens;
        let mut first = 0;
        loop {
            self.task.check()?;
            let Some(last) = self.last_token(&ends, first)? else { break };
            self.push(ends[last], self.count(self.start..ends[last])?)?;
            first = self.first_token(&ends, first, last)?;
            self.start = ends[first - 1];
            if ends.len() - first <= self.options.max_tokens {
                self.restart(self.start);
                return Ok(());
            }
        }
        if self.start < self.end_of_last() {
            self.restart(self.end_of_last());
            return Ok(());
        }
        let character = self.text[self.start..].chars().next().map_or(0, char::len_utf8);
        let end = self.start + character;
        let needed = self.count(self.start..end)?;
        if needed <= self.options.max_tokens {
            self.push(end, needed)?;
            self.restart(end);
            return Ok(());
        }
        Err(ErrorKind::LimitTooSmall { needed, offset: self.start }.into())
    }

    /// The last token of a chunk that starts with the one at `first`; `None` if it would be no longer than the
    /// overlap, or a character has too many tokens.
    fn last_token(&self, ends: &[usize], first: usize) -> Result<Option<usize>, Error> {
        let most = ends.len().min(first + self.options.max_tokens);
        for last in (first..most).rev() {
            let end = ends[last];
            let is_end = end > self.start.max(self.end_of_last()) && self.text.is_char_boundary(end);
            if is_end && self.count(self.start..end)? <= self.options.max_tokens {
                return Ok(Some(last));
            }
        }
        Ok(None)
    }

    /// The first token of the next chunk after the one with the tokens from `first` to `last`.
    fn first_token(&self, ends: &[usize], first: usize, last: usize) -> Result<usize, Error> {
        if last + 1 == ends.len() {
            return Ok(ends.len());
        }
        let most = self.options.overlap.min(last - first);
        for next in last + 1 - most..=last {
            let start = ends[next - 1];
            let is_start = start > self.start && self.text.is_char_boundary(start);
            if is_start && self.count(start..ends[last])? <= self.options.overlap {
                return Ok(next);
            }
        }
        Ok(last + 1)
    }

    fn end_of_last(&self) -> usize {
        self.chunks.last().map_or(0, |chunk| chunk.bytes.end)
    }

    /// Adds the chunk from the start to `end`, which has so many tokens.
    fn push(&mut self, end: usize, tokens: usize) -> Result<(), Error> {
        let characters = |range: Range<usize>| self.text[range].chars().count();
        let first = match self.chunks.last() {
            None => 0,
            Some(last) => last.characters.end - characters(self.start..last.bytes.end),
        };
        let count = characters(self.start..end);
        let chunk = Chunk { bytes: self.start..end, characters: first..first + count, tokens };
        Ok(memory::push(&mut self.chunks, chunk)?)
    }

    /// Whether something of this kind ends at the end of a piece.
    fn is_boundary(&self, kind: Boundary, at: usize) -> bool {
        let (before, after) = (&self.text[..at], &self.text[at..]);
        match kind {
            Boundary::Token => true,
            Boundary::Word => !is_within_word(before, after),
            Boundary::Sentence => is_end_of_sentence(before, after) || is_end_of_paragraph(before),
            Boundary::Line => is_end_of_line(before, after),
            Boundary::Paragraph => is_end_of_paragraph(before),
        }
    }
}

/// From the coarsest on.
const KINDS: [Boundary; 5] =
    [Boundary::Paragraph, Boundary::Line, Boundary::Sentence, Boundary::Word, Boundary::Token];

/// How many characters are looked at to find out what ends at a place.
const LOOK_BACK: usize = 64;

fn is_within_word(before: &str, after: &str) -> bool {
    let (Some(last), Some(next)) = (before.chars().next_back(), after.chars().next()) else { return false };
    let is_open = is_combining_mark(next) || next == '\u{200d}' || last == '\u{200d}';
    is_open || is_in_word(last) && is_in_word(next) && !(is_unspaced(last) || is_unspaced(next))
}

fn is_in_word(c: char) -> bool {
    c.is_alphanumeric() || is_combining_mark(c) || matches!(c, '_' | '\'' | '’')
}

/// Whether the character is of a script that does not separate words.
fn is_unspaced(c: char) -> bool {
    matches!(c,
        '\u{0e00}'..='\u{0eff}' // Thai, Lao
        | '\u{1000}'..='\u{109f}' // Burmese
        | '\u{1780}'..='\u{17ff}' // Khmer
        | '\u{2e80}'..='\u{a4cf}' // Chinese, kana, Yi
        | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3ffff}')
}

fn is_end_of_sentence(before: &str, after: &str) -> bool {
    let is_closing =
        |c: &char| matches!(c, '"' | '\'' | ')' | ']' | '}' | '”' | '’' | '»' | '」' | '』' | '）');
    let mut behind = before.chars().rev().take(LOOK_BACK).peekable();
    let mut has_space = after.chars().next().is_none_or(char::is_whitespace);
    while behind.next_if(|c| c.is_whitespace()).is_some() {
        has_space = true;
    }
    while behind.next_if(is_closing).is_some() {}
    match behind.next() {
        Some(c) if is_full_stop(c) => !after.chars().next().is_some_and(|c| is_closing(&c)),
        Some('.' | '!' | '?' | '…') => has_space,
        _ => false,
    }
}

/// Whether the character ends a sentence also if no white space follows.
fn is_full_stop(c: char) -> bool {
    matches!(c, '。' | '！' | '？' | '।')
}

fn is_end_of_line(before: &str, after: &str) -> bool {
    before.ends_with('\n') || before.ends_with('\r') && !after.starts_with('\n')
}

fn is_end_of_paragraph(before: &str) -> bool {
    let mut behind = before.chars().rev().take(LOOK_BACK).peekable();
    behind.next_if_eq(&'\n').is_some() && {
        while behind.next_if(|c| matches!(c, ' ' | '\t' | '\r')).is_some() {}
        behind.next_if_eq(&'\n').is_some()
    }
}
