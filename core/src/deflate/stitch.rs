//! Several whole-buffer streams as one.
//!
//! The whole-buffer compressor always writes a complete stream. To go on after it, the mark of its last block is taken
//! back and an empty stored block put behind it, which ends at a byte. The last block begins at some bit, and only
//! decoding tells where; that takes a tenth of the time that the faster engine saves.

use super::error::Error;
use super::inflater::Inflater;
use super::output::Output;
use crate::{Task, memory};

/// The rest of an empty stored block after its three header bits and the fill up to a byte.
const EMPTY_STORED: [u8; 4] = [0, 0, 0xff, 0xff];

/// Turns the complete raw stream `packed` into one that more can follow.
pub(super) fn reopen(packed: &mut Vec<u8>, task: &Task<'_>) -> Result<(), Error> {
    let last = last_block(packed, task)?;
    packed[last.start / 8] &= !(1 << (last.start % 8));
    let header_end = last.end + 3;
    memory::reserve(packed, 1 + EMPTY_STORED.len())?;
    packed.resize(header_end.div_ceil(8), 0);
    packed.extend(EMPTY_STORED);
    Ok(())
}

/// The bits that the last block takes.
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
