//! The alphabet of byte-level vocabularies: one printable character for each byte, as GPT-2 chose them.

use crate::memory::{self, OutOfMemory};

/// The character of each byte: the byte itself if it is printable in Latin-1, otherwise the next of the
/// characters from U+0100 on.
const CHARACTERS: [char; 256] = {
    let mut characters = ['\0'; 256];
    let (mut byte, mut next) = (0, 0x100_u32);
    while byte < 256 {
        let number = match byte as u32 {
            itself @ (0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff) => itself,
            _ => {
                next += 1;
                next - 1
            }
        };
        characters[byte] = match char::from_u32(number) {
            Some(character) => character,
            None => unreachable!(),
        };
        byte += 1;
    }
    characters
};

/// The byte of each character of the alphabet; −1 for other characters.
const BYTES: [i16; 0x100 + 68] = {
    let mut bytes = [-1; 0x100 + 68];
    let mut byte = 0;
    while byte < 256 {
        bytes[CHARACTERS[byte] as usize] = byte as i16;
        byte += 1;
    }
    bytes
};

/// The bytes that a token of the alphabet stands for; `None` if it has other characters.
pub(super) fn bytes(token: &str) -> Option<Vec<u8>> {
    token.chars().map(byte).collect()
}

/// As [`bytes`], in memory that is used again: replaces `out`, and returns false if there are other characters.
pub(super) fn read(token: &str, out: &mut Vec<u8>) -> Result<bool, OutOfMemory> {
    out.clear();
    memory::reserve(out, token.len())?;
    for character in token.chars() {
        let Some(byte) = byte(character) else { return Ok(false) };
        out.push(byte);
    }
    Ok(true)
}

fn byte(character: char) -> Option<u8> {
    BYTES.get(character as usize).and_then(|&byte| u8::try_from(byte).ok())
}

/// The token that stands for `bytes`.
pub(super) fn token(bytes: &[u8]) -> String {
    bytes.iter().map(|&byte| CHARACTERS[usize::from(byte)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_the_characters_of_gpt2() {
        assert_eq!(token(b" a\n\xad\xff"), "Ġa\u{10a}\u{143}ÿ");
        assert_eq!(bytes("ĠaĊ"), Some(b" a\n".to_vec()));
        assert_eq!(bytes("a b"), None, "a blank is not in the alphabet");
        assert_eq!(bytes("\u{144}"), None);
        assert_eq!(bytes("語"), None);
        let all: Vec<_> = (0..=255).collect();
        assert_eq!(bytes(&token(&all)), Some(all));
    }
}
