//! Telling data whose repeats are three bytes long, such as arrays of counters, offsets or pixels, from other data.
//!
//! The streaming engine's usual search finds repeats of four bytes or more. Numbers of four bytes that grow slowly have
//! the same three bytes in common with their neighbours again and again, and no fourth: what zlib makes of them is
//! almost half as large as what such a search does.

use crate::hash;

/// Of fewer bytes it cannot be told with certainty. A wrong guess costs time in one call, and size in a stream.
pub(super) const SMALLEST: usize = 512;

/// The beginning that is looked at, its first half only for what the second may repeat.
const SAMPLE: usize = 4 << 10;

/// How far back, in bytes, a repeat may begin: fields of records recur at such distances, words of a text hardly do.
const NEAR: usize = 16;

/// Of so many bytes, one may belong to such a repeat. In text in any script it is one of forty or fewer.
const ONE_IN: usize = 16;

/// Room for the last places of three and of four bytes, by their hash.
const ROOM_BITS: u32 = 12;

/// Of so many bytes, one at least equals the byte so far before it, at one distance, wherever such repeats are common.
const ONE_EQUAL_IN: usize = 5;

/// Bytes that are compared with others at a time, as many as a byte can count.
const LANES: usize = 128;

/// Whether repeats of exactly three bytes make up much of the beginning of `input`.
pub(super) fn matter(input: &[u8]) -> bool {
    let sample = &input[..input.len().min(SAMPLE)];
    (1..=NEAR.min(sample.len())).any(|distance| recurs_at(distance, sample)) && has_short_repeats(sample)
}

/// Whether bytes often equal those so far before them. Quick, and in most text not so.
fn recurs_at(distance: usize, sample: &[u8]) -> bool {
    // Sums that fit a byte, so that many bytes are compared at a time.
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
            // Better than three bytes from the place before.
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

/// Where each of some bytes was last seen, as far as their hashes differ.
struct LastPlaces([u16; 1 << ROOM_BITS]);

impl LastPlaces {
    const fn new() -> Self {
        Self([0; 1 << ROOM_BITS])
    }

    /// Notes that `word` stands at `at`; returns where it stood before, or another of its hash.
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
