//! All cores on one job: many buffers, many members, or many blocks of one stream.

use std::num::NonZero;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::error::{Error, ErrorKind};
use super::gzip;
use super::members::{self, Window};
use super::one_shot;
use super::output::Output;
use super::raw::Config;
use super::stream::{Deflater, Flush};
use crate::parallel::on_threads;
use crate::{Task, memory};

/// Starting a thread costs about as much as this many bytes of work.
const WORTH_A_THREAD: usize = 64 << 10;

/// Plain bytes of one block of a stream that is compressed in parallel.
const BLOCK: usize = 128 << 10;

/// Blocks per thread that are collected before they are compressed together.
const BLOCKS_PER_THREAD: usize = 4;

/// What a block may refer back to.
const WINDOW: usize = 32 << 10;

/// How many threads to use for `bytes` of input when the caller asks for `threads` (0: one per core).
pub(super) fn threads_for(threads: usize, bytes: usize) -> usize {
    let cores = || thread::available_parallelism().map_or(1, NonZero::get);
    let wanted = if threads == 0 { cores() } else { threads };
    wanted.min(bytes / WORTH_A_THREAD).max(1)
}

/// Lets `threads` workers take ranges of `0..count`, `step` at a time, and returns what each worker made.
pub(super) fn share<T: Send>(
    count: usize,
    step: usize,
    threads: usize,
    task: &Task<'_>,
    worker: impl Fn(&mut dyn Iterator<Item = Range<usize>>) -> T + Sync,
) -> Vec<T> {
    let next = AtomicUsize::new(0);
    on_threads(threads, task, || {
        let mut ranges = std::iter::from_fn(|| {
            let start = next.fetch_add(step, Ordering::Relaxed);
            (start < count).then(|| start..count.min(start + step))
        });
        worker(&mut ranges)
    })
}

/// Many results in few buffers.
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

    /// How many bytes of memory they take.
    pub fn bytes(&self) -> usize {
        let places = self.places.capacity() * size_of::<(usize, Range<usize>)>();
        self.buffers.iter().map(Vec::capacity).fold(places, usize::saturating_add)
    }
}

/// Bytes of a batch between two reports: enough for all cores.
const REPORTED: usize = 8 << 20;

/// All of `inputs` as one group or, for callers that report between them, as groups of at least 8 MB.
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

/// A failure, and the index of the input it happened in.
pub type IndexedError = (usize, Error);

/// Decompresses each of `inputs` as [`decompress`](super::decompress) does, to at most `max_output` bytes each.
pub fn inflate_all(
    inputs: &[&[u8]],
    wbits: i32,
    max_output: Option<usize>,
    threads: usize,
    task: &Task<'_>,
) -> Result<Batch, IndexedError> {
    all(inputs, threads, task, |input, out| {
        out.set_room(max_output.unwrap_or(usize::MAX));
        one_shot::decompress(input, wbits, out, task).map(drop)
    })
}

/// Compresses each of `inputs` as [`compress`](super::compress) does.
pub fn deflate_all(
    inputs: &[&[u8]],
    level: i32,
    wbits: i32,
    threads: usize,
    task: &Task<'_>,
) -> Result<Batch, IndexedError> {
    all(inputs, threads, task, |input, out| one_shot::compress(input, level, wbits, out, task))
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

/// Decompresses a gzip file of one or more members, as a decoder of all [`Members`](gzip::Members) does.
///
/// With several members (BGZF, or files that were put together) `threads` of them are worked on at once; 0 means one
/// per core.
pub fn gunzip(input: &[u8], threads: usize, out: &mut Output<'_>, task: &Task<'_>) -> Result<(), Error> {
    let mut at = 0;
    let mut window = Window::new(threads);
    while at < input.len() {
        at += match members::together(&input[at..], &mut window, out.left(), task)? {
            Some(mut together) => {
                if !together.content.give(out)? {
                    return Err(Error::new(ErrorKind::Limit, (at + together.read) as u64));
                }
                together.read
            }
            None => gzip::first_member(&input[at..], out, task).map_err(|error| error.after(at))?,
        };
        at += input[at..].iter().take_while(|&&byte| byte == 0).count();
    }
    Ok(())
}

/// Makes one raw deflate stream on several threads.
///
/// The data is cut in blocks of 128 KB, each compressed with the 32 KB before it as dictionary and ended with an empty
/// stored block, so that the pieces are one stream that every decoder reads, about 0.1% larger than made in one go.
pub struct BlockDeflater {
    config: Config,
    threads: usize,
    /// Up to [`WINDOW`] bytes that are compressed already, then those that are not.
    buffer: Vec<u8>,
    window: usize,
}

impl BlockDeflater {
    /// A stream at `level`, on `threads` threads (0: one per core).
    pub fn new(level: i32, strategy: i32, threads: usize) -> Result<Self, Error> {
        let config = Config { level, wbits: -15, strategy, ..Config::default() };
        Deflater::new(config)?;
        let threads = threads_for(threads, usize::MAX);
        Ok(Self { config, threads, buffer: Vec::new(), window: 0 })
    }

    /// Takes `input`, which is advanced past what was taken, and compresses as soon as there is enough for all threads.
    pub fn run(
        &mut self,
        input: &mut &[u8],
        out: &mut Output<'_>,
        flush: Flush,
        task: &Task<'_>,
    ) -> Result<(), Error> {
        let full = self.threads * BLOCKS_PER_THREAD * BLOCK;
        loop {
            let take = input.len().min((self.window + full).saturating_sub(self.buffer.len()));
            memory::append(&mut self.buffer, &input[..take])?;
            *input = &input[take..];
            if self.buffer.len() < self.window + full {
                break;
            }
            self.compress(out, Flush::Sync, task)?;
        }
        match flush {
            Flush::None => Ok(()),
            flush => self.compress(out, flush, task),
        }
    }

    /// Compresses everything in the buffer.
    fn compress(&mut self, out: &mut Output<'_>, flush: Flush, task: &Task<'_>) -> Result<(), Error> {
        let plain = self.buffer.len() - self.window;
        let count = plain.div_ceil(BLOCK).max(1);
        let parts = share(count, 1, self.threads.min(count), task, |ranges| {
            let mut stream = Deflater::new(self.config)?;
            let mut blocks = Vec::new();
            for index in ranges.flatten() {
                let flush = if index + 1 == count { flush } else { Flush::Sync };
                let block = self.block(&mut stream, index, flush, task)?;
                memory::push(&mut blocks, (index, block))?;
            }
            Ok::<_, Error>(blocks)
        });
        let mut blocks = memory::with_room(count)?;
        for part in parts {
            blocks.extend(part?);
        }
        blocks.sort_unstable_by_key(|(index, _)| *index);
        let size = blocks.iter().map(|(_, block)| block.len()).sum();
        out.make_room(size)?;
        for (_, block) in blocks {
            out.push(&block)?;
        }
        let keep = if flush == Flush::Full { 0 } else { self.buffer.len().min(WINDOW) };
        self.buffer.drain(..self.buffer.len() - keep);
        self.window = keep;
        Ok(())
    }

    fn block(
        &self,
        stream: &mut Deflater,
        index: usize,
        flush: Flush,
        task: &Task<'_>,
    ) -> Result<Vec<u8>, Error> {
        let start = self.window + index * BLOCK;
        let end = self.buffer.len().min(start + BLOCK);
        stream.reset()?;
        stream.set_dictionary(&self.buffer[start.saturating_sub(WINDOW)..start])?;
        let mut out = Output::new();
        stream.run(&mut &self.buffer[start..end], &mut out, flush, task)?;
        Ok(out.into_bytes().into_vec())
    }
}
