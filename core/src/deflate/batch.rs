//! Many buffers in one call, on several threads.
//!
//! The threads take a few buffers at a time through an atomic counter. Each thread writes its results into
//! one buffer of its own, so a batch of a million small results takes a few allocations.

use std::ops::Range;

use super::compress;
use super::decompress;
use super::error::Error;
use super::threads::{share, threads_for};
use crate::output::Output;
use crate::{Task, memory};

/// Many results, stored in a few buffers.
#[derive(Debug, Default)]
pub struct Batch {
    buffers: Vec<Vec<u8>>,
    places: Vec<(usize, Range<usize>)>,
}

impl Batch {
    /// The results, in the order of the inputs.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.places.iter().map(|(buffer, range)| &self.buffers[*buffer][range.clone()])
    }

    /// The size of the results in memory, in bytes.
    pub fn bytes(&self) -> usize {
        let places = self.places.capacity() * size_of::<(usize, Range<usize>)>();
        self.buffers.iter().map(Vec::capacity).fold(places, usize::saturating_add)
    }
}

/// The bytes of a batch between two progress reports: enough work for all cores.
const REPORTED: usize = 8 << 20;

/// Splits `inputs` into groups of at least 8 MB, for callers that report progress between them; otherwise
/// returns one group.
pub fn groups<'a, 'b>(inputs: &'a [&'b [u8]], reporting: bool) -> impl Iterator<Item = &'a [&'b [u8]]> {
    let size = if reporting { REPORTED } else { usize::MAX };
    let mut bytes = 0;
    inputs.chunk_by(move |input, _| {
        bytes += input.len();
        let full = bytes >= size;
        if full {
            bytes = 0;
        }
        !full
    })
}

/// An error, and the index of the input in which it occurred.
pub type IndexedError = (usize, Error);

/// Decompresses each of `inputs` as [`decompress`](super::decompress()) does, to at most `max_output` bytes
/// each, on up to `threads` threads (0: one per core).
///
/// # Errors
///
/// The first error in the order of the inputs, with the input's index; see
/// [`decompress`](super::decompress()).
pub fn inflate_all(
    inputs: &[&[u8]],
    wbits: i32,
    max_output: Option<usize>,
    threads: usize,
    task: &Task<'_>,
) -> Result<Batch, IndexedError> {
    all(inputs, threads, task, |input, out| {
        out.set_left(max_output.unwrap_or(usize::MAX));
        decompress::decompress(input, wbits, out, task).map(drop)
    })
}

/// Compresses each of `inputs` as [`compress`](super::compress()) does, on up to `threads` threads (0: one
/// per core).
///
/// # Errors
///
/// The first error in the order of the inputs, with the input's index; see [`compress`](super::compress()).
pub fn deflate_all(
    inputs: &[&[u8]],
    level: i32,
    wbits: i32,
    threads: usize,
    task: &Task<'_>,
) -> Result<Batch, IndexedError> {
    all(inputs, threads, task, |input, out| compress::compress(input, level, wbits, out, task))
}

fn all(
    inputs: &[&[u8]],
    threads: usize,
    task: &Task<'_>,
    work: impl Fn(&[u8], &mut Output<'_>) -> Result<(), Error> + Sync,
) -> Result<Batch, IndexedError> {
    let threads = threads_for(threads, inputs.iter().map(|input| input.len()).sum());
    let step = (inputs.len() / threads / 8).clamp(1, 256);
    let parts = share(inputs.len(), step, threads, task, |ranges| {
        let mut out = Output::new();
        let mut places = Vec::new();
        for index in ranges.flatten() {
            let failed = |error| (index, error);
            let start = out.len();
            work(inputs[index], &mut out).map_err(failed)?;
            memory::push(&mut places, (index, start..out.len())).map_err(|none| failed(none.into()))?;
        }
        Ok((out.into_bytes().into_vec(), places))
    });
    gather(inputs.len(), parts)
}

type Part = (Vec<u8>, Vec<(usize, Range<usize>)>);

fn gather(count: usize, parts: Vec<Result<Part, IndexedError>>) -> Result<Batch, IndexedError> {
    let places = memory::filled((0, 0..0), count).map_err(|none| (0, none.into()))?;
    let mut batch = Batch { buffers: Vec::with_capacity(parts.len()), places };
    let mut first_error: Option<IndexedError> = None;
    for part in parts {
        match part {
            Ok((buffer, places)) => {
                for (index, range) in places {
                    batch.places[index] = (batch.buffers.len(), range);
                }
                batch.buffers.push(buffer);
            }
            Err(error) if first_error.as_ref().is_none_or(|first| error.0 < first.0) => {
                first_error = Some(error)
            }
            Err(_) => {}
        }
    }
    first_error.map_or(Ok(batch), Err)
}
