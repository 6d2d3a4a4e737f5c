//! Which engine does what, at which of its levels: every choice is made here, by looking at the input alone.
//!
//! Chosen by measurement, see [`level`]: libdeflate is faster wherever it finds as much as zlib does, and cannot be
//! interrupted or continued; zlib-rs is the engine of streams.

use super::incompressible::is_incompressible;
use super::level::{self, Streaming, Whole};
use super::libdeflate;
use super::output::Output;
use super::short_matches;

/// How an input of known size is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Plan {
    /// By libdeflate at this level of its own, in pieces of at most so many bytes.
    Whole { level: i32, piece: usize },
    /// By zlib-rs, as a stream.
    Stream,
}

/// How to compress `input` as zlib's `level` asks.
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

/// libdeflate's level for one piece of an input that is compressed at `level`.
pub(super) fn piece_level(piece: &[u8], level: i32) -> i32 {
    if level > 0 && is_incompressible(piece) { 0 } else { level }
}

/// What a stream looks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Search {
    /// Repeats of four bytes and more.
    Usual,
    /// Repeats of three bytes, too.
    Short,
}

/// What a stream that `input` comes next in looks for; `None` when there is too little to tell.
pub(super) fn search(input: &[u8]) -> Option<Search> {
    let short = || if short_matches::matter(input) { Search::Short } else { Search::Usual };
    (input.len() >= short_matches::SMALLEST).then(short)
}

/// zlib-rs's settings for zlib's `level`; `None` when it is out of range.
pub(super) fn settings(level: i32, search: Search) -> Option<Streaming> {
    level::streaming(level, search == Search::Short)
}

/// Whether libdeflate is to decompress an input, into as much room as its caller `lent` or, without that, into `size` bytes:
/// one call must not take longer than about 20 ms.
pub(super) fn inflates_whole(input: &[u8], size: usize, lent: bool) -> bool {
    input.len() <= WHOLE && (lent || size <= WHOLE)
}

/// The most output that one uninterruptible call may make: about 20 ms of work.
pub(super) const WHOLE: usize = 16 << 20;

/// Inputs smaller than this are not tried to be compressed by the whole-buffer engine.
const SMALLEST: usize = 56;

/// Inputs smaller than this are not looked at for being repetitive: no search ends too early in them.
const REPETITIVE: usize = 16 << 10;

/// Whether `input` is made of few different bytes in much the same order, such as words of a small vocabulary: there
/// the whole-buffer engine's search ends before zlib's does, or takes longer. Text that people write has more different
/// bytes.
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
    // Without memory for the sample, a stream has none either, and says so.
    made.is_none() || packed.len() * 100 <= sample.len() * 34
}

/// Whether `input` has so little to search that the engine's level for small inputs finds about as much. What is made of few
/// different bytes soon has more; in the smallest inputs all levels find the same.
fn is_small(input: &[u8]) -> bool {
    const FEW: usize = 32;
    /// As many as show what there is.
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
