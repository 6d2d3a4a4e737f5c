//! Random vocabularies and pieces, for the tests of methods that give the tokens of short pieces.

use super::vocabulary::Vocabulary;
use crate::Task;
use proptest::prelude::*;

/// The components of pieces: characters of one, two and three bytes that share some of their bytes, and
/// bytes that are not characters.
const BITS: [&[u8]; 12] = [
    b"a",
    b"b",
    b"\xc3\xa4",
    b"\xc3\xa8",
    b"\xe3\xa8\xa8",
    b"\xe3\xa4\xa8",
    b"\xe3\xa8\xa4",
    b"\xe3\xa4\xa4",
    b"\xe0\x83\xa4",
    b"\xc3",
    b"\xe3\xa4",
    b"\xa8",
];

/// All bytes, and for each pair of numbers the join of two earlier tokens.
pub(super) fn vocabulary(joins: &[(usize, usize)]) -> Vocabulary {
    let mut tokens: Vec<Vec<u8>> = (0..=255).map(|byte: u8| vec![byte]).collect();
    let mut usable: Vec<Vec<u8>> = b"ab\xa4\xa8\xc3\xe3".map(|byte| vec![byte]).to_vec();
    for (left, right) in joins {
        let token = [&usable[left % usable.len()][..], &usable[right % usable.len()]].concat();
        if !tokens.contains(&token) {
            tokens.push(token.clone());
            // Listed twice, so that longer tokens are made sooner.
            usable.extend([token.clone(), token]);
        }
    }
    Vocabulary::new(tokens.into_iter().zip(0..), &Task::new()).unwrap()
}

pub(super) fn pieces(count: std::ops::Range<usize>) -> impl Strategy<Value = Vec<u8>> {
    let whole = prop::collection::vec(prop::sample::select(&BITS[..8]), count.clone());
    let broken = prop::collection::vec(prop::sample::select(&BITS[..]), count);
    prop_oneof![whole, broken].prop_map(|bits| bits.concat())
}
