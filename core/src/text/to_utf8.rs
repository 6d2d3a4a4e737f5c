//! Converts characters of a fixed width to UTF-8.
//!
//! Blocks of characters below U+10000 are converted without branches: each character's one, two and three bytes are
//! all computed, those that apply are written as one word of four bytes, and the next character's bytes are
//! written behind them. Blocks with others, and with surrogates, are converted one by one.

use super::{Error, Unit};
use crate::{Task, memory};

/// Characters between two checks of the task.
const STRETCH: usize = 64 << 10;

/// Characters that are converted together.
const BLOCK: usize = 32;

/// The most bytes of a character.
const MOST: usize = 4;

/// What [`to_utf8`] made of characters.
#[derive(Debug, PartialEq, Eq)]
pub struct Converted {
    /// The text.
    pub text: String,
    /// Whether there were surrogates among the characters.
    pub had_surrogates: bool,
}

/// The text of these characters. UTF-8 has no surrogates: two that make a pair become the character that they mean,
/// others U+FFFD, which is also what numbers beyond U+10FFFF become.
///
/// ```
/// use offlock_core::text::to_utf8;
/// use offlock_core::Task;
///
/// let converted = to_utf8(&[0x70_u16, 0x20ac, 0xd83d, 0xde00, 0xd800], &Task::new())?;
/// assert_eq!(converted.text, "p€😀\u{fffd}");
/// assert!(converted.had_surrogates);
/// # Ok::<_, offlock_core::text::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::OutOfMemory`] and [`Error::Stopped`].
pub fn to_utf8<T: Unit + Into<u32>>(characters: &[T], task: &Task<'_>) -> Result<Converted, Error> {
    let most = match size_of::<T>() {
        1 => 2,
        2 => 3,
        _ => MOST,
    };
    let (mut utf8, mut rest, mut had_surrogates) = (Vec::new(), characters, false);
    while !rest.is_empty() {
        task.check()?;
        let (some, after) = split_between_pairs(rest, STRETCH);
        memory::reserve(&mut utf8, most * some.len())?;
        had_surrogates |= append(&mut utf8, some);
        rest = after;
    }
    #[allow(unsafe_code)]
    // SAFETY: only the UTF-8 of characters was appended.
    let text = unsafe { String::from_utf8_unchecked(utf8) };
    Ok(Converted { text, had_surrogates })
}

/// About the first `count` characters, and the others, which do not begin with the second surrogate of a pair.
fn split_between_pairs<T: Copy + Into<u32>>(characters: &[T], count: usize) -> (&[T], &[T]) {
    let is_between = |&at: &usize| !is_leading(characters[at - 1].into());
    let end = (characters.len().min(count)..characters.len()).find(is_between).unwrap_or(characters.len());
    characters.split_at(end)
}

/// Appends characters, for which there is room. Returns whether there were surrogates.
fn append<T: Copy + Into<u32>>(utf8: &mut Vec<u8>, characters: &[T]) -> bool {
    let (mut rest, mut had_surrogates) = (characters, false);
    while !rest.is_empty() {
        match rest.split_first_chunk() {
            Some((block, after)) if has_at_most_three_bytes_each(block) => {
                append_block(utf8, block);
                rest = after;
            }
            _ => {
                let (some, after) = split_between_pairs(rest, BLOCK);
                had_surrogates |= append_each(utf8, some);
                rest = after;
            }
        }
    }
    had_surrogates
}

/// Whether the characters lie below U+10000 and none is a surrogate.
fn has_at_most_three_bytes_each<T: Copy + Into<u32>>(block: &[T; BLOCK]) -> bool {
    let others = block.iter().fold(false, |others, &character| {
        let character: u32 = character.into();
        others | (character >= 0x1_0000) | (character & !0x7ff == 0xd800)
    });
    !others
}

/// Appends a block of characters below U+10000.
fn append_block<T: Copy + Into<u32>>(utf8: &mut Vec<u8>, block: &[T; BLOCK]) {
    let mut bytes = [0; MOST * BLOCK];
    let mut end = 0;
    for &character in block {
        let character: u32 = character.into();
        let last = 0x80 | character & 0x3f;
        let two = 0xc0 | character >> 6 | last << 8;
        let three = 0xe0 | character >> 12 | (0x80 | character >> 6 & 0x3f) << 8 | last << 16;
        let (is_long, is_longer) = (character >= 0x80, character >= 0x800);
        let word = if is_longer { three } else { two };
        let word = if is_long { word } else { character };
        bytes[end..end + MOST].copy_from_slice(&word.to_le_bytes());
        end += 1 + usize::from(is_long) + usize::from(is_longer);
    }
    utf8.extend_from_slice(&bytes[..end]);
}

/// Appends characters one by one. Returns whether there were surrogates.
fn append_each<T: Copy + Into<u32>>(utf8: &mut Vec<u8>, characters: &[T]) -> bool {
    let mut had_surrogates = false;
    let mut characters = characters.iter().map(|&character| character.into()).peekable();
    while let Some(character) = characters.next() {
        let pair = characters.next_if(|&next| is_leading(character) && is_trailing(next));
        let character = pair.map_or(character, |next| 0x1_0000 + ((character & 0x3ff) << 10 | next & 0x3ff));
        let converted = char::from_u32(character);
        had_surrogates |= pair.is_some() || converted.is_none();
        let converted = converted.unwrap_or(char::REPLACEMENT_CHARACTER);
        utf8.extend_from_slice(converted.encode_utf8(&mut [0; MOST]).as_bytes());
    }
    had_surrogates
}

const fn is_leading(character: u32) -> bool {
    character & !0x3ff == 0xd800
}

const fn is_trailing(character: u32) -> bool {
    character & !0x3ff == 0xdc00
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// One by one.
    fn slow<T: Copy + Into<u32>>(characters: &[T]) -> Converted {
        let mut utf8 = Vec::new();
        let had_surrogates = append_each(&mut utf8, characters);
        Converted { text: String::from_utf8(utf8).unwrap(), had_surrogates }
    }

    fn check<T: Unit + Into<u32>>(characters: &[T]) {
        assert_eq!(to_utf8(characters, &Task::new()).unwrap(), slow(characters));
    }

    #[test]
    fn every_character_is_converted() {
        let all = '\0'..=char::MAX;
        let text: String = all.clone().collect();
        let wide: Vec<u32> = all.map(u32::from).collect();
        assert_eq!(to_utf8(&wide, &Task::new()).unwrap(), Converted { text, had_surrogates: false });
        check(&(0..=u16::MAX).collect::<Vec<_>>());
        check(&(0..=u8::MAX).collect::<Vec<_>>());
    }

    #[test]
    fn pairs_are_not_divided() {
        let pair = [0xd83d_u16, 0xde00];
        for before in (0..2 * BLOCK).chain(STRETCH - BLOCK..STRETCH + BLOCK) {
            let text = [&vec![0x20ac; before], &pair[..], &[0x20ac; 2 * BLOCK]].concat();
            let converted = to_utf8(&text, &Task::new()).unwrap();
            assert_eq!(converted.text, String::from_utf16(&text).unwrap());
            assert!(converted.had_surrogates);
            check(&[&vec![0x20ac; before][..], &[0xd83d, 0xd83d], &pair[..], &[0xde00]].concat());
        }
    }

    #[test]
    fn a_stopped_task_ends_it() {
        let task = Task::new();
        task.stop();
        assert_eq!(to_utf8(b"text", &task), Err(Error::Stopped));
    }

    proptest! {
        #[test]
        fn mixes_are_converted(
            parts in prop::collection::vec((
                prop::sample::select(&[0x41_u32, 0x7f, 0x80, 0x7ff, 0x800, 0xd7ff, 0xd800, 0xdbff, 0xdc00, 0xe000, 0xffff, 0x1_0000, 0x10_ffff, 0x11_0000][..]),
                1..40_usize,
            ), 0..20),
        ) {
            let characters: Vec<u32> = parts.iter().flat_map(|&(character, times)| vec![character; times]).collect();
            check(&characters);
            let narrow: Vec<u16> = characters.iter().filter_map(|&character| character.try_into().ok()).collect();
            check(&narrow);
        }
    }
}
