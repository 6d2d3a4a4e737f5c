//! Detects data that cannot be compressed: encrypted, compressed or random bytes.
//!
//! The engines search such data for as long as any other and find nothing. It is detected by two statistics:
//! all bytes occur about equally often, so that Huffman codes save nothing, and hardly any four bytes occur
//! again, so that matches save nothing. If both hold, compression would save less than a hundredth. The test
//! reads the data once or twice; for most other data it stops after the first kilobyte.

use crate::hash;

/// Smaller inputs are not tested: they have too few bytes to tell.
const SMALLEST: usize = 4 << 10;

/// The length of the prefix that is tested first; it settles the question for most compressible data.
const SAMPLE: usize = 1 << 10;

/// The distance between the positions whose four bytes are remembered.
const STRIDE: usize = 8;

/// 2^ROOM_BITS places, indexed by a hash of the four bytes.
const ROOM_BITS: u32 = 13;

/// How uneven the frequencies of bytes may be: the sum of squared deviations as a share of the squared mean.
/// A Huffman code saves about 0.7 times this many bits per byte.
const UNEVEN: f64 = 0.05;

/// One repeat in so many bytes is allowed; each stands for a match of about [`STRIDE`] bytes.
const ONE_REPEAT_IN: usize = 1024;

/// Whether compressing `input` would save at most about a hundredth.
pub(super) fn is_incompressible(input: &[u8]) -> bool {
    input.len() >= SMALLEST && is_even(&input[..SAMPLE]) && is_even(input) && !has_repeats(input)
}

/// Whether all byte values are about equally frequent, as far as the sample size can tell.
fn is_even(input: &[u8]) -> bool {
    // Four tables, so that increments for equal neighbours do not depend on each other.
    let mut counts = [[0_u32; 256]; 4];
    let (fours, rest) = input.as_chunks::<4>();
    for four in fours {
        four.iter().zip(&mut counts).for_each(|(byte, counts)| counts[usize::from(*byte)] += 1);
    }
    rest.iter().for_each(|byte| counts[0][usize::from(*byte)] += 1);
    let mean = input.len() as f64 / 256.0;
    let squares = (0..256).map(|byte| {
        let count: u32 = counts.iter().map(|counts| counts[byte]).sum();
        (f64::from(count) - mean).powi(2)
    });
    // Uniform noise deviates by chance: by the mean, on average.
    let by_chance = mean * 1.5;
    squares.sum::<f64>() / 256.0 <= by_chance + UNEVEN * mean.powi(2)
}

/// Whether four-byte sequences recur too often.
fn has_repeats(input: &[u8]) -> bool {
    let mut remembered = vec![0_u32; 1 << ROOM_BITS];
    let mut allowed = input.len() / ONE_REPEAT_IN;
    for (at, word) in hash::in_a_row(input).enumerate() {
        let place = hash::hash(word, ROOM_BITS);
        if remembered[place] == word {
            if allowed == 0 {
                return true;
            }
            allowed -= 1;
        } else if at % STRIDE == 0 {
            remembered[place] = word;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::super::ratio_tests::{Random, kinds};
    use super::*;

    fn random(len: usize) -> Vec<u8> {
        let mut random = Random(5);
        (0..len).map(|_| random.below(256) as u8).collect()
    }

    #[test]
    fn random_bytes_are_noise_and_no_other_kind_of_data_is() {
        for len in [4 << 10, 10_000, 100_000, 1 << 20] {
            for (name, data) in kinds(len) {
                assert_eq!(
                    is_incompressible(&data),
                    name == "noise" && data.len() >= SMALLEST,
                    "{name}, {len} bytes"
                );
            }
        }
    }

    #[test]
    fn what_can_be_made_a_fiftieth_smaller_is_no_noise() {
        let noise = random(100_000);
        let twice = [&noise[..16_000], &noise[..16_000]].concat();
        let echoes = noise.chunks(400).flat_map(|chunk| [chunk, &chunk[100..120]].concat()).collect();
        let words: Vec<u8> = {
            let mut random = Random(6);
            (0..10_000).flat_map(|_| noise[random.below(1000) * 7..][..7].to_vec()).collect()
        };
        let seven_bits = noise.iter().map(|byte| byte & 0x7f).collect();
        let with_text = [&noise[..90_000], &b"the whale ".repeat(300)[..]].concat();
        for (name, data) in [
            ("twice the same", twice),
            ("echoes", echoes),
            ("words", words),
            ("seven bits", seven_bits),
            ("some text", with_text),
        ] {
            assert!(!is_incompressible(&data), "{name}");
        }
    }
}
