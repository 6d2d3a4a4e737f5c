//! Appends tokens to a message, each in its shortest form.

use super::Timestamp;

/// The destination of a message.
pub trait Sink {
    /// Appends `bytes`.
    fn put(&mut self, bytes: &[u8]);

    /// Announces that `_bytes` bytes will be appended in pieces.
    fn expect(&mut self, _bytes: usize) {}

    /// Appends a token's first byte and its remaining bytes.
    #[inline]
    fn put_headed(&mut self, head: u8, body: &[u8]) {
        self.put(&[head]);
        self.put(body);
    }
}

impl Sink for Vec<u8> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// The longest array, map, string, binary or extension that the format can express.
pub const MAX_LENGTH: usize = u32::MAX as usize;

/// Appends nil.
#[inline]
pub fn nil(out: &mut impl Sink) {
    out.put(&[0xc0]);
}

/// Appends true or false.
#[inline]
pub fn bool(out: &mut impl Sink, value: bool) {
    out.put(&[0xc2 + u8::from(value)]);
}

/// Appends an integer.
#[inline]
pub fn int(out: &mut impl Sink, value: i64) {
    match value {
        0.. => uint(out, value.cast_unsigned()),
        -32.. => out.put(&[value.to_be_bytes()[7]]),
        -0x80.. => out.put(&[0xd0, value.to_be_bytes()[7]]),
        -0x8000.. => tagged(out, 0xd1, value.to_be_bytes().last_chunk::<2>()),
        -0x8000_0000.. => tagged(out, 0xd2, value.to_be_bytes().last_chunk::<4>()),
        _ => tagged(out, 0xd3, Some(&value.to_be_bytes())),
    }
}

/// Appends an integer that is not negative.
#[inline]
pub fn uint(out: &mut impl Sink, value: u64) {
    match value {
        0..0x80 => out.put(&[value.to_be_bytes()[7]]),
        0x80..0x100 => out.put(&[0xcc, value.to_be_bytes()[7]]),
        0x100..0x1_0000 => tagged(out, 0xcd, value.to_be_bytes().last_chunk::<2>()),
        0x1_0000..0x1_0000_0000 => tagged(out, 0xce, value.to_be_bytes().last_chunk::<4>()),
        _ => tagged(out, 0xcf, Some(&value.to_be_bytes())),
    }
}

/// Appends a number of double precision.
#[inline]
pub fn f64(out: &mut impl Sink, value: f64) {
    tagged(out, 0xcb, Some(&value.to_be_bytes()));
}

/// Appends a number of single precision.
#[inline]
pub fn f32(out: &mut impl Sink, value: f32) {
    tagged(out, 0xca, Some(&value.to_be_bytes()));
}

/// Appends a string.
#[inline]
pub fn str(out: &mut impl Sink, bytes: &[u8]) {
    if bytes.len() < 32 {
        return out.put_headed(0xa0 | low_byte(bytes.len()), bytes);
    }
    str_header(out, bytes.len());
    out.put(bytes);
}

/// Appends the header of a string; its bytes are to follow.
pub fn str_header(out: &mut impl Sink, length: usize) {
    if length < 32 {
        out.put(&[0xa0 | low_byte(length)]);
    } else {
        header(out, length, [0xd9, 0xda, 0xdb]);
    }
}

/// Appends a string or binary data in the format's first version, which has neither str 8 nor bin.
pub fn raw(out: &mut impl Sink, bytes: &[u8]) {
    raw_header(out, bytes.len());
    out.put(bytes);
}

/// Appends the header of a string in the format's first version.
pub fn raw_header(out: &mut impl Sink, length: usize) {
    if length < 32 {
        out.put(&[0xa0 | low_byte(length)]);
    } else {
        header_16(out, length, [0xda, 0xdb]);
    }
}

/// Appends binary data.
#[inline]
pub fn bin(out: &mut impl Sink, bytes: &[u8]) {
    bin_header(out, bytes.len());
    out.put(bytes);
}

/// Appends the header of binary data; its bytes are to follow.
#[inline]
pub fn bin_header(out: &mut impl Sink, length: usize) {
    header(out, length, [0xc4, 0xc5, 0xc6]);
}

/// Appends an extension.
pub fn ext(out: &mut impl Sink, kind: i8, payload: &[u8]) {
    ext_header(out, kind, payload.len());
    out.put(payload);
}

/// Appends the header of an extension; its payload is to follow.
pub fn ext_header(out: &mut impl Sink, kind: i8, length: usize) {
    match length {
        1 | 2 | 4 | 8 | 16 => out.put(&[0xd4 + low_byte(length.trailing_zeros() as usize)]),
        _ => header(out, length, [0xc7, 0xc8, 0xc9]),
    }
    out.put(&kind.to_be_bytes());
}

/// Appends the header of an array; its items are to follow.
#[inline]
pub fn array_header(out: &mut impl Sink, length: usize) {
    if length < 16 {
        out.put(&[0x90 | low_byte(length)]);
    } else {
        header_16(out, length, [0xdc, 0xdd]);
    }
}

/// Appends the header of a map; a key and a value for each entry are to follow.
#[inline]
pub fn map_header(out: &mut impl Sink, length: usize) {
    if length < 16 {
        out.put(&[0x80 | low_byte(length)]);
    } else {
        header_16(out, length, [0xde, 0xdf]);
    }
}

/// Appends a timestamp.
pub fn timestamp(out: &mut impl Sink, value: Timestamp) {
    let (payload, length) = value.payload();
    ext(out, Timestamp::TYPE, &payload[..length]);
}

/// A header whose length takes 8, 16 or 32 bits.
#[inline]
fn header(out: &mut impl Sink, length: usize, tags: [u8; 3]) {
    let [tag_8, tag_16, tag_32] = tags;
    if length < 0x100 {
        out.put(&[tag_8, low_byte(length)]);
    } else {
        header_16(out, length, [tag_16, tag_32]);
    }
}

/// A header whose length takes 16 or 32 bits.
#[inline]
fn header_16(out: &mut impl Sink, length: usize, [tag_16, tag_32]: [u8; 2]) {
    debug_assert!(length <= MAX_LENGTH, "checked by the caller");
    let bytes = (length as u32).to_be_bytes();
    if length < 0x1_0000 {
        tagged(out, tag_16, bytes.last_chunk::<2>());
    } else {
        tagged(out, tag_32, Some(&bytes));
    }
}

#[inline(always)]
fn tagged<const N: usize>(out: &mut impl Sink, tag: u8, bytes: Option<&[u8; N]>) {
    let mut token = [tag; 9];
    if let (Some(bytes), Some(place)) = (bytes, token.get_mut(1..=N)) {
        place.copy_from_slice(bytes);
        out.put(&token[..=N]);
    }
}

#[inline(always)]
const fn low_byte(length: usize) -> u8 {
    length.to_le_bytes()[0]
}

#[cfg(test)]
mod tests {
    use super::super::{Reader, Token};
    use super::*;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut out = Vec::new();
        write(&mut out);
        out
    }

    fn read(bytes: &[u8]) -> Token<'_> {
        let mut reader = Reader::at(bytes, 0);
        let token = reader.token().unwrap();
        assert_eq!(reader.left(), 0);
        token
    }

    #[test]
    fn integers_take_the_shortest_form_and_come_back() {
        for bits in 0..64 {
            for near in [-2_i128, -1, 0, 1, 2] {
                for value in [(1_i128 << bits) + near, -(1_i128 << bits) + near] {
                    if let Ok(value) = u64::try_from(value) {
                        let bytes = written(|out| uint(out, value));
                        assert_eq!(read(&bytes), Token::UInt(value));
                        assert_eq!(bytes.len(), shortest_unsigned(value));
                    }
                    if let Ok(value) = i64::try_from(value) {
                        match read(&written(|out| int(out, value))) {
                            Token::UInt(back) => assert_eq!(i64::try_from(back), Ok(value)),
                            back => assert_eq!(back, Token::Int(value)),
                        }
                    }
                }
            }
        }
    }

    fn shortest_unsigned(value: u64) -> usize {
        match value {
            0..=0x7f => 1,
            0x80..=0xff => 2,
            0x100..=0xffff => 3,
            0x1_0000..=0xffff_ffff => 5,
            _ => 9,
        }
    }

    #[test]
    fn lengths_take_the_shortest_form_and_come_back() {
        for length in [0, 1, 2, 4, 8, 15, 16, 17, 31, 32, 255, 256, 65535, 65536] {
            let body = vec![b'x'; length];
            assert_eq!(read(&written(|out| str(out, &body))), Token::Str(&body));
            assert_eq!(read(&written(|out| raw(out, &body))), Token::Str(&body));
            assert_eq!(read(&written(|out| bin(out, &body))), Token::Bin(&body));
            assert_eq!(read(&written(|out| ext(out, -7, &body))), Token::Ext(-7, &body));
            assert_eq!(read(&written(|out| array_header(out, length))), Token::Array(length as u32));
            assert_eq!(read(&written(|out| map_header(out, length))), Token::Map(length as u32));
        }
        assert_eq!(written(|out| raw(out, &[b'x'; 32]))[..3], [0xda, 0, 32]);
        assert_eq!(written(|out| ext(out, 1, b"abcd"))[..2], [0xd6, 1]);
    }
}
