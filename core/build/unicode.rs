//! The classes of characters that the patterns of the public encodings tell apart, and Chinese characters.
//!
//! They are taken from the crate regex-syntax, which is where tiktoken's regular expressions have them from.
//! `tokens/classes.rs` and `tokens/split/kimi.rs` read the tables.

use regex_syntax::hir::{Class, HirKind};

/// Classes by number; a later one overrules an earlier one. What is in none is 0.
const CLASSES: [&str; 8] =
    [r"[\p{Lu}\p{Lt}]", r"\p{Ll}", r"[\p{Lm}\p{Lo}]", r"\p{M}", r"\p{N}", r"\s", r"[\r\n]", r"[\p{P}\p{S}]"];

/// How many characters share one block: as many as differ in the last byte of UTF-8 only.
const BLOCK: usize = 64;

/// For each block of characters the number of its list of classes (two bytes each), then the lists.
pub(crate) fn classes() -> Vec<u8> {
    let by_character = class_of_each();
    let mut lists: Vec<&[u8]> = Vec::new();
    let mut table = Vec::new();
    for block in by_character.chunks(BLOCK) {
        let known = lists.iter().position(|&list| list == block);
        let number = known.unwrap_or_else(|| {
            lists.push(block);
            lists.len() - 1
        });
        table.extend(u16::try_from(number).expect("few lists differ").to_le_bytes());
    }
    table.extend(lists.concat());
    table
}

/// The first and the last character of each range of `\p{Han}`, of four bytes each.
pub(crate) fn han() -> Vec<u8> {
    let ends = ranges(r"\p{Han}").into_iter().flatten();
    ends.flat_map(|end| u32::from(end).to_le_bytes()).collect()
}

fn class_of_each() -> Vec<u8> {
    let mut classes = vec![0; char::MAX as usize + 1];
    for (number, pattern) in (1..).zip(CLASSES) {
        for [first, last] in ranges(pattern) {
            classes[first as usize..=last as usize].fill(number);
        }
    }
    classes
}

/// The first and last characters of the ranges of a class.
fn ranges(pattern: &str) -> Vec<[char; 2]> {
    let parsed = regex_syntax::parse(pattern).expect("the pattern is valid");
    let HirKind::Class(Class::Unicode(class)) = parsed.kind() else { panic!("{pattern} is no class") };
    class.ranges().iter().map(|range| [range.start(), range.end()]).collect()
}
