//! Guesses the size of a decompressed output, so that its memory is allocated once.
//!
//! gzip states the size at its end. Small inputs are taken to expand by a constant factor. Of others, the
//! first 6 KB are decompressed and the ratio is extrapolated, with a margin. No guess exceeds what deflate
//! can expand to, 1032 times, so a hostile size field allocates no more than an honest stream of that length
//! could need.

use super::gzip_header;
use super::inflater::Inflater;
use crate::Task;
use crate::output::Output;

/// Inputs of up to this size are decompressed in memory that the thread keeps.
const SMALLER: usize = 8 << 10;

/// The size of that memory.
const KEPT: usize = 256 << 10;

/// For inputs of up to this size, the guess is a constant factor.
const SMALL: usize = 64 << 10;
const SMALL_RATIO: usize = 8;

/// The greatest expansion of a deflate stream.
const MOST: usize = 1032;

/// The length of the sample, which is decompressed with the interpreter lock held.
const SAMPLE: usize = 6 << 10;

/// Whether the caller should lend memory of [`expected_size`] to [`decompress`](super::decompress()) for an
/// input of `len` bytes. Below that size, memory that the thread keeps and one copy are faster.
pub const fn worth_lending(len: usize) -> bool {
    len > SMALLER
}

/// The approximate size of the decompressed `input`: from its end (gzip), from a sample of its beginning, or
/// from its length.
///
/// Never more than a stream of this length can expand to. A wrong guess costs time only.
pub fn expected_size(input: &[u8], wbits: i32) -> usize {
    let most = input.len().saturating_mul(MOST);
    let stated = if wbits > 15 { gzip_header::isize(input) } else { None };
    match stated {
        Some(stated) if (input.len() / 2..=most).contains(&stated) => stated,
        _ if input.len() <= SMALL => input.len() * SMALL_RATIO,
        _ => sampled_size(input, wbits).unwrap_or(0).min(most),
    }
}

/// The first kilobytes of a stream have less history to refer to: prose, code and translations expand there
/// by 0.64 to 0.75 times the average, and by twice the average at most. With too little memory the work
/// starts over; with too much, the memory comes fresh from the system again and again.
const MARGIN: f64 = 1.6;

/// Extrapolates from the beginning of the input.
fn sampled_size(input: &[u8], wbits: i32) -> Option<usize> {
    let mut sample = &input[..input.len().min(SAMPLE)];
    let len = sample.len();
    let mut out = Output::new().limited(len * 16);
    Inflater::new(wbits).ok()?.run(&mut sample, &mut out, &Task::new()).ok()?;
    let sampled = out.len() as f64 / (len - sample.len()).max(1) as f64;
    Some((input.len() as f64 * sampled * MARGIN) as usize + SMALL)
}

/// The size of the memory that an output reserves itself for `input`.
pub(super) fn own_size(input: &[u8], wbits: i32) -> usize {
    if worth_lending(input.len()) {
        expected_size(input, wbits).max(KEPT) // the guess may be 0
    } else {
        KEPT.min(input.len().saturating_mul(MOST))
    }
}
