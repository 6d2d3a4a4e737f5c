//! The choice of the engine and of its level: all of it is made here, from the input alone.
//!
//! | input | engine |
//! |---|---|
//! | a whole buffer up to `Whole::most` bytes, or at levels 4 to 7 of any size (in pieces) | libdeflate |
//! | the same, smaller than 56 bytes, or repetitive at levels 6 and 7 | zlib-rs |
//! | a stream | zlib-rs, except for streams of at most 16,000 bytes (`small.rs`) |
//! | decompression of up to 16 MB in and out | libdeflate |
//! | other decompression, and all input that libdeflate rejects | zlib-rs |
//!
//! libdeflate is faster wherever it finds as much as zlib does, but a call cannot be interrupted, so a call
//! is bounded to about 20 ms of work. The levels come from [`level`], where the measurements are described.
//! Data that cannot be compressed is stored (`incompressible.rs`), and arrays of numbers get a search for
//! repeats of three bytes (`short_matches.rs`). Looking at the input costs little: samples of at most 8 KB,
//! except for the test whether it can be compressed.

use super::incompressible::is_incompressible;
use super::level::{self, Streaming, Whole};
use super::libdeflate;
use super::short_matches;
use crate::output::Output;

/// How a whole buffer is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Plan {
    /// By libdeflate at this level of its own, in pieces of at most `piece` bytes.
    Whole { level: i32, piece: usize },
    /// By zlib-rs, as a stream.
    Stream,
}

/// How to compress `input` at zlib's `level`.
pub(super) fn plan(input: &[u8], level: i32) -> Plan {
    match level::whole(level) {
        Some(engine)
            if (input.len() <= engine.most || engine.pieces)
                && (input.len() >= SMALLEST || level == 0)
                && !(engine.streams_repeats && is_repetitive(input, engine.level)) =>
        {
            Plan::Whole { level: level_for(input, engine), piece: engine.most }
        }
        _ => Plan::Stream,
    }
}

/// libdeflate's level for `input`.
fn level_for(input: &[u8], engine: Whole) -> i32 {
    match engine {
        Whole { level, arrays, .. } if arrays != level && short_matches::matter(input) => arrays,
        Whole { level, small, .. } if small != level && is_small(input) => small,
        Whole { level, .. } => level,
    }
}

/// libdeflate's level for one piece of an input that is compressed at libdeflate's `level`: 0 for data that
/// cannot be compressed.
pub(super) fn piece_level(piece: &[u8], level: i32) -> i32 {
    if level > 0 && is_incompressible(piece) { 0 } else { level }
}

/// The repeats that a stream searches for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Search {
    /// Repeats of four bytes and more.
    Usual,
    /// Repeats of three bytes, too.
    Short,
}

/// The search for a stream whose next input is `input`; `None` if there is too little to tell.
pub(super) fn search(input: &[u8]) -> Option<Search> {
    let short = || if short_matches::matter(input) { Search::Short } else { Search::Usual };
    (input.len() >= short_matches::SMALLEST).then(short)
}

/// zlib-rs's settings for zlib's `level`; `None` when it is out of range.
pub(super) fn settings(level: i32, search: Search) -> Option<Streaming> {
    level::streaming(level, search == Search::Short)
}

/// Whether libdeflate decompresses `input`, into memory that the caller `lent` or into `size` bytes of its
/// own: a call must not take longer than about 20 ms.
pub(super) fn inflates_whole(input: &[u8], size: usize, lent: bool) -> bool {
    input.len() <= WHOLE && (lent || size <= WHOLE)
}

/// The most output of one call that cannot be interrupted: about 20 ms of work.
pub(super) const WHOLE: usize = 16 << 20;

/// Smaller inputs are left to the streaming engine.
const SMALLEST: usize = 56;

/// Smaller inputs are not tested for repetition: no search gives up too early in them.
const REPETITIVE: usize = 16 << 10;

/// Whether `input` repeats few different bytes in much the same order, such as words of a small vocabulary.
/// There libdeflate's search gives up earlier than zlib's, or takes longer. Text written by people has more
/// different bytes.
fn is_repetitive(input: &[u8], level: i32) -> bool {
    const FEW: usize = 48;
    if input.len() < REPETITIVE {
        return false;
    }
    let sample = &input[..REPETITIVE / 2];
    if different_bytes(sample) > FEW {
        return false;
    }
    let mut packed = Output::new();
    let made = libdeflate::deflate(piece_level(sample, level), sample, &mut packed);
    // If there is no memory for the sample, the stream will find and report that.
    made.is_none() || packed.len() * 100 <= sample.len() * 34
}

/// Whether `input` is so small that the level for small inputs finds about as much. Data of few different
/// bytes soon has more to find; in the smallest inputs all levels find the same.
fn is_small(input: &[u8]) -> bool {
    const FEW: usize = 32;
    /// Enough bytes to tell.
    const SAMPLE: usize = 1 << 10;
    match input.len() {
        len if len < 2 * SAMPLE => true,
        len if len < REPETITIVE => different_bytes(&input[..SAMPLE]) > FEW,
        _ => false,
    }
}

fn different_bytes(sample: &[u8]) -> usize {
    let mut seen = [false; 256];
    for &byte in sample {
        seen[usize::from(byte)] = true;
    }
    seen.iter().filter(|&&seen| seen).count()
}
