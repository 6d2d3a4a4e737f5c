use super::error::Error;
use super::reader::{Reader, Token};
use super::scan::Limits;
use super::tape::{Node, Tape, Text};

/// Where values are built from: a message itself, or its tape.
pub trait Source<'a> {
    /// Whether the rest of a value that is cut off may still arrive.
    const STREAM: bool;
    /// The next value, or the header of a container.
    fn next(&mut self) -> Result<Item<'a>, Error>;
    /// How many values can follow at most, as far as the input is there.
    fn room(&self) -> usize;
    /// The bytes of the key with that number.
    fn key(&self, number: u32) -> &'a [u8];
    /// Where the value returned last begins: its offset, or its place on the tape.
    fn offset(&self) -> usize;
}

/// What a source returns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Item<'a> {
    /// A value that nobody has looked at before.
    Token(Token<'a>),
    /// A string whose bytes were looked at already.
    Text(&'a [u8], Text),
    /// A map key, by number.
    Key(u32),
}

/// A message, read once. With `STREAM`, more of it may arrive later.
#[derive(Debug)]
pub struct Direct<'a, const STREAM: bool> {
    reader: Reader<'a>,
    limits: Limits,
    start: usize,
}

impl<'a, const STREAM: bool> Direct<'a, STREAM> {
    /// Reads `bytes` from `pos` on.
    #[inline]
    pub const fn at(bytes: &'a [u8], pos: usize, limits: Limits) -> Self {
        Self { reader: Reader::at(bytes, pos), limits, start: pos }
    }

    /// The offset of the next value.
    #[inline]
    pub const fn pos(&self) -> usize {
        self.reader.pos()
    }
}

impl<'a, const STREAM: bool> Source<'a> for Direct<'a, STREAM> {
    const STREAM: bool = STREAM;

    #[inline(always)]
    fn next(&mut self) -> Result<Item<'a>, Error> {
        self.start = self.reader.pos();
        let token = self.reader.token()?;
        self.limits.check(&token, self.start)?;
        Ok(Item::Token(token))
    }

    #[inline]
    fn room(&self) -> usize {
        self.reader.left()
    }

    fn key(&self, _number: u32) -> &'a [u8] {
        &[]
    }

    #[inline]
    fn offset(&self) -> usize {
        self.start
    }
}

/// A message that was indexed.
#[derive(Debug)]
pub struct Indexed<'a> {
    tape: &'a Tape,
    bytes: &'a [u8],
    place: usize,
}

impl<'a> Indexed<'a> {
    /// The value at `place` of the tape of `bytes`.
    pub const fn at(tape: &'a Tape, bytes: &'a [u8], place: usize) -> Self {
        Self { tape, bytes, place }
    }
}

impl<'a> Source<'a> for Indexed<'a> {
    const STREAM: bool = false;

    #[inline(always)]
    fn next(&mut self) -> Result<Item<'a>, Error> {
        let (node, next) = self.tape.node(self.bytes, self.place);
        self.place = next;
        Ok(match node {
            Node::Scalar(token) => Item::Token(token),
            Node::Str(bytes, text) => Item::Text(bytes, text),
            Node::Key(number) => Item::Key(number),
            Node::Array(items) => Item::Token(Token::Array(items)),
            Node::Map(entries) => Item::Token(Token::Map(entries)),
        })
    }

    /// Room was checked when the message was indexed.
    fn room(&self) -> usize {
        usize::MAX
    }

    #[inline]
    fn key(&self, number: u32) -> &'a [u8] {
        self.tape.keys()[number as usize].bytes(self.bytes)
    }

    fn offset(&self) -> usize {
        self.place
    }
}
