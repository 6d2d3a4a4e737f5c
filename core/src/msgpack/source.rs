//! The two sources from which front ends build values: the bytes of a message, and its index.
//!
//! Front ends write their builder once, for both.

use super::builder::Builder;
use super::error::{Error, ErrorKind};
use super::reader::{Reader, Token, Tokens, Visitor};
use super::scan::Limits;
use super::tape::Tape;

/// A source of values: a message itself, or its tape.
pub trait Source<'a> {
    /// Whether the rest of a truncated value may still arrive.
    const STREAM: bool;
    /// Passes the next value, or the header of a container, to `builder`.
    fn visit<B: Builder<'a>>(&mut self, builder: &mut B) -> B::Out;
    /// The next value, or the header of a container.
    ///
    /// # Errors
    ///
    /// As [`Reader::token`]; also [`ErrorKind::TooLong`].
    #[inline(always)]
    fn next(&mut self) -> Result<Token<'a>, Error> {
        self.visit(&mut Tokens)
    }
    /// An upper bound on the number of values that follow, given the input at hand.
    fn most_values(&self) -> usize;
    /// The most values for which a container inside `depth` others reserves memory, whatever length it
    /// declares. If each could reserve for all of the rest, a short message of nested headers would reserve
    /// that much on each level.
    fn share(&self, depth: usize) -> usize {
        self.most_values() >> depth.saturating_sub(1).min(31)
    }
    /// The position of the value visited last: its offset, or its place on the tape.
    fn offset(&self) -> usize;
}

/// A message that is read once. With `STREAM`, more of it may arrive later.
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
    fn visit<B: Builder<'a>>(&mut self, builder: &mut B) -> B::Out {
        self.start = self.reader.pos();
        self.reader.visit(&mut Limited { builder, limits: &self.limits, start: self.start })
    }

    #[inline]
    fn most_values(&self) -> usize {
        self.reader.left()
    }

    #[inline]
    fn offset(&self) -> usize {
        self.start
    }
}

/// Passes on values within the limits.
struct Limited<'b, B> {
    builder: &'b mut B,
    limits: &'b Limits,
    start: usize,
}

impl<'a, B: Visitor<'a>> Limited<'_, B> {
    #[cold]
    fn too_long(&mut self, what: &'static str, length: u64, limit: u64) -> B::Out {
        self.builder.error(Error::new(ErrorKind::TooLong { what, length, limit }, self.start))
    }
}

impl<'a, B: Visitor<'a>> Visitor<'a> for Limited<'_, B> {
    type Out = B::Out;

    #[inline(always)]
    fn nil(&mut self) -> B::Out {
        self.builder.nil()
    }

    #[inline(always)]
    fn bool(&mut self, value: bool) -> B::Out {
        self.builder.bool(value)
    }

    #[inline(always)]
    fn uint(&mut self, value: u64) -> B::Out {
        self.builder.uint(value)
    }

    #[inline(always)]
    fn int(&mut self, value: i64) -> B::Out {
        self.builder.int(value)
    }

    #[inline(always)]
    fn f32(&mut self, value: f32) -> B::Out {
        self.builder.f32(value)
    }

    #[inline(always)]
    fn f64(&mut self, value: f64) -> B::Out {
        self.builder.f64(value)
    }

    #[inline(always)]
    fn str(&mut self, bytes: &'a [u8]) -> B::Out {
        match bytes.len() as u64 {
            length if length > self.limits.str => self.too_long("str", length, self.limits.str),
            _ => self.builder.str(bytes),
        }
    }

    #[inline(always)]
    fn bin(&mut self, bytes: &'a [u8]) -> B::Out {
        match bytes.len() as u64 {
            length if length > self.limits.bin => self.too_long("bin", length, self.limits.bin),
            _ => self.builder.bin(bytes),
        }
    }

    #[inline(always)]
    fn ext(&mut self, kind: i8, payload: &'a [u8], offset: usize) -> B::Out {
        match payload.len() as u64 {
            length if length > self.limits.ext => self.too_long("ext", length, self.limits.ext),
            _ => self.builder.ext(kind, payload, offset),
        }
    }

    #[inline(always)]
    fn array(&mut self, items: u32) -> B::Out {
        match u64::from(items) {
            length if length > self.limits.array => self.too_long("array", length, self.limits.array),
            _ => self.builder.array(items),
        }
    }

    #[inline(always)]
    fn map(&mut self, entries: u32) -> B::Out {
        match u64::from(entries) {
            length if length > self.limits.map => self.too_long("map", length, self.limits.map),
            _ => self.builder.map(entries),
        }
    }

    #[inline(always)]
    fn error(&mut self, error: Error) -> B::Out {
        self.builder.error(error)
    }
}

/// A message with its index.
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
    fn visit<B: Builder<'a>>(&mut self, builder: &mut B) -> B::Out {
        self.tape.visit(self.bytes, &mut self.place, builder)
    }

    /// The lengths were checked when the message was indexed.
    fn most_values(&self) -> usize {
        usize::MAX
    }

    fn offset(&self) -> usize {
        self.place
    }
}
