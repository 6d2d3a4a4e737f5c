//! Byte pair encoding of short pieces: the plain way, on a few arrays.
//!
//! What is looked up here are mostly tokens of low rank, which stay near the processor because every text needs
//! them; that outweighs the squared time as long as a piece is short.

use super::table::Table;

/// The longest piece, in bytes.
pub(super) const MOST: usize = 16;

/// No token.
const NONE: u32 = u32::MAX;

/// The parts of a piece.
pub(super) struct Short {
    count: usize,
    /// Where each part starts, and the end of the last one.
    starts: [u8; MOST + 1],
    /// The tokens of the parts.
    tokens: [u32; MOST],
    /// The token that a part and the next one make together.
    joined: [u32; MOST],
}

impl Short {
    /// The tokens of `text[at..at + length]`, which are all bytes that are tokens, at least one and at most [`MOST`].
    pub(super) fn encode(table: &Table, text: &[u8], at: usize, length: usize) -> Self {
        let mut parts =
            Self { count: length, starts: [0; MOST + 1], tokens: [NONE; MOST], joined: [NONE; MOST] };
        for index in 0..length {
            parts.starts[index + 1] = index as u8 + 1;
            parts.tokens[index] = table.get(text, at + index, 1).unwrap_or(NONE);
        }
        for index in 0..length - 1 {
            parts.joined[index] = table.get(text, at + index, 2).unwrap_or(NONE);
        }
        loop {
            let joined = &parts.joined[..parts.count];
            let least = joined.iter().copied().fold(NONE, u32::min);
            if least == NONE {
                return parts;
            }
            let index = joined.iter().position(|&token| token == least).unwrap_or(0);
            parts.join(table, text, at, index);
        }
    }

    fn join(&mut self, table: &Table, text: &[u8], at: usize, index: usize) {
        self.tokens[index] = self.joined[index];
        self.tokens.copy_within(index + 2..self.count, index + 1);
        self.joined.copy_within(index + 1..self.count, index);
        self.starts.copy_within(index + 2..=self.count, index + 1);
        self.count -= 1;
        self.look_up(table, text, at, index);
        if let Some(before) = index.checked_sub(1) {
            self.look_up(table, text, at, before);
        }
    }

    fn look_up(&mut self, table: &Table, text: &[u8], at: usize, index: usize) {
        self.joined[index] = NONE;
        if index + 2 <= self.count {
            let (start, end) = (usize::from(self.starts[index]), usize::from(self.starts[index + 2]));
            self.joined[index] = table.get(text, at + start, end - start).unwrap_or(NONE);
        }
    }

    /// The tokens, from left to right.
    pub(super) fn tokens(&self) -> &[u32] {
        &self.tokens[..self.count]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Task;
    use crate::tokens::merge::merge;
    use crate::tokens::vocabulary::Vocabulary;
    use proptest::prelude::*;

    /// All bytes, and some of the tokens that a few letters can make, in an order that the numbers give.
    fn vocabulary(order: &[(Vec<u8>, u32)]) -> Vocabulary {
        let bytes = (0..=255).map(|byte: u8| vec![byte]);
        let mut more = order.to_vec();
        more.sort_by_key(|&(_, rank)| rank);
        let mut tokens: Vec<Vec<u8>> = bytes.chain(more.into_iter().map(|(token, _)| token)).collect();
        let mut seen = std::collections::HashSet::new();
        tokens.retain(|token| seen.insert(token.clone()));
        Vocabulary::new(tokens.into_iter().zip(0..)).unwrap()
    }

    proptest! {
        #[test]
        fn short_pieces_are_joined_by_the_book(
            order in prop::collection::vec((prop::collection::vec(b'a'..b'd', 2..6), any::<u32>()), 0..40),
            piece in prop::collection::vec(b'a'..b'e', 1..=MOST),
        ) {
            let table = vocabulary(&order).table;
            let parts = merge(piece.len(), |from, to| table.get(&piece, from, to - from), &Task::new()).unwrap();
            let expected: Vec<_> =
                parts.spans().map(|(from, to)| table.get(&piece, from, to - from).unwrap()).collect();
            let short = Short::encode(&table, &piece, 0, piece.len());
            prop_assert_eq!(short.tokens(), &expected);
        }
    }
}
