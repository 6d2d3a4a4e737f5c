//! How much memory to have ready for an output before it is made.

use super::gzip_header;
use super::inflater::Inflater;
use super::output::Output;
use crate::Task;

/// Inputs up to this size are tried in memory that the thread keeps.
const SMALLER: usize = 8 << 10;

/// The memory they are tried in.
const SMALL_ROOM: usize = 256 << 10;

/// Inputs up to this size are not looked at for how large they get: so many times as large is guessed.
const SMALL: usize = 64 << 10;
const SMALL_RATIO: usize = 8;

/// How much a deflate stream expands at most.
const MOST: usize = 1032;

/// Input of the look at how large the output gets, which the lock is held for.
const SAMPLE: usize = 6 << 10;

/// Whether memory of [`expected_size`] should be lent to [`decompress`] for an input of `len` bytes. Below that, memory
/// that the thread keeps and one copy are faster.
pub const fn worth_lending(len: usize) -> bool {
    len > SMALLER
}

/// About how large the output of `input` gets: from its end (gzip), a look at its beginning, or its length.
///
/// A guess: never more than a stream of this length can make, and harmless when it is wrong.
pub fn expected_size(input: &[u8], wbits: i32) -> usize {
    let most = input.len().saturating_mul(MOST);
    let told = if wbits > 15 { gzip_header::isize(input) } else { None };
    match told {
        Some(told) if (input.len() / 2..=most).contains(&told) => told,
        _ if input.len() <= SMALL => input.len() * SMALL_RATIO,
        _ => sampled_size(input, wbits).unwrap_or(0).min(most),
    }
}

/// The first kilobytes of a stream have less behind them to refer to: prose, code and translations get 0.64 to 0.75 times
/// as large there as on average, and twice as large at most. Too little room means that the work begins anew; too much, that
/// the memory comes fresh from the system again and again.
const MARGIN: f64 = 1.6;

/// Extrapolates from the first bytes.
fn sampled_size(input: &[u8], wbits: i32) -> Option<usize> {
    let mut sample = &input[..input.len().min(SAMPLE)];
    let len = sample.len();
    let mut out = Output::new().limited(len * 16);
    Inflater::new(wbits).ok()?.run(&mut sample, &mut out, &Task::new()).ok()?;
    let sampled = out.len() as f64 / (len - sample.len()).max(1) as f64;
    Some((input.len() as f64 * sampled * MARGIN) as usize + SMALL)
}

/// How much memory of its own an output needs for `input`.
pub(super) fn own_size(input: &[u8], wbits: i32) -> usize {
    if worth_lending(input.len()) {
        expected_size(input, wbits).max(SMALL_ROOM) // a guess: where there is none, the room has to grow from something
    } else {
        SMALL_ROOM.min(input.len().saturating_mul(MOST))
    }
}
