//! Telling data that cannot be made smaller (encrypted, compressed or random bytes) from other data.
//!
//! An engine searches noise as long as anything else, for nothing. Noise is what has all bytes about equally often and
//! no four of them in the same order again: neither codes nor repeats would save a hundredth then.

use crate::hash;

/// Inputs smaller than this are not looked at: too few bytes to tell.
const SMALLEST: usize = 4 << 10;

/// The beginning that is looked at first, which tells for most data that is not noise.
const SAMPLE: usize = 1 << 10;

/// Every so many bytes, four are remembered.
const STRIDE: usize = 8;

/// Room for what is remembered, by its hash; an eighth of what is looked at as far as repeats reach back.
const ROOM_BITS: u32 = 13;

/// How far the frequencies of bytes may be from even: the sum of squared deviations as a share of the square of the mean.
/// A code for bytes saves about 0.7 times this many bits a byte.
const UNEVEN: f64 = 0.05;

/// Of so many bytes, one may begin the like of what was remembered; each stands for a repeat of about [`STRIDE`] bytes.
const ONE_REPEAT_IN: usize = 1024;

/// Whether compressing `input` would save no more than about a hundredth.
pub(super) fn is_incompressible(input: &[u8]) -> bool {
    input.len() >= SMALLEST && is_even(&input[..SAMPLE]) && is_even(input) && !has_repeats(input)
}

/// Whether all bytes are about equally frequent, as far as so many of them can tell.
fn is_even(input: &[u8]) -> bool {
    // Four tables, so that equal neighbours do not wait for each other.
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
    // Even noise deviates by chance: by the mean, on average.
    let by_chance = mean * 1.5;
    squares.sum::<f64>() / 256.0 <= by_chance + UNEVEN * mean.powi(2)
}

/// Whether four bytes come again in the same order too often.
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
