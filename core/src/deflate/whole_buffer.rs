//! Compression with libdeflate, as one buffer or as a few large pieces.
//!
//! An input that would take libdeflate more than about 20 ms is cut into pieces, which are joined
//! (`stitch.rs`), so that the task is checked between them.

use super::error::{Error, ErrorKind};
use super::libdeflate;
use super::policy::{self, Plan};
use super::stitch;
use super::wrapper::{self, Format, Sum};
use crate::Task;
use crate::output::Output;

/// Compresses `input` as the [`policy`] says; false if that is to use a stream.
pub(super) fn compress(
    input: &[u8],
    level: i32,
    wbits: i32,
    out: &mut Output<'_>,
    task: &Task<'_>,
) -> Result<bool, Error> {
    let Some(format) = Format::of(wbits) else { return Ok(false) };
    let Plan::Whole { level: engine_level, piece } = policy::plan(input, level) else { return Ok(false) };
    out.push(&wrapper::header(format, level))?;
    let mut sum = Sum::new(format);
    let (pieces, last) = input.split_at(input.len().saturating_sub(1) / piece * piece);
    for piece in pieces.chunks(piece) {
        task.check()?;
        let mut packed = Output::new();
        deflate(piece, engine_level, &mut packed)?;
        let mut packed = packed.into_bytes().into_vec();
        stitch::reopen(&mut packed, task)?;
        out.push(&packed)?;
        sum.add(piece);
        task.advance(piece.len() as u64);
    }
    task.check()?;
    deflate(last, engine_level, out)?;
    sum.add(last);
    out.push(&sum.trailer())?;
    task.advance(last.len() as u64);
    Ok(true)
}

fn deflate(piece: &[u8], level: i32, out: &mut Output<'_>) -> Result<(), Error> {
    libdeflate::deflate(policy::piece_level(piece, level), piece, out).ok_or(Error::new(ErrorKind::Mem, 0))
}

/// Writes an empty stream.
pub(super) fn compress_nothing(format: Format, level: i32, out: &mut Output<'_>) -> Result<(), Error> {
    /// A final block with the fixed Huffman codes that has only its end marker.
    const EMPTY: [u8; 2] = [3, 0];
    out.push(&wrapper::header(format, level))?;
    out.push(&EMPTY)?;
    out.push(&Sum::new(format).trailer())?;
    Ok(())
}
