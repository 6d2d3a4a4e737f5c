//! Detects data whose repeats are three bytes long, such as arrays of counters, offsets or pixels.
//!
//! The usual search of the streaming engine hashes four bytes and so finds repeats of four bytes or more.
//! Adjacent 32-bit numbers that grow slowly share three bytes and differ in the fourth; zlib, which hashes
//! three bytes, compresses such arrays to almost half the size that a four-byte search achieves.
//!
//! Two tests on the first 4 KB: first, whether many bytes equal the byte at some fixed distance of at most 16
//! (a comparison that the compiler vectorizes, and that fails for most text); then a simulation of the match
//! search on the second half of the sample, which counts the bytes in matches of exactly three.

use crate::hash;

/// Smaller samples do not tell. A wrong guess costs time in one call, and size in a stream.
pub(super) const SMALLEST: usize = 512;

/// The length of the sample. Its first half serves only as history for the second.
const SAMPLE: usize = 4 << 10;

/// The greatest distance of a repeat: fields of records recur at such distances, words of a text hardly do.
const NEAR: usize = 16;

/// Short repeats matter if more than one byte in so many belongs to one. In text of any script it is one in
/// forty or fewer.
const ONE_IN: usize = 16;

/// 2^ROOM_BITS places each for the last positions of three and of four bytes, indexed by hash.
const ROOM_BITS: u32 = 12;

/// If short repeats are common, then at some distance more than one byte in so many equals the byte at that
/// distance before it.
const ONE_EQUAL_IN: usize = 5;

/// The number of bytes that are compared at a time, so that a byte can hold the count.
const LANES: usize = 128;

/// Whether repeats of exactly three bytes make up much of the beginning of `input`.
pub(super) fn matter(input: &[u8]) -> bool {
    let sample = &input[..input.len().min(SAMPLE)];
    (1..=NEAR.min(sample.len())).any(|distance| recurs_at(distance, sample)) && has_short_repeats(sample)
}

/// Whether bytes often equal the byte `distance` before them. Fast, and false for most text.
fn recurs_at(distance: usize, sample: &[u8]) -> bool {
    // Counts that fit into a byte, so that the loop is vectorized.
    let pieces = sample.chunks(LANES).zip(sample[distance..].chunks(LANES));
    let in_piece =
        |(before, now): (&[u8], &[u8])| -> u8 { before.iter().zip(now).map(|(a, b)| u8::from(a == b)).sum() };
    let equal: usize = pieces.map(|piece| usize::from(in_piece(piece))).sum();
    equal * ONE_EQUAL_IN > sample.len()
}

fn has_short_repeats(sample: &[u8]) -> bool {
    let half = sample.len() / 2;
    let (mut threes, mut fours) = (LastPlaces::new(), LastPlaces::new());
    let (mut short, mut free_from) = (0, half);
    let mut found = false;
    for (at, word) in hash::in_a_row(sample).enumerate() {
        let longer = fours.replace(word, at);
        let near = threes.replace(word & 0x00ff_ffff, at).filter(|last| at - last <= NEAR);
        if at < free_from {
            continue;
        }
        let begins_alike = |last: usize, len| sample[last..last + len] == sample[at..at + len];
        if longer.is_some_and(|last| begins_alike(last, 4)) {
            // A longer match here is better than three bytes from the position before.
            free_from = at + 4;
            found = false;
        } else if found {
            short += 3;
            free_from = at + 2;
            found = false;
        } else {
            found = near.is_some_and(|last| begins_alike(last, 3));
        }
    }
    short * ONE_IN > half
}

/// The last position of each sequence of bytes, as far as their hashes differ.
struct LastPlaces([u16; 1 << ROOM_BITS]);

impl LastPlaces {
    const fn new() -> Self {
        Self([0; 1 << ROOM_BITS])
    }

    /// Notes that `word` is at `at`; returns the previous position of it or of a word with the same hash.
    fn replace(&mut self, word: u32, at: usize) -> Option<usize> {
        let last = std::mem::replace(&mut self.0[hash::hash(word, ROOM_BITS)], at as u16 + 1);
        usize::from(last).checked_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::super::ratio_tests::kinds;
    use super::*;

    #[test]
    fn arrays_of_numbers_have_them_and_text_has_not() {
        const ARRAYS: [&str; 3] = ["counters", "counters, largest byte first", "offsets"];
        for len in [SMALLEST, 1000, 100_000] {
            for (name, data) in kinds(len).into_iter().filter(|(name, _)| name != "source in UTF-16") {
                assert_eq!(matter(&data), ARRAYS.contains(&&*name), "{name}, {len} bytes");
            }
        }
    }

    #[test]
    fn an_input_of_any_length_can_be_looked_at() {
        for len in 0..40 {
            assert!(!matter(&b"0123456789".repeat(4)[..len]));
        }
    }
}
