//! Joins deflate streams that were compressed as whole buffers.
//!
//! libdeflate always writes a complete stream, whose last block has its final bit set. To let another stream
//! follow, that bit is cleared and an empty stored block is appended, which ends at a byte boundary (as
//! zlib's own sync flush does). The position of the last block's header in bits is known only to a decoder,
//! so the stream is decompressed block by block; that takes a tenth of the time that the faster engine saves.
//! The pieces do not refer back to each other, so repeats across their boundaries (every 1 MB or 512 KB) are
//! lost.
//!
//! Prior art: zlib's `examples/gzjoin.c`, and pigz.

use super::error::Error;
use super::inflater::Inflater;
use crate::output::Output;
use crate::{Task, memory};

/// An empty stored block after its three header bits and the padding up to a byte.
const EMPTY_STORED: [u8; 4] = [0, 0, 0xff, 0xff];

/// Turns the complete raw stream `packed` into one that another stream can follow.
pub(super) fn reopen(packed: &mut Vec<u8>, task: &Task<'_>) -> Result<(), Error> {
    let last = last_block(packed, task)?;
    packed[last.start / 8] &= !(1 << (last.start % 8));
    let header_end = last.end + 3;
    memory::reserve(packed, 1 + EMPTY_STORED.len())?;
    packed.resize(header_end.div_ceil(8), 0);
    packed.extend(EMPTY_STORED);
    Ok(())
}

/// The range of the last block, in bits.
fn last_block(packed: &[u8], task: &Task<'_>) -> Result<std::ops::Range<usize>, Error> {
    let mut stream = Inflater::new(-15)?;
    let (mut rest, mut start) = (packed, 0);
    let mut out = Output::new();
    loop {
        task.check()?;
        out.truncate(0);
        if let Some(block) = stream.next_block(&mut rest, &mut out)? {
            if block.last {
                return Ok(start..block.end);
            }
            start = block.end;
        }
    }
}
