//! Reads one token of a message after another.

use super::error::{Error, ErrorKind};

/// A value of a message, or the header of a container whose items follow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Token<'a> {
    /// nil
    Nil,
    /// true, false
    Bool(bool),
    /// Any integer in an unsigned format.
    UInt(u64),
    /// Any integer in a signed format; may be positive.
    Int(i64),
    /// float 32
    F32(f32),
    /// float 64
    F64(f64),
    /// A string; its bytes are not checked to be UTF-8.
    Str(&'a [u8]),
    /// Binary data.
    Bin(&'a [u8]),
    /// An extension: its type and payload.
    Ext(i8, &'a [u8]),
    /// An array; that many values follow.
    Array(u32),
    /// A map; that many pairs of values follow.
    Map(u32),
}

impl Token<'_> {
    /// The name of the value's type in the MessagePack specification.
    pub const fn family(&self) -> &'static str {
        match self {
            Self::Nil => "nil",
            Self::Bool(_) => "bool",
            Self::UInt(_) | Self::Int(_) => "int",
            Self::F32(_) | Self::F64(_) => "float",
            Self::Str(_) => "str",
            Self::Bin(_) => "bin",
            Self::Ext(..) => "ext",
            Self::Array(_) => "array",
            Self::Map(_) => "map",
        }
    }
}

/// Splits a message into tokens.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    pos: usize,
}

impl<'a> Reader<'a> {
    /// Reads `bytes` from `pos` on.
    pub const fn at(bytes: &'a [u8], pos: usize) -> Self {
        Self { bytes, pos }
    }

    /// The offset of the next byte.
    #[inline]
    pub const fn pos(&self) -> usize {
        self.pos
    }

    /// The number of bytes that have not been read.
    #[inline]
    pub const fn left(&self) -> usize {
        self.bytes.len() - self.pos
    }

    /// The next byte, which determines the type of the next token, if there is one.
    #[inline]
    pub fn peek(&self) -> Option<u8> {
        self.bytes.get(self.pos).copied()
    }

    /// Reads the next token. After an error the position is unchanged.
    ///
    /// The caller checks whether a container's items fit into the rest of the input: see [`Reader::left`].
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Truncated`] if the token is cut off, `Reserved` for the byte 0xc1.
    #[inline(always)]
    pub fn token(&mut self) -> Result<Token<'a>, Error> {
        self.visit(&mut Tokens)
    }

    /// Reads the next token and passes it to `visitor`. After an error the position is unchanged.
    ///
    /// Saves a second branch on the type of the token, compared with matching on the result of
    /// [`Reader::token`].
    #[inline(always)]
    pub fn visit<V: Visitor<'a>>(&mut self, visitor: &mut V) -> V::Out {
        let start = self.pos;
        let Some(&head) = self.bytes.get(start) else { return self.cut(start, visitor) };
        self.pos += 1;
        match head {
            0x00..=0x7f => visitor.uint(head.into()),
            0x80..=0x8f => visitor.map(u32::from(head & 0x0f)),
            0x90..=0x9f => visitor.array(u32::from(head & 0x0f)),
            0xa0..=0xbf => self.slice(
                start,
                usize::from(head & 0x1f),
                visitor,
                #[inline(always)]
                |visitor, bytes| visitor.str(bytes),
            ),
            0xc0 => visitor.nil(),
            0xc1 => {
                self.pos = start;
                visitor.error(Error::new(ErrorKind::Reserved(head), start))
            }
            0xc2 => visitor.bool(false),
            0xc3 => visitor.bool(true),
            0xc4 => self.counted::<1, V>(start, visitor, |visitor, bytes| visitor.bin(bytes)),
            0xc5 => self.counted::<2, V>(start, visitor, |visitor, bytes| visitor.bin(bytes)),
            0xc6 => self.counted::<4, V>(start, visitor, |visitor, bytes| visitor.bin(bytes)),
            0xc7 => self.extension_counted::<1, V>(start, visitor),
            0xc8 => self.extension_counted::<2, V>(start, visitor),
            0xc9 => self.extension_counted::<4, V>(start, visitor),
            0xca => self.number(start, visitor, |visitor, bytes| visitor.f32(f32::from_be_bytes(bytes))),
            0xcb => self.number(start, visitor, |visitor, bytes| visitor.f64(f64::from_be_bytes(bytes))),
            0xcc => self.number(start, visitor, |visitor, [byte]| visitor.uint(byte.into())),
            0xcd => {
                self.number(start, visitor, |visitor, bytes| visitor.uint(u16::from_be_bytes(bytes).into()))
            }
            0xce => {
                self.number(start, visitor, |visitor, bytes| visitor.uint(u32::from_be_bytes(bytes).into()))
            }
            0xcf => self.number(start, visitor, |visitor, bytes| visitor.uint(u64::from_be_bytes(bytes))),
            0xd0 => {
                self.number(start, visitor, |visitor, bytes| visitor.int(i8::from_be_bytes(bytes).into()))
            }
            0xd1 => {
                self.number(start, visitor, |visitor, bytes| visitor.int(i16::from_be_bytes(bytes).into()))
            }
            0xd2 => {
                self.number(start, visitor, |visitor, bytes| visitor.int(i32::from_be_bytes(bytes).into()))
            }
            0xd3 => self.number(start, visitor, |visitor, bytes| visitor.int(i64::from_be_bytes(bytes))),
            0xd4..=0xd8 => self.extension(start, 1 << (head - 0xd4), visitor),
            0xd9 => self.counted::<1, V>(start, visitor, |visitor, bytes| visitor.str(bytes)),
            0xda => self.counted::<2, V>(start, visitor, |visitor, bytes| visitor.str(bytes)),
            0xdb => self.counted::<4, V>(start, visitor, |visitor, bytes| visitor.str(bytes)),
            0xdc => {
                self.number(start, visitor, |visitor, bytes| visitor.array(u16::from_be_bytes(bytes).into()))
            }
            0xdd => self.number(start, visitor, |visitor, bytes| visitor.array(u32::from_be_bytes(bytes))),
            0xde => {
                self.number(start, visitor, |visitor, bytes| visitor.map(u16::from_be_bytes(bytes).into()))
            }
            0xdf => self.number(start, visitor, |visitor, bytes| visitor.map(u32::from_be_bytes(bytes))),
            0xe0..=0xff => visitor.int(i64::from(head.cast_signed())),
        }
    }

    /// The token that begins at `start` is cut off.
    #[cold]
    fn cut<V: Visitor<'a>>(&mut self, start: usize, visitor: &mut V) -> V::Out {
        self.pos = start;
        visitor.error(Error::new(ErrorKind::Truncated, start))
    }

    #[inline(always)]
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let bytes = self.bytes.get(self.pos..)?.first_chunk::<N>()?;
        self.pos += N;
        Some(*bytes)
    }

    /// A big-endian length of `N` bytes.
    #[inline(always)]
    fn length<const N: usize>(&mut self) -> Option<usize> {
        let bytes = self.take::<N>()?;
        Some(bytes.iter().fold(0, |length, &byte| length << 8 | usize::from(byte)))
    }

    #[inline(always)]
    fn number<const N: usize, V: Visitor<'a>>(
        &mut self,
        start: usize,
        visitor: &mut V,
        call: impl FnOnce(&mut V, [u8; N]) -> V::Out,
    ) -> V::Out {
        match self.take() {
            Some(bytes) => call(visitor, bytes),
            None => self.cut(start, visitor),
        }
    }

    #[inline(always)]
    fn slice<V: Visitor<'a>>(
        &mut self,
        start: usize,
        length: usize,
        visitor: &mut V,
        call: impl FnOnce(&mut V, &'a [u8]) -> V::Out,
    ) -> V::Out {
        match self.bytes.get(self.pos..).and_then(|rest| rest.get(..length)) {
            Some(slice) => {
                self.pos += length;
                call(visitor, slice)
            }
            None => self.cut(start, visitor),
        }
    }

    #[inline(always)]
    fn counted<const N: usize, V: Visitor<'a>>(
        &mut self,
        start: usize,
        visitor: &mut V,
        call: impl FnOnce(&mut V, &'a [u8]) -> V::Out,
    ) -> V::Out {
        match self.length::<N>() {
            Some(length) => self.slice(start, length, visitor, call),
            None => self.cut(start, visitor),
        }
    }

    fn extension_counted<const N: usize, V: Visitor<'a>>(&mut self, start: usize, visitor: &mut V) -> V::Out {
        match self.length::<N>() {
            Some(length) => self.extension(start, length, visitor),
            None => self.cut(start, visitor),
        }
    }

    fn extension<V: Visitor<'a>>(&mut self, start: usize, length: usize, visitor: &mut V) -> V::Out {
        match self.take() {
            Some(kind) => self.slice(start, length, visitor, |visitor, payload| {
                visitor.ext(i8::from_be_bytes(kind), payload, start)
            }),
            None => self.cut(start, visitor),
        }
    }
}

/// Receives a token by its type: see [`Token`].
pub trait Visitor<'a> {
    /// The result for a token.
    type Out;
    /// nil
    fn nil(&mut self) -> Self::Out;
    /// true, false
    fn bool(&mut self, value: bool) -> Self::Out;
    /// Any integer in an unsigned format.
    fn uint(&mut self, value: u64) -> Self::Out;
    /// Any integer in a signed format; may be positive.
    fn int(&mut self, value: i64) -> Self::Out;
    /// float 32
    fn f32(&mut self, value: f32) -> Self::Out;
    /// float 64
    fn f64(&mut self, value: f64) -> Self::Out;
    /// A string; its bytes are not checked to be UTF-8.
    fn str(&mut self, bytes: &'a [u8]) -> Self::Out;
    /// Binary data.
    fn bin(&mut self, bytes: &'a [u8]) -> Self::Out;
    /// An extension: its type, its payload, and where it begins.
    fn ext(&mut self, kind: i8, payload: &'a [u8], offset: usize) -> Self::Out;
    /// An array; that many values follow.
    fn array(&mut self, items: u32) -> Self::Out;
    /// A map; that many pairs of values follow.
    fn map(&mut self, entries: u32) -> Self::Out;
    /// There is no valid token.
    fn error(&mut self, error: Error) -> Self::Out;
}

/// A visitor that returns tokens.
pub(super) struct Tokens;

impl<'a> Visitor<'a> for Tokens {
    type Out = Result<Token<'a>, Error>;

    #[inline(always)]
    fn nil(&mut self) -> Self::Out {
        Ok(Token::Nil)
    }

    #[inline(always)]
    fn bool(&mut self, value: bool) -> Self::Out {
        Ok(Token::Bool(value))
    }

    #[inline(always)]
    fn uint(&mut self, value: u64) -> Self::Out {
        Ok(Token::UInt(value))
    }

    #[inline(always)]
    fn int(&mut self, value: i64) -> Self::Out {
        Ok(Token::Int(value))
    }

    #[inline(always)]
    fn f32(&mut self, value: f32) -> Self::Out {
        Ok(Token::F32(value))
    }

    #[inline(always)]
    fn f64(&mut self, value: f64) -> Self::Out {
        Ok(Token::F64(value))
    }

    #[inline(always)]
    fn str(&mut self, bytes: &'a [u8]) -> Self::Out {
        Ok(Token::Str(bytes))
    }

    #[inline(always)]
    fn bin(&mut self, bytes: &'a [u8]) -> Self::Out {
        Ok(Token::Bin(bytes))
    }

    #[inline(always)]
    fn ext(&mut self, kind: i8, payload: &'a [u8], _offset: usize) -> Self::Out {
        Ok(Token::Ext(kind, payload))
    }

    #[inline(always)]
    fn array(&mut self, items: u32) -> Self::Out {
        Ok(Token::Array(items))
    }

    #[inline(always)]
    fn map(&mut self, entries: u32) -> Self::Out {
        Ok(Token::Map(entries))
    }

    #[inline(always)]
    fn error(&mut self, error: Error) -> Self::Out {
        Err(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(bytes: &[u8]) -> Result<Token<'_>, ErrorKind> {
        Reader::at(bytes, 0).token().map_err(|error| error.kind)
    }

    #[test]
    fn every_head_byte_is_a_token_or_reserved() {
        let mut message = [0_u8; 64];
        for head in 0..=255 {
            message[0] = head;
            match token(&message) {
                Ok(_) => assert_ne!(head, 0xc1),
                Err(kind) => assert_eq!((head, kind), (0xc1, ErrorKind::Reserved(0xc1))),
            }
        }
    }

    #[test]
    fn a_token_cut_short_is_truncated_and_moves_nothing() {
        let messages: [&[u8]; 9] = [
            b"",
            b"\xa3ab",
            b"\xc5\0",
            b"\xc5\0\x02a",
            b"\xc7\x01\x05",
            b"\xcb\0\0\0\0\0\0\0",
            b"\xd8\x01",
            b"\xdb\xff\xff\xff\xff",
            b"\xdf\0\0\0",
        ];
        for message in messages {
            let mut reader = Reader::at(message, 0);
            assert_eq!(reader.token(), Err(Error::new(ErrorKind::Truncated, 0)), "{message:?}");
            assert_eq!(reader.pos(), 0);
        }
    }

    #[test]
    fn lengths_and_payloads() {
        assert_eq!(token(b"\xd4\xfez"), Ok(Token::Ext(-2, b"z")));
        assert_eq!(token(b"\xc8\0\0\x07"), Ok(Token::Ext(7, b"")));
        assert_eq!(token(b"\xda\0\x01x"), Ok(Token::Str(b"x")));
        assert_eq!(token(b"\xdf\0\x01\0\0"), Ok(Token::Map(65536)));
        assert_eq!(token(b"\xe0"), Ok(Token::Int(-32)));
        assert_eq!(token(b"\xca\x80\0\0\0"), Ok(Token::F32(-0.0)));
    }
}
