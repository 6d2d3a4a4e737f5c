//! One call from plain to compressed data or back.
//!
//! Buffers that the whole-buffer engine works through within about 20 ms go to it; larger ones, and everything that it
//! refuses, go to a stream, which can be interrupted and knows exactly what is wrong where.

use std::sync::atomic::{AtomicU64, Ordering};

use super::error::{Error, ErrorKind};
use super::frame::{self, Frame, Kind, Sum};
use super::gzip;
use super::level;
use super::noise;
use super::output::Output;
use super::raw::Config;
use super::seam;
use super::short_matches;
use super::stream::{Deflater, Flush, Inflater, Status};
use super::whole::{self, Unable};
use crate::Task;

/// The most output that one uninterruptible call may make: about 20 ms of work.
const WHOLE: usize = 16 << 20;

/// Inputs up to this size are tried in memory that the thread keeps.
const SMALLER: usize = 8 << 10;

/// The memory they are tried in.
const SMALL_ROOM: usize = 256 << 10;

/// Inputs up to this size are not looked at for how large they get: so many times as large is guessed.
const SMALL: usize = 64 << 10;
const SMALL_RATIO: usize = 8;

/// When the room turns out too small, the next one is so many times as large.
const NEXT_ROOM: usize = 4;

/// How much a deflate stream expands at most.
const MOST: usize = 1032;

/// Inputs smaller than this are not tried to be compressed by the whole-buffer engine.
const SMALLEST: usize = 56;

/// Inputs smaller than this are not looked at for being repetitive: no search ends too early in them.
const REPETITIVE: usize = 16 << 10;

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
    expected_size_after(&LAST_RATIO, input, wbits)
}

pub(super) fn expected_size_after(last: &LastRatio, input: &[u8], wbits: i32) -> usize {
    let most = input.len().saturating_mul(MOST);
    let told = if wbits > 15 { gzip::told_size(input) } else { None };
    match told {
        Some(told) if (input.len() / 2..=most).contains(&told) => told,
        _ if input.len() <= SMALL => input.len() * SMALL_RATIO,
        _ => sampled_size(input, wbits, last).unwrap_or(0).min(most),
    }
}

/// How many times as large as their inputs the last larger outputs got, as the bits of a float; 0 before the first.
pub(super) struct LastRatio(AtomicU64);

/// Of all threads: most do the same work, and some live for one call. A guess is all that it is for.
static LAST_RATIO: LastRatio = LastRatio::new();

impl LastRatio {
    /// How far it may be from that of the present input's beginning, as a factor, to be believed of all of it.
    const ALIKE: f64 = 3.0;

    pub(super) const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    fn like(&self, ratio: f64) -> Option<f64> {
        let last = f64::from_bits(self.0.load(Ordering::Relaxed));
        (ratio / Self::ALIKE..=ratio * Self::ALIKE).contains(&last).then_some(last)
    }

    /// Goes up at once, and down slowly: too little room costs more than too much.
    pub(super) fn remember(&self, ratio: f64) {
        let slowly = self.like(ratio).map_or(0.0, |last| last * 0.9 + ratio * 0.1);
        self.0.store(ratio.max(slowly).to_bits(), Ordering::Relaxed);
    }
}

/// Extrapolates, with a quarter on top, from the `last` outputs or, if the input does not begin like them, from its first
/// bytes: a beginning is often unlike the rest, and an input like those before.
fn sampled_size(input: &[u8], wbits: i32, last: &LastRatio) -> Option<usize> {
    let mut sample = &input[..input.len().min(SAMPLE)];
    let len = sample.len();
    let mut out = Output::new().limited(len * 16);
    Inflater::new(wbits).ok()?.run(&mut sample, &mut out, &Task::new()).ok()?;
    let sampled = out.len() as f64 / (len - sample.len()).max(1) as f64;
    let ratio = last.like(sampled).unwrap_or(sampled);
    Some((input.len() as f64 * ratio * 1.25) as usize + SMALL)
}

/// Decompresses the stream at the beginning of `input` and returns how much of it was read.
///
/// `wbits` is as for [`Inflater::new`]. An output that would exceed the limit of `out` is an error. What is in `out`
/// after an error is unspecified.
pub fn decompress(input: &[u8], wbits: i32, out: &mut Output<'_>, task: &Task<'_>) -> Result<usize, Error> {
    if let Some(read) = decompress_whole(input, wbits, out, task)? {
        return Ok(read);
    }
    decompress_stream(&mut Inflater::new(wbits)?, input, out, task).map_err(|failure| {
        let is_told = failure.kind != ErrorKind::Data || !failure.detail.is_empty();
        if is_told { failure } else { told(input, wbits, task).unwrap_or(failure) }
    })
}

/// What is wrong with `input`, in words, which the engine loses where it has much room for its output.
fn told(input: &[u8], wbits: i32, task: &Task<'_>) -> Option<Error> {
    const LITTLE_ROOM: usize = 256;
    let mut stream = Inflater::new(wbits).ok()?;
    let mut rest = input;
    loop {
        match stream.run(&mut rest, &mut Output::new().limited(LITTLE_ROOM), task) {
            Ok(Status::Full) => {}
            ended => return ended.err(),
        }
    }
}

/// Runs `stream`, which has read nothing yet, to its end; returns how much of `input` was read.
pub(super) fn decompress_stream(
    stream: &mut Inflater,
    input: &[u8],
    out: &mut Output<'_>,
    task: &Task<'_>,
) -> Result<usize, Error> {
    let mut rest = input;
    continue_to(stream, &mut rest, true, out, task)?;
    Ok(input.len() - rest.len())
}

/// Runs `stream` over `input`, which has to bring it to its end if it is the `last`.
pub fn continue_to(
    stream: &mut Inflater,
    input: &mut &[u8],
    last: bool,
    out: &mut Output<'_>,
    task: &Task<'_>,
) -> Result<(), Error> {
    let mut status = stream.run(input, out, task)?;
    let mut more = Output::new().limited(1);
    if status == Status::Full {
        status = stream.run(input, &mut more, task)?;
    }
    let fail = |kind| Err(Error::new(kind, stream.total_in()));
    match status {
        _ if !more.is_empty() => fail(ErrorKind::Limit),
        Status::End => Ok(()),
        Status::NeedDict => fail(ErrorKind::NeedDict),
        Status::More | Status::Full if last => fail(ErrorKind::Buf),
        Status::More | Status::Full => Ok(()),
    }
}

/// The whole-buffer engine, where it applies and succeeds; returns how much of `input` was read.
pub(super) fn decompress_whole(
    input: &[u8],
    wbits: i32,
    out: &mut Output<'_>,
    task: &Task<'_>,
) -> Result<Option<usize>, Error> {
    let Some(frame) = Frame::of(input, wbits) else { return Ok(None) };
    task.check()?;
    let mut size = out.lent_left().unwrap_or_else(|| own_size(input, wbits));
    if input.len() > WHOLE || !out.has_lent() && size > WHOLE {
        return Ok(None);
    }
    let (start, body) = (out.len(), &input[frame.header..]);
    let read = loop {
        match whole::inflate(body, out, size.min(WHOLE)) {
            Ok(read) => break read,
            Err(Unable::Room) if size < WHOLE && size < out.left() => {
                task.check()?;
                out.decline_lent();
                size *= NEXT_ROOM;
            }
            Err(_) => return Ok(None),
        }
    };
    let mut sum = Sum::new(frame.kind);
    out.since(start, |piece| sum.add(piece));
    if !body[read..].starts_with(&sum.trailer()) {
        out.truncate(start);
        return Ok(None);
    }
    let all = frame.header + read + frame.trailer();
    if all > SMALL {
        LAST_RATIO.remember((out.len() - start) as f64 / all as f64);
    }
    task.advance(all as u64);
    Ok(Some(all))
}

/// How much memory of its own an output needs for `input`.
fn own_size(input: &[u8], wbits: i32) -> usize {
    if worth_lending(input.len()) {
        expected_size(input, wbits).max(SMALL_ROOM) // a guess: where there is none, the room has to grow from something
    } else {
        SMALL_ROOM.min(input.len().saturating_mul(MOST))
    }
}

/// Compresses `input` to one stream. `wbits` and `level` are as in [`Config`].
pub fn compress(
    input: &[u8],
    level: i32,
    wbits: i32,
    out: &mut Output<'_>,
    task: &Task<'_>,
) -> Result<(), Error> {
    if !compress_at_once(input, level, wbits, out, task)? {
        let mut stream = Deflater::new(Config { level, wbits, ..Config::default() })?;
        stream.run(&mut { input }, out, Flush::Finish, task)?;
    }
    Ok(())
}

/// Compresses `input` with the whole-buffer engine; false when a stream does it better.
pub(super) fn compress_at_once(
    input: &[u8],
    level: i32,
    wbits: i32,
    out: &mut Output<'_>,
    task: &Task<'_>,
) -> Result<bool, Error> {
    if let (Some(kind), Some(engine)) = (Kind::of(wbits), level::whole(level))
        && (input.len() <= engine.most || engine.pieces)
        && (input.len() >= SMALLEST || level == 0)
        && !(engine.streams_repeats && is_repetitive(input, engine.level)?)
    {
        compress_whole(input, level, kind, engine, out, task)?;
        return Ok(true);
    }
    Ok(false)
}

/// Makes a stream of nothing.
pub(super) fn compress_nothing(kind: Kind, level: i32, out: &mut Output<'_>) -> Result<(), Error> {
    /// One block with the fixed code, which has nothing but its end.
    const EMPTY: [u8; 2] = [3, 0];
    out.push(&frame::header(kind, level))?;
    out.push(&EMPTY)?;
    out.push(&Sum::new(kind).trailer())?;
    Ok(())
}

/// The whole-buffer engine, in as many pieces as it takes to stay interruptible.
fn compress_whole(
    input: &[u8],
    level: i32,
    kind: Kind,
    engine: level::Whole,
    out: &mut Output<'_>,
    task: &Task<'_>,
) -> Result<(), Error> {
    out.push(&frame::header(kind, level))?;
    let level = match engine {
        level::Whole { level, arrays, .. } if arrays != level && short_matches::matter(input) => arrays,
        level::Whole { level, small, .. } if small != level && is_small(input) => small,
        level::Whole { level, .. } => level,
    };
    let mut sum = Sum::new(kind);
    let (pieces, last) = input.split_at(input.len().saturating_sub(1) / engine.most * engine.most);
    for piece in pieces.chunks(engine.most) {
        task.check()?;
        let mut packed = Output::new();
        deflate_piece(piece, level, &mut packed)?;
        let mut packed = packed.into_bytes().into_vec();
        seam::reopen(&mut packed, task)?;
        out.push(&packed)?;
        sum.add(piece);
        task.advance(piece.len() as u64);
    }
    task.check()?;
    deflate_piece(last, level, out)?;
    sum.add(last);
    out.push(&sum.trailer())?;
    task.advance(last.len() as u64);
    Ok(())
}

/// Whether `input` is made of few different bytes in much the same order, such as words of a small vocabulary: there
/// the whole-buffer engine's search ends before zlib's does, or takes longer. Text that people write has more different
/// bytes.
fn is_repetitive(input: &[u8], level: i32) -> Result<bool, Error> {
    const FEW: usize = 48;
    if input.len() < REPETITIVE {
        return Ok(false);
    }
    let sample = &input[..REPETITIVE / 2];
    if different_bytes(sample) > FEW {
        return Ok(false);
    }
    let mut packed = Output::new();
    deflate_piece(sample, level, &mut packed)?;
    Ok(packed.len() * 100 <= sample.len() * 34)
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

fn deflate_piece(piece: &[u8], level: i32, out: &mut Output<'_>) -> Result<(), Error> {
    let level = if level > 0 && noise::is_noise(piece) { 0 } else { level };
    whole::deflate(level, piece, out).ok_or(Error::new(ErrorKind::Mem, 0))
}
