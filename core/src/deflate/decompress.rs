//! Decompression of a whole buffer in one call.
//!
//! [`policy`] lets libdeflate decompress buffers that take it at most about 20 ms. All others, and all input
//! that libdeflate rejects, go to a stream of zlib-rs, which can be interrupted and reports what is wrong at
//! which byte.
//!
//! libdeflate needs memory for all of its output in advance. If the guess of the size was too small, it
//! starts over with 4 times as much, so the repeated work is bounded by a constant factor.

use super::error::{Error, ErrorKind};
use super::inflater::Inflater;
use super::libdeflate::{self, Unable};
use super::output_size::own_size;
use super::policy;
use super::stream::Status;
use super::wrapper::{Sum, Wrapper};
use crate::Task;
use crate::output::Output;

/// The factor by which the memory grows if it was too small.
const NEXT_SIZE: usize = 4;

/// Decompresses the stream at the beginning of `input` and returns how many bytes of it were read.
///
/// `wbits` is as in [`Inflater::new`]. After an error, the content of `out` is unspecified.
///
/// # Errors
///
/// [`ErrorKind::Stream`] if `wbits` is out of range, `Data` for invalid data, `Buf` if the data is truncated,
/// `NeedDict`, `Limit` if the output would exceed the limit of `out`, `Mem` and `Stopped`.
pub fn decompress(input: &[u8], wbits: i32, out: &mut Output<'_>, task: &Task<'_>) -> Result<usize, Error> {
    if let Some(read) = decompress_whole(input, wbits, out, task)? {
        return Ok(read);
    }
    decompress_stream(&mut Inflater::new(wbits)?, input, out, task).map_err(|failure| {
        let has_detail = failure.kind != ErrorKind::Data || !failure.detail.is_empty();
        if has_detail { failure } else { detailed(input, wbits, task).unwrap_or(failure) }
    })
}

/// The engine's message for an error in `input`, which the engine loses if it has much memory for its output.
fn detailed(input: &[u8], wbits: i32, task: &Task<'_>) -> Option<Error> {
    const LITTLE: usize = 256;
    let mut stream = Inflater::new(wbits).ok()?;
    let mut rest = input;
    loop {
        match stream.run(&mut rest, &mut Output::new().limited(LITTLE), task) {
            Ok(Status::Full) => {}
            ended => return ended.err(),
        }
    }
}

/// Runs a new `stream` to its end and returns how many bytes of `input` were read.
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

/// Runs `stream` over `input`. If the input is the `last`, the stream must reach its end.
///
/// # Errors
///
/// As [`decompress`]; `Buf` only if the input is the last.
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

/// Decompresses with libdeflate and returns how many bytes of `input` were read. `None`, with `out` as
/// before, if libdeflate is not to be used or fails.
pub(super) fn decompress_whole(
    input: &[u8],
    wbits: i32,
    out: &mut Output<'_>,
    task: &Task<'_>,
) -> Result<Option<usize>, Error> {
    let Some(wrapper) = Wrapper::of(input, wbits) else { return Ok(None) };
    task.check()?;
    let mut size = out.lent_left().unwrap_or_else(|| own_size(input, wbits));
    if !policy::inflates_whole(input, size, out.has_lent()) {
        return Ok(None);
    }
    let (start, body) = (out.len(), &input[wrapper.header..]);
    let read = loop {
        match libdeflate::inflate(body, out, size.min(policy::WHOLE)) {
            Ok(read) => break read,
            Err(Unable::TooSmall) if size < policy::WHOLE && size < out.left() => {
                task.check()?;
                out.decline_lent();
                size *= NEXT_SIZE;
            }
            Err(_) => return Ok(None),
        }
    };
    let mut sum = Sum::new(wrapper.format);
    out.since(start, |piece| sum.add(piece));
    if !body[read..].starts_with(&sum.trailer()) {
        out.truncate(start);
        return Ok(None);
    }
    let all = wrapper.header + read + wrapper.trailer();
    task.advance(all as u64);
    Ok(Some(all))
}
