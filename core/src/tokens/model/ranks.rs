//! A tokenizer from a `.tiktoken` file: on each line a token in base64 and its rank.

use super::added::Added;
use super::file::sha256;
use super::invalid;
use super::tokenizer::{Other, Tokenizer};
use crate::memory::OutOfMemory;
use crate::task::Stretches;
use crate::tokens::split::Splitter;
use crate::tokens::vocabulary::Vocabulary;
use crate::tokens::{Error, TokenId};
use crate::{Task, memory};
use rustc_hash::FxHashMap;
use std::sync::Arc;

impl Tokenizer {
    /// The tokenizer of a `.tiktoken` file. `pattern` is a regular expression in the dialect of the crate
    /// fancy-regex; `specials` are recognized in texts.
    ///
    /// # Errors
    ///
    /// `Stopped`; `OutOfMemory`; `BadPattern`; `BadVocabulary` for a file that is not valid.
    pub fn from_tiktoken(
        file: &[u8],
        pattern: &str,
        specials: impl IntoIterator<Item = (String, TokenId)>,
        task: &Task<'_>,
    ) -> Result<Self, Error> {
        let mut ranks = Vec::new();
        let mut stretches = Stretches::of_items(task);
        for (number, line) in file.split(|&byte| byte == b'\n').enumerate() {
            stretches.check(number)?;
            if !line.trim_ascii().is_empty() {
                let rank = rank(line.trim_ascii())?;
                let rank =
                    rank.ok_or_else(|| invalid(format!("line {} is no token and rank", number + 1)))?;
                memory::push(&mut ranks, rank)?;
            }
        }
        let mut specials: Vec<(String, TokenId)> = specials.into_iter().collect();
        specials.sort_unstable();
        check_ids(&specials, &ranks)?;
        let described = format!("{specials:?}");
        let special = |(text, id): &(String, TokenId)| Added {
            text: text.clone(),
            id: *id,
            is_special: true,
            in_normalized: false,
            takes_left: false,
            takes_right: false,
            is_word: false,
        };
        let added = specials.iter().map(special).collect();
        let vocabulary = Arc::new(Vocabulary::new(ranks, task)?);
        let mut tokenizer =
            Self::assemble(Splitter::new(pattern)?, vocabulary, added, Vec::new(), Vec::new(), task)?;
        tokenizer.add_specials(specials);
        tokenizer.sha256 = sha256(&[file, pattern.as_bytes(), described.as_bytes()], task)?;
        Ok(tokenizer)
    }

    /// Adds special tokens that decode to their text as it is: unlike that of a `tokenizer.json`, it is never in the
    /// byte-level alphabet. No text gives them unless they are added tokens, too.
    pub(super) fn add_specials(&mut self, tokens: Vec<(String, TokenId)>) {
        let other = |text: String| Other { bytes: text.as_bytes().to_vec(), text, is_special: true };
        self.others.extend(tokens.into_iter().map(|(text, id)| (id, other(text))));
    }
}

/// Refuses special tokens with the number of another one, or of a rank.
fn check_ids(specials: &[(String, TokenId)], ranks: &[(Vec<u8>, TokenId)]) -> Result<(), Error> {
    let mut known: FxHashMap<TokenId, &str> = FxHashMap::default();
    for (text, id) in specials {
        if let Some(other) = known.insert(*id, text) {
            return Err(invalid(format!("the special tokens {other:?} and {text:?} have the number {id}")));
        }
    }
    match ranks.iter().find_map(|(_, rank)| Some((known.get(rank)?, rank))) {
        Some((text, rank)) => {
            Err(invalid(format!("the special token {text:?} has the number of the rank {rank}")))
        }
        None => Ok(()),
    }
}

fn rank(line: &[u8]) -> Result<Option<(Vec<u8>, TokenId)>, OutOfMemory> {
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let (Some(token), Some(rank)) = (words.next(), words.next()) else { return Ok(None) };
    let rank = std::str::from_utf8(rank).ok().and_then(|rank| rank.parse().ok());
    Ok(base64(token)?.zip(rank))
}

/// The bytes that base64 stands for; `None` for what is not base64.
pub(super) fn base64(text: &[u8]) -> Result<Option<Vec<u8>>, OutOfMemory> {
    let digits = text.strip_suffix(b"==").or_else(|| text.strip_suffix(b"=")).unwrap_or(text);
    let mut bytes = memory::with_capacity(digits.len() / 4 * 3 + 3)?;
    let (mut word, mut bits) = (0_u32, 0);
    for &digit in digits {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return Ok(None),
        };
        word = word << 6 | u32::from(value);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((word >> bits) as u8);
        }
    }
    Ok((text.len().is_multiple_of(4) && bits < 6).then_some(bytes))
}

#[cfg(test)]
mod tests {
    use super::base64;

    #[test]
    fn base64_is_read_with_its_padding() {
        let read = |text| base64(text).unwrap();
        assert_eq!(read(b"IA=="), Some(b" ".to_vec()));
        assert_eq!(read(b"ICA="), Some(b"  ".to_vec()));
        assert_eq!(read(b"/+8A"), Some(b"\xff\xef\0".to_vec()));
        assert_eq!((read(b""), read(b"IA"), read(b"I A=")), (Some(Vec::new()), None, None));
    }
}
