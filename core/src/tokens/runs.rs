//! Byte pair encoding of pieces that mostly repeat one byte: rules of dashes, padding, blank lines.
//!
//! Vocabularies have tokens for many lengths of such runs, so left-to-right encoding would try many
//! candidates at each position, and the heap would hold one pair per byte. But equal neighbours are joined
//! alike: if two parts in a run are joined, all pairs along the run are. So a piece is represented as at most
//! [`MOST_STRETCHES`] stretches of equal parts, and the plain algorithm works on stretches: find the lowest
//! rank, then join all pairs of that rank from left to right.
//!
//! A round joins all pairs of one rank in a stretch at once, so a run of n bytes takes about log n rounds
//! instead of n joins. What remains linear in n is the first scan over the bytes, and writing the result.
//! Pieces to which this does not apply are left to the other methods.

use super::{Error, TokenId};
use crate::{Task, memory};

/// Shorter pieces are left to the other methods.
const SHORTEST: usize = 32;
/// Pieces with more stretches are left to the other methods.
const MOST_STRETCHES: usize = 8;
/// Tokens that are written between two checks of the task.
const AT_ONCE: usize = 1 << 18;

/// Adjacent parts of the same length and with the same bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stretch {
    start: usize,
    length: usize,
    count: usize,
}

/// The start and end of a part.
type Part = (usize, usize);

impl Stretch {
    fn first(self) -> Part {
        (self.start, self.start + self.length)
    }

    fn last(self) -> Part {
        let start = self.start + (self.count - 1) * self.length;
        (start, start + self.length)
    }

    fn end(self) -> usize {
        self.start + self.count * self.length
    }

    fn split_first(self) -> Option<Self> {
        (self.count > 1).then(|| Self { start: self.start + self.length, count: self.count - 1, ..self })
    }
}

/// Appends the tokens of `piece` and returns true, or returns false if this method does not apply: the piece
/// has too many stretches, a byte has no token, or a join would have to happen between two others of higher
/// rank. `rank` returns the rank of the token from one byte to another.
pub(super) fn encode(
    piece: &[u8],
    rank: impl Fn(usize, usize) -> Option<TokenId>,
    out: &mut Vec<TokenId>,
    task: &Task<'_>,
) -> Result<bool, Error> {
    let Some(mut stretches) = stretches(piece) else { return Ok(false) };
    while let Some(lowest) = lowest(&stretches, &rank) {
        match join(&stretches, lowest, &rank) {
            Some(joined) => stretches = joined,
            None => return Ok(false),
        }
    }
    let before = out.len();
    for stretch in stretches {
        let (from, to) = stretch.first();
        let Some(token) = rank(from, to) else {
            out.truncate(before);
            return Ok(false);
        };
        repeat(token, stretch.count, out, task)?;
    }
    Ok(true)
}

/// Whether `piece` may be one that [`encode`] applies to.
pub(super) fn may_apply(piece: &[u8]) -> bool {
    let changes = || piece.windows(2).take(2 * SHORTEST).filter(|pair| pair[0] != pair[1]).count();
    piece.len() >= SHORTEST && changes() < MOST_STRETCHES
}

/// Appends a token `count` times.
fn repeat(token: TokenId, count: usize, out: &mut Vec<TokenId>, task: &Task<'_>) -> Result<(), Error> {
    memory::reserve(out, count)?;
    let end = out.len() + count;
    while out.len() < end {
        task.check()?;
        out.resize(end.min(out.len() + AT_ONCE), token);
    }
    Ok(())
}

/// The stretches of equal bytes in `piece`; `None` if it is short or there are too many.
fn stretches(piece: &[u8]) -> Option<Vec<Stretch>> {
    if !may_apply(piece) {
        return None;
    }
    let mut stretches = Vec::with_capacity(MOST_STRETCHES);
    let mut start = 0;
    while start < piece.len() {
        if stretches.len() == MOST_STRETCHES {
            return None;
        }
        let count = equal_bytes(&piece[start..]);
        stretches.push(Stretch { start, length: 1, count });
        start += count;
    }
    Some(stretches)
}

/// The number of equal bytes at the beginning. Fast for a long run, which may be as long as the text.
fn equal_bytes(bytes: &[u8]) -> usize {
    const CHUNK: usize = 4096;
    let is_other = |byte: &u8| *byte != bytes[0];
    if let Some(few) = bytes.iter().take(SHORTEST).position(is_other) {
        return few;
    }
    let differs = |chunk: &[u8]| chunk.iter().fold(0, |bits, byte| bits | (byte ^ bytes[0])) != 0;
    let same = bytes.chunks(CHUNK).position(differs).map_or(bytes.len(), |chunk| chunk * CHUNK);
    same + bytes[same..].iter().position(is_other).unwrap_or(bytes.len() - same)
}

/// The lowest rank of a token that two neighbours form.
fn lowest(stretches: &[Stretch], rank: impl Fn(usize, usize) -> Option<TokenId>) -> Option<TokenId> {
    let within = stretches.iter().filter(|stretch| stretch.count > 1);
    let within = within.filter_map(|stretch| rank(stretch.start, stretch.start + 2 * stretch.length));
    let between = stretches.windows(2).filter_map(|pair| rank(pair[0].last().0, pair[1].first().1));
    within.chain(between).min()
}

/// Joins all neighbours that form the token of rank `lowest`, from left to right. `None` if a joined part
/// forms a token of lower rank with a neighbour, because that join would have to come next.
fn join(
    stretches: &[Stretch],
    lowest: TokenId,
    rank: impl Fn(usize, usize) -> Option<TokenId>,
) -> Option<Vec<Stretch>> {
    let is_lower = |from, to| rank(from, to).is_some_and(|rank| rank < lowest);
    let mut joined: Vec<Stretch> = Vec::with_capacity(stretches.len() + 2);
    let mut rest = stretches.iter().copied();
    let mut next = rest.next();
    while let Some(stretch) = next {
        let after = stretch.split_first().or_else(|| rest.clone().next());
        let makes = after.is_some_and(|after| rank(stretch.start, after.first().1) == Some(lowest));
        let within = stretch.count > 1;
        let (made, left) = match after {
            // All pairs of the stretch at once.
            Some(_) if makes && within => {
                let made = Stretch { length: 2 * stretch.length, count: stretch.count / 2, ..stretch };
                let left = Stretch { start: made.end(), count: 1, ..stretch };
                (made, if stretch.count % 2 == 1 { Some(left) } else { rest.next() })
            }
            Some(after) if makes => {
                rest.next();
                let length = stretch.length + after.length;
                (Stretch { length, count: 1, ..stretch }, after.split_first().or_else(|| rest.next()))
            }
            _ => {
                // All parts but the last, which may be joined with the next stretch.
                if within {
                    joined.push(Stretch { count: stretch.count - 1, ..stretch });
                    let start = stretch.last().0;
                    next = Some(Stretch { start, count: 1, ..stretch });
                } else {
                    joined.push(stretch);
                    next = rest.next();
                }
                continue;
            }
        };
        let before = joined.last().map(|before| before.last().0);
        let follower = left.map(|left| left.first().1);
        let among = [
            before.map(|before| (before, made.first().1)),
            follower.map(|follower| (made.last().0, follower)),
            // Within the stretch: a joined part beside one that is still unjoined, and beside the next joined
            // one.
            (made.count > 1).then(|| (made.start, made.first().1 + stretch.length)),
            (made.count > 1).then(|| (made.start, made.first().1 + made.length)),
        ];
        if among.into_iter().flatten().any(|(from, to)| is_lower(from, to)) {
            return None;
        }
        joined.push(made);
        next = left;
    }
    Some(joined)
}

#[cfg(test)]
mod tests {
    use super::super::merge::merge;
    use super::*;
    use crate::Task;
    use proptest::prelude::*;
    use std::collections::HashMap;

    type Ranks = HashMap<Vec<u8>, TokenId>;

    fn by_the_book(piece: &[u8], ranks: &Ranks) -> Vec<TokenId> {
        let rank = |from: usize, to: usize| ranks.get(&piece[from..to]).copied();
        let parts = merge(piece.len(), rank, &Task::new()).unwrap();
        parts.spans().map(|(from, to)| ranks[&piece[from..to]]).collect()
    }

    /// Bytes, and words of them in any order of ranks.
    fn ranks() -> impl Strategy<Value = Ranks> {
        let word = prop_oneof![
            3 => (2usize..40).prop_map(|length| "a".repeat(length)),
            1 => "[ab]{2,5}",
            1 => "b?a{1,9}b?",
        ];
        proptest::collection::vec(word, 0..40).prop_map(|words| {
            let all = ["a", "b", "c"].into_iter().map(str::to_owned).chain(words);
            let mut ranks = Ranks::new();
            for word in all {
                let next = ranks.len() as TokenId;
                ranks.entry(word.into_bytes()).or_insert(next);
            }
            ranks
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn runs_are_encoded_as_by_the_book(ranks in ranks(), before in "[abc]{0,3}", length in prop_oneof![25usize..300, 4000usize..9000], after in "[abc]{0,3}") {
            let piece = [before, "a".repeat(length), after].concat().into_bytes();
            let mut tokens = vec![7];
            let rank = |from: usize, to: usize| ranks.get(&piece[from..to]).copied();
            if encode(&piece, rank, &mut tokens, &Task::new()).unwrap() {
                prop_assert_eq!(&tokens[1..], by_the_book(&piece, &ranks));
            } else {
                prop_assert_eq!(tokens, [7]);
            }
        }
    }

    #[test]
    fn powers_of_two_are_joined_along_a_run() {
        let words = ["a", "aa", "aaaa", "aaaaaaaa", "b", "ab"];
        let ranks: Ranks =
            words.iter().zip(0..).map(|(word, rank)| (word.as_bytes().to_vec(), rank)).collect();
        for length in SHORTEST..100 {
            let piece = ["a".repeat(length).as_str(), "b"].concat().into_bytes();
            let mut tokens = Vec::new();
            assert!(
                encode(&piece, |from, to| ranks.get(&piece[from..to]).copied(), &mut tokens, &Task::new())
                    .unwrap()
            );
            assert_eq!(tokens, by_the_book(&piece, &ranks));
        }
    }

    #[test]
    fn what_is_no_run_is_left_alone() {
        let rank = |from: usize, to: usize| (to - from == 1).then_some(0);
        assert!(!encode(b"aaaaaaaa", rank, &mut Vec::new(), &Task::new()).unwrap());
        assert!(!encode(&b"ab".repeat(100), rank, &mut Vec::new(), &Task::new()).unwrap());
        assert!(!encode(&[b'a'; 100], |_, _| None, &mut Vec::new(), &Task::new()).unwrap());
        assert!(encode(&[b'a'; 100], rank, &mut Vec::new(), &Task::new()).unwrap());
    }
}
