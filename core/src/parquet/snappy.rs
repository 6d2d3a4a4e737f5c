//! Snappy's format: the length of the text, then elements, each with a tag: new bytes, or a repeat of earlier ones.
//!
//! The lowest two bits of a tag say which element it is. 0: new bytes; the other bits are their number less one, or, from
//! 60 on, say in how many bytes that number follows. 1: a repeat of 4 to 11 bytes from an offset of 11 bits. 2 and 3: a
//! repeat of 1 to 64 bytes from an offset of 16 or 32 bits. Source: `format_description.txt` of Snappy.

use super::error::{Fault, OTHER_SIZE};
use super::repeats::Text;
use crate::Task;

const INVALID: Fault = Fault::Wrong("a page's Snappy data is invalid");

/// Appends the text of `packed`, of at most `size` bytes.
pub(super) fn decompress(
    packed: &[u8],
    size: usize,
    plain: &mut Vec<u8>,
    task: &Task<'_>,
) -> Result<(), Fault> {
    let mut rest = packed;
    let length = varint(&mut rest)?;
    if length != size as u64 {
        return Err(OTHER_SIZE);
    }
    let mut text = Text::new(plain, size);
    while let Some((&tag, behind)) = rest.split_first() {
        rest = behind;
        let high = usize::from(tag >> 2);
        match tag & 3 {
            0 => {
                let length = if high < 60 { high } else { number(&mut rest, high - 59)? };
                let bytes = rest.split_at_checked(length.saturating_add(1));
                let (bytes, behind) = bytes.ok_or(INVALID)?;
                text.add(bytes, task)?;
                rest = behind;
            }
            1 => {
                let offset = (high >> 3) << 8 | number(&mut rest, 1)?;
                text.repeat(offset, (high & 7) + 4, task)?;
            }
            kind => {
                let offset = number(&mut rest, if kind == 2 { 2 } else { 4 })?;
                text.repeat(offset, high + 1, task)?;
            }
        }
    }
    Ok(())
}

fn varint(rest: &mut &[u8]) -> Result<u64, Fault> {
    let mut value = 0;
    for shift in (0..35).step_by(7) {
        let (&byte, behind) = rest.split_first().ok_or(INVALID)?;
        *rest = behind;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(INVALID)
}

/// A number of so many bytes, the lowest first.
fn number(rest: &mut &[u8], bytes: usize) -> Result<usize, Fault> {
    let (digits, behind) = rest.split_at_checked(bytes).ok_or(INVALID)?;
    *rest = behind;
    Ok(digits.iter().rev().fold(0, |value, &digit| value << 8 | usize::from(digit)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(packed: &[u8], size: usize) -> Result<Vec<u8>, Fault> {
        let mut plain = b"before".to_vec();
        decompress(packed, size, &mut plain, &Task::new())?;
        Ok(plain.split_off(6))
    }

    #[test]
    fn elements_of_every_kind_are_read() {
        assert_eq!(text(&[0], 0).unwrap(), b"");
        assert_eq!(text(b"\x03\x08abc", 3).unwrap(), b"abc");
        // Four new bytes, then seven from three bytes before, which overlap.
        assert_eq!(text(b"\x0b\x0cabcd\x0d\x03", 11).unwrap(), b"abcdbcdbcdb");
        assert_eq!(text(b"\x06\x08abc\x0a\x03\0", 6).unwrap(), b"abcabc");
        assert_eq!(text(b"\x06\x08abc\x0b\x03\0\0\0", 6).unwrap(), b"abcabc");
        let long = [&b"\xac\x02\xf4\x2b\x01"[..], &[b'x'; 300]].concat();
        assert_eq!(text(&long, 300).unwrap(), [b'x'; 300]);
    }

    #[test]
    fn what_is_damaged_is_refused() {
        for packed in [
            &b""[..],
            b"\x80",
            b"\x03\x08ab",
            b"\x02\x08abc",
            b"\x04\x01\x01",
            b"\x07\x08abc\x0d\x04",
            b"\x07\x08abc\x0d\0",
            b"\x04\xfc\xff\xff\xff\xffabcd",
        ] {
            assert!(text(packed, packed.first().map_or(0, |&size| size.into())).is_err(), "{packed:?}");
        }
    }
}
