//! Streams that receive little input, for which setting up an engine state of 268 KB is not worthwhile.
//!
//! Small inputs are gathered until there is enough to compress. A stream that is finished before that is one
//! whole buffer, which libdeflate compresses faster.

use super::error::Error;
use super::libdeflate;
use super::stream::Config;
use super::whole_buffer;
use super::wrapper::{self, Format};
use crate::Task;
use crate::output::Output;

/// Inputs of up to this size are gathered: a call of the engine costs as much as copying several of them.
pub(super) const PIECE: usize = 1 << 10;

/// The number of bytes that are gathered before they are compressed.
pub(super) const GATHERED: usize = 8 << 10;

/// The largest stream that is compressed as one buffer. All of it lies in zlib's first block, which
/// determines zlib's guess of the data type.
const WHOLE: usize = 16_000;

/// zlib's guess of the data type before any input.
pub(super) const UNKNOWN: i32 = 2;

/// The final figures of a stream, as zlib reports them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ended {
    pub(super) total_in: u64,
    pub(super) total_out: u64,
    pub(super) adler: u32,
    pub(super) data_type: i32,
}

/// Whether a stream of `size` bytes may be compressed as one buffer into `out`, which must have room for any
/// result.
pub(super) fn is_whole(config: Config, size: usize, out: &Output<'_>) -> bool {
    let usual = config.mem_level == Config::default().mem_level && config.strategy == 0;
    usual && size <= WHOLE && out.left() > 2 * WHOLE && Format::of(config.wbits).is_some()
}

/// The header of a stream, if it is known without the engine.
pub(super) fn header(config: Config) -> Option<Vec<u8>> {
    let format = Format::of(config.wbits).filter(|_| config.strategy == 0)?;
    Some(wrapper::header(format, config.level))
}

/// Compresses a whole stream, of whose output the first `given` bytes have been written already; `None` if
/// zlib-rs should do it.
pub(super) fn finish(
    input: &[u8],
    config: Config,
    given: usize,
    out: &mut Output<'_>,
    task: &Task<'_>,
) -> Result<Option<Ended>, Error> {
    let mut packed = Output::new();
    match Format::of(config.wbits) {
        Some(format) if input.is_empty() && config.level != 0 => {
            whole_buffer::compress_nothing(format, config.level, &mut packed)?;
        }
        _ if whole_buffer::compress(input, config.level, config.wbits, &mut packed, task)? => {}
        _ => return Ok(None),
    }
    let total_out = packed.len() as u64;
    out.push(&packed.into_bytes()[given..])?;
    let sum = add_to_sum(config, initial_sum(config), input);
    let adler =
        if Format::of(config.wbits) == Some(Format::Gzip) { libdeflate::crc32(0, input) } else { sum };
    Ok(Some(Ended {
        total_in: input.len() as u64,
        total_out,
        adler,
        data_type: data_type(input, config.level),
    }))
}

/// The checksum that a compressor reports before any input.
pub(super) const fn initial_sum(config: Config) -> u32 {
    if config.wbits > 15 { 0 } else { 1 }
}

/// The checksum after further `input`. Only the zlib format reports it during the stream; gzip's is reported
/// at the end.
pub(super) fn add_to_sum(config: Config, sum: u32, input: &[u8]) -> u32 {
    let zlib = config.wbits > 0 && config.wbits <= 15;
    if zlib && !input.is_empty() { libdeflate::adler32(sum, input) } else { sum }
}

/// zlib's guess of the data type: 0 binary, 1 text.
fn data_type(input: &[u8], level: i32) -> i32 {
    let is_binary = |byte: &u8| matches!(byte, 0..=6 | 14..=25 | 28..=31);
    let is_text = |byte: &u8| matches!(byte, 9 | 10 | 13 | 32..);
    match level {
        0 => UNKNOWN,
        _ if input.iter().any(is_binary) => 0,
        _ => i32::from(input.iter().any(is_text)),
    }
}
