//! With any vocabulary tokens are found, and pieces are merged as by a simple implementation.

use std::collections::HashMap;

use offlock_core::Task;
use offlock_core::tokens::{Encoding, ErrorKind, Specials, TokenId};

/// The oracle is too slow for longer pieces.
const LONGEST: usize = 200;

/// Runs the target on one input: a byte for the kind of vocabulary, tokens up to two zero bytes, a text.
pub fn run(bytes: &[u8]) {
    let [kind, rest @ ..] = bytes else { return };
    let end = rest.windows(2).position(|pair| pair == [0, 0]).unwrap_or(rest.len() / 2);
    let (described, text) = (&rest[..end], &rest[rest.len().min(end + 2)..]);
    let text = &text[..text.len().min(LONGEST)];
    let ranks = if kind % 2 == 0 { joins(described) } else { words(described, kind % 4 == 1) };
    let pattern = [r"\w+|\W+", r"(?s:.)+?(?=b|$)|b", r"\p{L}+|\s+(?!\S)|."][usize::from(kind / 4 % 3)];
    let listed: Vec<_> = ranks.iter().map(|(token, rank)| (token.clone(), *rank)).collect();
    let specials = [("<s>".to_owned(), 1 << 20), ("<s".to_owned(), 1 << 21)];
    match Encoding::new("fuzzed", pattern, listed, specials, &Task::new()) {
        Ok(encoding) => compare(&encoding, &ranks, text),
        Err(error) => {
            assert!(ranks.is_empty() || matches!(error.kind, ErrorKind::BadVocabulary { .. }), "{error}")
        }
    }
}

type Ranks = HashMap<Vec<u8>, TokenId>;

/// Makes a well-formed vocabulary: all bytes, and for every two bytes of the description the concatenation of
/// two earlier tokens.
fn joins(described: &[u8]) -> Ranks {
    let mut tokens: Vec<Vec<u8>> = (0..=255).map(|byte: u8| vec![byte]).collect();
    for &[left, right] in described.as_chunks().0 {
        // Small numbers refer to the latest tokens, so that long tokens arise soon.
        let part =
            |number: u8| tokens[(tokens.len() - 1 + 98).wrapping_sub(number.into()) % tokens.len()].clone();
        let token = [part(left), part(right)].concat();
        if token.len() <= 40 && !tokens.contains(&token) {
            tokens.push(token);
        }
    }
    tokens.into_iter().zip(0..).collect()
}

/// Makes any vocabulary: the words between zero bytes, with gaps between the ranks.
fn words(described: &[u8], with_bytes: bool) -> Ranks {
    let all = (0..=255).map(|byte: u8| vec![byte]).filter(|_| with_bytes);
    let words = described.split(|&byte| byte == 0).filter(|word| !word.is_empty()).map(<[u8]>::to_vec);
    let mut ranks = Ranks::new();
    for (token, rank) in words.chain(all).zip((0..).step_by(3)) {
        ranks.entry(token).or_insert(rank);
    }
    ranks
}

fn compare(encoding: &Encoding, ranks: &Ranks, text: &[u8]) {
    let task = Task::new();
    for (token, rank) in ranks {
        assert_eq!(encoding.encode_single_token(token), Some(*rank));
        assert_eq!(encoding.decode_single_token_bytes(*rank), Some(&token[..]));
    }
    let ours = encoding.encode_single_piece(text, &task);
    match merge_naively(text, ranks) {
        Some(ids) => {
            assert_eq!(ours.as_ref(), Ok(&ids));
            assert_eq!(encoding.decode_bytes(&ids, &task).as_deref(), Ok(text));
        }
        None => assert!(matches!(ours.unwrap_err().kind, ErrorKind::UnknownByte { .. })),
    }
    let text = &*String::from_utf8_lossy(text);
    for allowed in [Specials::None, Specials::All] {
        let ids = encoding.encode(text, allowed, &task);
        assert_eq!(encoding.count(text, allowed, &task), ids.as_ref().map(Vec::len).map_err(Clone::clone));
        let kept = encoding.truncate(text, 3, allowed, &task);
        if let (Ok(ids), Ok(kept)) = (ids, kept) {
            assert!(
                kept.tokens.len() <= 3 && ids.starts_with(&kept.tokens) && text.is_char_boundary(kept.bytes)
            );
        }
    }
}

/// Merges the adjacent pair with the lowest rank until no pair is a token.
fn merge_naively(piece: &[u8], ranks: &Ranks) -> Option<Vec<TokenId>> {
    if let Some(&rank) = ranks.get(piece) {
        return Some(vec![rank]);
    }
    let mut ends: Vec<usize> = (0..=piece.len()).collect();
    let rank = |ends: &[usize], at: usize| ranks.get(&piece[ends[at]..ends[at + 2]]).copied();
    while let Some((_, at)) =
        (0..ends.len().saturating_sub(2)).filter_map(|at| Some((rank(&ends, at)?, at))).min()
    {
        ends.remove(at + 1);
    }
    ends.windows(2).map(|pair| ranks.get(&piece[pair[0]..pair[1]]).copied()).collect()
}
