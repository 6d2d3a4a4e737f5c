use super::error::{Error, ErrorKind};

/// One value of a message, or the header of a container whose items follow.
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
    /// The name of the value's family in the format.
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

    /// The bytes not read yet.
    #[inline]
    pub const fn left(&self) -> usize {
        self.bytes.len() - self.pos
    }

    /// The next byte, which says what the next token is, when there is one.
    #[inline]
    pub fn peek(&self) -> Option<u8> {
        self.bytes.get(self.pos).copied()
    }

    /// Reads the next token. After an error the position is where it was.
    ///
    /// Whether a container's items can fit in what is left is for the caller to check: see [`Reader::left`].
    #[inline(always)]
    pub fn token(&mut self) -> Result<Token<'a>, Error> {
        let start = self.pos;
        let token = self.token_or_truncated();
        if token.is_err() {
            self.pos = start;
        }
        token.map_err(|kind| Error::new(kind, start))
    }

    #[inline(always)]
    fn token_or_truncated(&mut self) -> Result<Token<'a>, ErrorKind> {
        let [head] = self.take::<1>()?;
        Ok(match head {
            0x00..=0x7f => Token::UInt(head.into()),
            0x80..=0x8f => Token::Map(u32::from(head & 0x0f)),
            0x90..=0x9f => Token::Array(u32::from(head & 0x0f)),
            0xa0..=0xbf => Token::Str(self.take_slice(usize::from(head & 0x1f))?),
            0xc0 => Token::Nil,
            0xc1 => return Err(ErrorKind::Reserved(head)),
            0xc2 => Token::Bool(false),
            0xc3 => Token::Bool(true),
            0xc4 => Token::Bin(self.counted::<1>()?),
            0xc5 => Token::Bin(self.counted::<2>()?),
            0xc6 => Token::Bin(self.counted::<4>()?),
            0xc7 => self.extension_counted::<1>()?,
            0xc8 => self.extension_counted::<2>()?,
            0xc9 => self.extension_counted::<4>()?,
            0xca => Token::F32(f32::from_be_bytes(self.take()?)),
            0xcb => Token::F64(f64::from_be_bytes(self.take()?)),
            0xcc => Token::UInt(u8::from_be_bytes(self.take()?).into()),
            0xcd => Token::UInt(u16::from_be_bytes(self.take()?).into()),
            0xce => Token::UInt(u32::from_be_bytes(self.take()?).into()),
            0xcf => Token::UInt(u64::from_be_bytes(self.take()?)),
            0xd0 => Token::Int(i8::from_be_bytes(self.take()?).into()),
            0xd1 => Token::Int(i16::from_be_bytes(self.take()?).into()),
            0xd2 => Token::Int(i32::from_be_bytes(self.take()?).into()),
            0xd3 => Token::Int(i64::from_be_bytes(self.take()?)),
            0xd4..=0xd8 => self.extension(1 << (head - 0xd4))?,
            0xd9 => Token::Str(self.counted::<1>()?),
            0xda => Token::Str(self.counted::<2>()?),
            0xdb => Token::Str(self.counted::<4>()?),
            0xdc => Token::Array(u16::from_be_bytes(self.take()?).into()),
            0xdd => Token::Array(u32::from_be_bytes(self.take()?)),
            0xde => Token::Map(u16::from_be_bytes(self.take()?).into()),
            0xdf => Token::Map(u32::from_be_bytes(self.take()?)),
            0xe0..=0xff => Token::Int(i64::from(head.cast_signed())),
        })
    }

    #[inline(always)]
    fn take<const N: usize>(&mut self) -> Result<[u8; N], ErrorKind> {
        let rest = self.bytes.get(self.pos..).unwrap_or_default();
        let bytes = rest.first_chunk::<N>().ok_or(ErrorKind::Truncated)?;
        self.pos += N;
        Ok(*bytes)
    }

    #[inline(always)]
    fn take_slice(&mut self, length: usize) -> Result<&'a [u8], ErrorKind> {
        let end = self.pos.checked_add(length).ok_or(ErrorKind::Truncated)?;
        let slice = self.bytes.get(self.pos..end).ok_or(ErrorKind::Truncated)?;
        self.pos = end;
        Ok(slice)
    }

    /// A big-endian length of `N` bytes.
    #[inline(always)]
    fn length<const N: usize>(&mut self) -> Result<usize, ErrorKind> {
        let bytes = self.take::<N>()?;
        Ok(bytes.iter().fold(0, |length, &byte| length << 8 | usize::from(byte)))
    }

    #[inline(always)]
    fn counted<const N: usize>(&mut self) -> Result<&'a [u8], ErrorKind> {
        let length = self.length::<N>()?;
        self.take_slice(length)
    }

    fn extension_counted<const N: usize>(&mut self) -> Result<Token<'a>, ErrorKind> {
        let length = self.length::<N>()?;
        self.extension(length)
    }

    fn extension(&mut self, length: usize) -> Result<Token<'a>, ErrorKind> {
        let kind = i8::from_be_bytes(self.take()?);
        Ok(Token::Ext(kind, self.take_slice(length)?))
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
