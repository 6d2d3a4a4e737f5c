//! The index of a message: one or two words for each value, from which objects are built later.
//!
//! Parsing, validating UTF-8 and comparing keys happen off the lock, while the index is made. Building
//! objects under the lock then takes one branch per value. Containers hold the place of the next value after
//! them, so a value is found without visiting the contents of its siblings: finding the n-th value of a
//! container takes n steps.
//!
//! The idea and the name come from simdjson.

use super::builder::{Builder, Text};
use super::error::{Error, ErrorKind};
use super::keys::{Key, KeyTable};
use super::reader::{Reader, Token};
use super::scan::{CHECK_EVERY, Limits};
use crate::Task;
use crate::memory::{self, OutOfMemory};
use crate::text::Span;

/// The index of one message: one word for each scalar, two for each container, in the order of the message.
///
/// It holds offsets into the message, not the message itself; the methods take the same bytes again.
///
/// | word | bits 0..4 | bits 4..32 | bits 32..64 |
/// |---|---|---|---|
/// | nil, false, true | tag | | |
/// | a small integer | tag | value, continued in the higher bits | |
/// | a string | tag | two bits of [`Text`], 26 of length | offset of its first byte |
/// | a numbered map key | tag | | its number |
/// | an array, a map | tag | | items or entries; the next word is the place after the container |
/// | anything else | tag | two bits of [`Text`] | offset of the token |
#[derive(Debug, Default)]
pub struct Tape {
    words: Vec<u64>,
    keys: Vec<Key>,
}

/// A value on the tape.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Node<'a> {
    /// nil, a boolean, a number, binary data or an extension.
    Scalar(Token<'a>),
    /// A string, with what is known about it.
    Str(&'a [u8], Text),
    /// A map key, by its number: see [`Tape::keys`].
    Key(u32),
    /// An array of that many items, which follow.
    Array(u32),
    /// A map of that many entries, which follow: a key, a value, a key, a value …
    Map(u32),
}

const NIL: u64 = 0;
const FALSE: u64 = 1;
const TRUE: u64 = 2;
const INT: u64 = 3;
const STR: u64 = 4;
const KEY: u64 = 5;
const ARRAY: u64 = 6;
const MAP: u64 = 7;
const TOKEN: u64 = 8;
const TAG: u64 = 0xf;

const LONGEST_STR: usize = 1 << 26;

impl Tape {
    /// Indexes the message at the beginning of `bytes`; also returns the offset of its end.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::TooLarge`] for 4 GiB and more, `Truncated`, `Reserved`, `TooLong`, `TooDeep`,
    /// `OutOfMemory` and `Stopped`.
    pub fn index(bytes: &[u8], limits: &Limits, task: &Task<'_>) -> Result<(Self, usize), Error> {
        if u32::try_from(bytes.len()).is_err() {
            return Err(Error::new(ErrorKind::TooLarge(bytes.len()), 0));
        }
        let mut indexer =
            Indexer { bytes, limits, words: Vec::new(), keys: KeyTable::default(), open: Vec::new() };
        let end = indexer.run(task)?;
        Ok((Self { words: indexer.words, keys: indexer.keys.into_keys() }, end))
    }

    /// Passes the value at `place` of the message `bytes` to `builder`, and advances `place` past its word or
    /// words.
    #[inline(always)]
    pub(super) fn visit<'a, B: Builder<'a>>(
        &'a self,
        bytes: &'a [u8],
        place: &mut usize,
        builder: &mut B,
    ) -> B::Out {
        let word = self.words[*place];
        let high = (word >> 32) as u32;
        *place += 1;
        match word & TAG {
            NIL => builder.nil(),
            FALSE => builder.bool(false),
            TRUE => builder.bool(true),
            INT => builder.int(word.cast_signed() >> 4),
            STR => {
                let start = high as usize;
                let length = (word as u32 >> 6) as usize;
                builder.text(&bytes[start..start + length], Text::from_bits(word >> 4))
            }
            KEY => builder.key(high, || self.keys[high as usize].bytes(bytes)),
            ARRAY => {
                *place += 1;
                builder.array(high)
            }
            MAP => {
                *place += 1;
                builder.map(high)
            }
            _ => Reader::at(bytes, high as usize).visit(builder),
        }
    }

    /// The node at `place` of the message `bytes`, and the place after its word or words. The first place is
    /// 0.
    ///
    /// The items of a container begin at the returned place; [`Tape::after`] skips them.
    #[inline(always)]
    pub fn node<'a>(&self, bytes: &'a [u8], place: usize) -> (Node<'a>, usize) {
        let word = self.words[place];
        let high = (word >> 32) as u32;
        let node = match word & TAG {
            NIL => Node::Scalar(Token::Nil),
            FALSE => Node::Scalar(Token::Bool(false)),
            TRUE => Node::Scalar(Token::Bool(true)),
            INT => Node::Scalar(Token::Int(word.cast_signed() >> 4)),
            STR => {
                let start = high as usize;
                let length = (word as u32 >> 6) as usize;
                Node::Str(&bytes[start..start + length], Text::from_bits(word >> 4))
            }
            KEY => Node::Key(high),
            ARRAY => return (Node::Array(high), place + 2),
            MAP => return (Node::Map(high), place + 2),
            _ => far_node(bytes, high as usize, Text::from_bits(word >> 4)),
        };
        (node, place + 1)
    }

    /// The place after the value at `place` and all of its contents.
    pub fn after(&self, place: usize) -> usize {
        match self.words[place] & TAG {
            ARRAY | MAP => self.words[place + 1] as usize,
            _ => place + 1,
        }
    }

    /// The different map keys, by number.
    pub fn keys(&self) -> &[Key] {
        &self.keys
    }

    /// The bytes of the string at `place`, whether it is a numbered key or not.
    pub fn str_at<'a>(&self, bytes: &'a [u8], place: usize) -> Option<&'a [u8]> {
        match self.node(bytes, place).0 {
            Node::Str(text, _) => Some(text),
            Node::Key(number) => Some(self.keys[number as usize].bytes(bytes)),
            _ => None,
        }
    }

    /// The place of the value under the string `key` in the map at `place`. If the key occurs more than once,
    /// the last one counts, as it does when the map is built.
    pub fn lookup(&self, bytes: &[u8], place: usize, key: &[u8]) -> Option<usize> {
        let (Node::Map(entries), mut at) = self.node(bytes, place) else { return None };
        let mut found = None;
        for _ in 0..entries {
            let value = self.after(at);
            if self.str_at(bytes, at) == Some(key) {
                found = Some(value);
            }
            at = self.after(value);
        }
        found
    }

    /// The positions of all strings that a builder receives as valid text, in order: all but numbered map
    /// keys.
    ///
    /// # Errors
    ///
    /// [`OutOfMemory`].
    pub fn texts(&self) -> Result<Vec<Span>, OutOfMemory> {
        let mut texts = Vec::new();
        let mut words = self.words.iter();
        while let Some(&word) = words.next() {
            match word & TAG {
                STR if Text::from_bits(word >> 4) != Text::Invalid => {
                    let start = (word >> 32) as usize;
                    memory::push(&mut texts, Span { start, end: start + (word as u32 >> 6) as usize })?;
                }
                ARRAY | MAP => _ = words.next(),
                _ => {}
            }
        }
        Ok(texts)
    }

    /// The size of the tape in memory, in bytes.
    pub fn memory(&self) -> usize {
        self.words.capacity() * size_of::<u64>() + self.keys.capacity() * size_of::<Key>()
    }
}

#[cold]
fn far_node(bytes: &[u8], offset: usize, text: Text) -> Node<'_> {
    match Reader::at(bytes, offset).token() {
        Ok(Token::Str(bytes)) => Node::Str(bytes, text),
        Ok(token) => Node::Scalar(token),
        // This happens only with other bytes than those that were indexed.
        Err(_) => Node::Scalar(Token::Nil),
    }
}

struct Indexer<'a> {
    bytes: &'a [u8],
    limits: &'a Limits,
    words: Vec<u64>,
    keys: KeyTable,
    /// The containers that are not complete.
    open: Vec<Open>,
}

struct Open {
    place: usize,
    left: u64,
    map: bool,
}

/// The most words of a token.
const MOST_WORDS: usize = 2;

impl Indexer<'_> {
    fn run(&mut self, task: &Task<'_>) -> Result<usize, Error> {
        let mut reader = Reader::at(self.bytes, 0);
        let mut until_check = CHECK_EVERY;
        loop {
            // Reserve before reading the token: keeping the token across a call costs as much as the rest of
            // the index.
            memory::reserve(&mut self.words, MOST_WORDS)?;
            let start = reader.pos();
            let token = reader.token()?;
            self.limits.check(&token, start)?;
            self.add(&token, start, reader.pos(), reader.left())?;
            if !self.more() {
                return Ok(reader.pos());
            }
            until_check -= 1;
            if until_check == 0 {
                task.check()?;
                until_check = CHECK_EVERY;
            }
        }
    }

    fn add(&mut self, token: &Token<'_>, start: usize, end: usize, left: usize) -> Result<(), Error> {
        let word = match *token {
            Token::Nil => NIL,
            Token::Bool(value) => FALSE + u64::from(value),
            Token::UInt(value) if value >> 59 == 0 => INT | value << 4,
            Token::Int(value) if value << 4 >> 4 == value => INT | value.cast_unsigned() << 4,
            Token::Str(text) => self.str_word(text, start, end),
            Token::Array(items) => return self.open(ARRAY, items, u64::from(items), start, left),
            Token::Map(entries) => return self.open(MAP, entries, u64::from(entries) * 2, start, left),
            _ => TOKEN | (start as u64) << 32,
        };
        self.words.push(word);
        Ok(())
    }

    fn str_word(&mut self, text: &[u8], start: usize, end: usize) -> u64 {
        let offset = end - text.len();
        if self.at_key()
            && let Some(number) = self.keys.number(self.bytes, offset, text.len())
        {
            return KEY | u64::from(number) << 32;
        }
        let known = (Text::of(text) as u64) << 4;
        if text.len() < LONGEST_STR {
            STR | known | (text.len() as u64) << 6 | (offset as u64) << 32
        } else {
            TOKEN | known | (start as u64) << 32
        }
    }

    fn at_key(&self) -> bool {
        self.open.last().is_some_and(|open| open.map && open.left % 2 == 0)
    }

    fn open(&mut self, tag: u64, length: u32, values: u64, start: usize, left: usize) -> Result<(), Error> {
        if values > left as u64 {
            return Err(Error::new(ErrorKind::Truncated, start));
        }
        if values > 0 && self.open.len() >= self.limits.depth {
            return Err(Error::new(ErrorKind::TooDeep(self.limits.depth), start));
        }
        let place = self.words.len();
        self.words.extend([tag | u64::from(length) << 32, place as u64 + 2]);
        if values > 0 {
            self.open.push(Open { place, left: values + 1, map: tag == MAP });
        }
        Ok(())
    }

    /// Counts the value just added, and closes the containers that are complete; returns whether a value is
    /// still to come. A container starts with one more than its number of values, for its own header.
    fn more(&mut self) -> bool {
        while let Some(open) = self.open.last_mut() {
            open.left -= 1;
            if open.left > 0 {
                return true;
            }
            self.words[open.place + 1] = self.words.len() as u64;
            self.open.pop();
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(bytes: &[u8]) -> Result<(Tape, usize), ErrorKind> {
        Tape::index(bytes, &Limits::depth(16), &Task::new()).map_err(|error| error.kind)
    }

    /// The message, rebuilt from its tape, in the order of the tokens.
    fn tokens(bytes: &[u8]) -> Vec<String> {
        let (tape, _) = index(bytes).unwrap();
        let (mut place, end) = (0, tape.after(0));
        let mut out = Vec::new();
        while place < end {
            let (node, next) = tape.node(bytes, place);
            out.push(match node {
                Node::Scalar(Token::UInt(value)) => format!("int {value}"),
                Node::Scalar(Token::Int(value)) => format!("int {value}"),
                Node::Scalar(token) => format!("{token:?}"),
                Node::Array(items) => format!("Array({items})"),
                Node::Map(entries) => format!("Map({entries})"),
                Node::Str(..) | Node::Key(_) => format!("Str({:?})", tape.str_at(bytes, place).unwrap()),
            });
            place = next;
        }
        out
    }

    fn tokens_read(bytes: &[u8]) -> Vec<String> {
        let mut reader = Reader::at(bytes, 0);
        let mut out = Vec::new();
        while reader.left() > 0 {
            out.push(match reader.token().unwrap() {
                Token::UInt(value) => format!("int {value}"),
                Token::Int(value) => format!("int {value}"),
                token => format!("{token:?}"),
            });
        }
        out
    }

    const RECORDS: &[u8] = b"\x93\x82\xa1a\x01\xa1b\xcf\xff\xff\xff\xff\xff\xff\xff\xff\x82\xa1a\xd3\x80\0\0\0\0\0\0\0\xa1b\xc4\x01z\
        \x84\xa1b\xcb\0\0\0\0\0\0\0\0\x05\x90\xa1b\xc3\x80\xd4\x01x";

    #[test]
    fn the_tape_says_what_the_reader_says() {
        assert_eq!(tokens(RECORDS), tokens_read(RECORDS));
        assert_eq!(index(RECORDS).unwrap().1, RECORDS.len());
    }

    #[test]
    fn integers_at_the_edge_of_a_word_survive() {
        for bits in 55..64 {
            for value in [
                1_i64 << bits,
                (1_i64 << bits).wrapping_sub(1),
                (-1_i64 << bits),
                (-1_i64 << bits).wrapping_sub(1),
            ] {
                let mut message = vec![0xd3];
                message.extend(value.to_be_bytes());
                assert_eq!(tokens(&message), [format!("int {value}")]);
            }
        }
    }

    #[test]
    fn texts_are_the_strings_that_are_no_keys() {
        let message = b"\x94\xa1a\x81\xa1k\xa2\xc3\xa9\xa1\xff\xa0";
        let (tape, _) = index(message).unwrap();
        let texts: Vec<_> = tape.texts().unwrap().iter().map(|span| &message[span.start..span.end]).collect();
        assert_eq!(texts, [&b"a"[..], "é".as_bytes(), b""]);
    }

    #[test]
    fn lookups_find_the_last_of_equal_keys_and_jump_over_the_rest() {
        let (tape, _) = index(RECORDS).unwrap();
        let first = 2;
        let third = tape.after(tape.after(first));
        let at = tape.lookup(RECORDS, third, b"b").unwrap();
        assert_eq!(tape.node(RECORDS, at).0, Node::Scalar(Token::Bool(true)));
        assert_eq!(tape.lookup(RECORDS, third, b"nothing"), None);
        assert_eq!(tape.lookup(RECORDS, 0, b"a"), None, "not a map");
    }

    #[test]
    fn strings_are_known_for_what_they_are() {
        let message = b"\x94\xa1a\xa2\xc3\xa9\xa1\xff\xa0";
        let (tape, _) = index(message).unwrap();
        let known: Vec<_> = (2..6).map(|place| tape.node(message, place).0).collect();
        let wanted = [
            Node::Str(b"a", Text::Ascii),
            Node::Str("é".as_bytes(), Text::Utf8),
            Node::Str(b"\xff", Text::Invalid),
            Node::Str(b"", Text::Ascii),
        ];
        assert_eq!(known, wanted);
    }

    #[test]
    fn every_cut_is_truncated() {
        for end in 0..RECORDS.len() {
            assert_eq!(index(&RECORDS[..end]).unwrap_err(), ErrorKind::Truncated, "{end}");
        }
    }

    #[test]
    fn a_declared_length_beyond_the_input_is_refused_at_once() {
        assert_eq!(index(b"\xdd\xff\xff\xff\xff").unwrap_err(), ErrorKind::Truncated);
        assert_eq!(index(b"\xdf\x7f\xff\xff\xff\x01\x01").unwrap_err(), ErrorKind::Truncated);
    }

    #[test]
    fn depth_is_limited() {
        let nested = |levels| [vec![0x91; levels], vec![0xc0]].concat();
        assert_eq!(index(&nested(16)).unwrap().1, 17);
        assert_eq!(index(&nested(17)).unwrap_err(), ErrorKind::TooDeep(16));
    }
}
