//! LZ4's block format: sequences of new bytes and a repeat of earlier ones; the last one is without a repeat.
//!
//! A sequence begins with a byte that has the number of new bytes in its upper half, and the length of the repeat less 4
//! in its lower one. A half of 15 goes on in the bytes that follow, up to one that is not 255. The offset of the repeat has
//! 16 bits. Source: `lz4_Block_format.md` of LZ4.

use super::error::Fault;
use super::repeats::Text;
use crate::Task;

const INVALID: Fault = Fault::Wrong("a page's LZ4 data is invalid");

/// Appends the text of `packed`, of at most `size` bytes.
pub(super) fn decompress(
    packed: &[u8],
    size: usize,
    plain: &mut Vec<u8>,
    task: &Task<'_>,
) -> Result<(), Fault> {
    let mut text = Text::new(plain, size);
    let mut rest = packed;
    while let Some((&token, behind)) = rest.split_first() {
        rest = behind;
        let length = length(usize::from(token >> 4), &mut rest)?;
        let (bytes, behind) = rest.split_at_checked(length).ok_or(INVALID)?;
        text.add(bytes, task)?;
        if behind.is_empty() {
            return Ok(());
        }
        let (&offset, behind) = behind.split_first_chunk().ok_or(INVALID)?;
        rest = behind;
        let repeat = self::length(usize::from(token & 15), &mut rest)?.saturating_add(4);
        text.repeat(u16::from_le_bytes(offset).into(), repeat, task)?;
    }
    if packed.is_empty() && size == 0 { Ok(()) } else { Err(INVALID) }
}

fn length(half: usize, rest: &mut &[u8]) -> Result<usize, Fault> {
    let mut length = half;
    if half == 15 {
        loop {
            let (&more, behind) = rest.split_first().ok_or(INVALID)?;
            *rest = behind;
            length = length.saturating_add(more.into());
            if more < 255 {
                break;
            }
        }
    }
    Ok(length)
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
    fn sequences_are_read() {
        assert_eq!(text(b"", 0).unwrap(), b"");
        assert_eq!(text(b"\0", 0).unwrap(), b"");
        assert_eq!(text(b"\x30abc", 3).unwrap(), b"abc");
        assert_eq!(text(b"\x33abc\x02\0\x10z", 11).unwrap(), b"abcbcbcbcbz");
        let long = [&b"\xf0\xff\x1e"[..], &[b'x'; 300]].concat();
        assert_eq!(text(&long, 300).unwrap(), [b'x'; 300]);
        assert_eq!(text(b"\x1fx\x01\0\xff\x19\x10y", 301).unwrap()[..300], [b'x'; 300]);
    }

    #[test]
    fn what_is_damaged_is_refused() {
        for packed in [&b"\x30ab"[..], b"\x31abc\x04\0", b"\x31abc\0\0\x10z", b"\xf0", b"\x30abcd"] {
            assert!(text(packed, 100).is_err(), "{packed:?}");
        }
        assert!(text(b"\x30abc", 2).is_err());
    }
}
