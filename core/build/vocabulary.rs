//! The vocabularies of the crate tiktoken-rs, packed as the merges that make each token.
//!
//! A token is written as the two earlier tokens that byte pair encoding joins into it, which takes about half
//! of the space of its bytes and is expanded by two copies. `tokens/vocab_format.rs` reads what is written
//! here.

use std::collections::HashMap;
use tiktoken_rs::CoreBPE;

/// No public encoding reaches this many tokens.
const LIMIT: u32 = 1 << 18;

/// Tokens by their bytes; a token's place is its index in the order of the ranks.
type Places = HashMap<Vec<u8>, u32>;

/// The packed vocabularies and their file names.
pub(crate) fn all() -> Vec<(&'static str, Vec<u8>)> {
    type Load = fn() -> Result<CoreBPE, Box<dyn std::error::Error>>;
    let sources: [(&str, Load); 3] = [
        ("p50k.vocabulary", || Ok(tiktoken_rs::p50k_base()?)),
        ("cl100k.vocabulary", || Ok(tiktoken_rs::cl100k_base()?)),
        ("o200k.vocabulary", || Ok(tiktoken_rs::o200k_base()?)),
    ];
    let pack_one = |(name, load): (&'static str, Load)| (name, pack(&load().expect("a vocabulary loads")));
    sources.into_iter().map(pack_one).collect()
}

/// The number of tokens, the rank between them that is not used (if any), and the tokens by place.
fn pack(source: &CoreBPE) -> Vec<u8> {
    let by_rank = tokens_by_rank(source);
    let mut unused = (0..).zip(&by_rank).filter(|(_, bytes)| bytes.is_none()).map(|(rank, _)| rank);
    let unused_rank: u32 = unused.next().unwrap_or(u32::MAX);
    assert_eq!(unused.next(), None, "there is room for one unused rank");
    let tokens: Vec<_> = by_rank.into_iter().flatten().collect();
    let places: Places = tokens.iter().cloned().zip(0..).collect();
    let mut bits = Bits::default();
    for (place, bytes) in (0..).zip(&tokens) {
        write_token(&mut bits, place, bytes, &places);
    }
    let numbers = [tokens.len() as u32, unused_rank].map(u32::to_le_bytes);
    [numbers.as_flattened(), &bits.finish()].concat()
}

/// The bytes of every ordinary token; `None` where a rank is not used.
fn tokens_by_rank(source: &CoreBPE) -> Vec<Option<Vec<u8>>> {
    let specials = source.special_tokens();
    let is_special = |bytes: &[u8]| std::str::from_utf8(bytes).is_ok_and(|text| specials.contains(text));
    let mut tokens: Vec<_> =
        (0..LIMIT).map(|rank| source.decode_bytes(&[rank]).ok().filter(|bytes| !is_special(bytes))).collect();
    let used = tokens.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
    tokens.truncate(used);
    tokens
}

/// A joined token is two places; any other one the escape (its own place), its length and its bytes.
fn write_token(bits: &mut Bits, place: u32, bytes: &[u8], places: &Places) {
    let width = u32::BITS - place.leading_zeros();
    if let Some((left, right)) = parents(bytes, place, places) {
        bits.push(left, width);
        bits.push(right, width);
        return;
    }
    bits.push(place, width);
    bits.push(u32::try_from(bytes.len()).expect("tokens are short"), 8);
    for &byte in bytes {
        bits.push(byte.into(), 8);
    }
}

/// The two tokens that byte pair encoding joins last to make `bytes`; `None` if it does not make this token.
fn parents(bytes: &[u8], place: u32, places: &Places) -> Option<(u32, u32)> {
    let mut ends: Vec<usize> = (0..=bytes.len()).collect();
    let mut last = None;
    while let Some((_, i)) = (0..ends.len().saturating_sub(2))
        .filter_map(|i| Some((places.get(&bytes[ends[i]..ends[i + 2]])?, i)))
        .min()
    {
        last = Some((places[&bytes[ends[i]..ends[i + 1]]], places[&bytes[ends[i + 1]..ends[i + 2]]]));
        ends.remove(i + 1);
    }
    let made = last.filter(|_| ends.len() == 2);
    assert!(
        made.is_none_or(|(left, right)| left < place && right < place),
        "tokens are made of earlier ones"
    );
    made
}

/// A stream of bits, the lowest bit of a byte first.
#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    pending: u64,
    filled: u32,
}

impl Bits {
    fn push(&mut self, value: u32, width: u32) {
        self.pending |= u64::from(value) << self.filled;
        self.filled += width;
        while self.filled >= 8 {
            self.bytes.push(self.pending as u8);
            self.pending >>= 8;
            self.filled -= 8;
        }
    }

    fn finish(mut self) -> Vec<u8> {
        if self.filled > 0 {
            self.bytes.push(self.pending as u8);
        }
        self.bytes
    }
}
