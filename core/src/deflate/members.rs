//! The members of a gzip file, several at once: concatenated files, BGZF.
//!
//! A gzip file may be a concatenation of complete members. bgzip (htslib's BGZF) writes members of at most 64
//! KB so that they can be decompressed independently. Its members state their own size, other writers' do
//! not; so this module searches.
//!
//! A *window* of the file (1 to 4 MB per thread) is searched for the magic number followed by a plausible
//! header; compressed data holds one by chance only every 100 MB or so. Each stretch from one such place to
//! the next is decompressed on some thread by the whole-buffer engine. A result is used only if its checksum
//! and size are right and the member before it ends exactly where it begins. So a false start costs time and
//! changes nothing.
//!
//! Everything else (the member that the window cuts off, members that are large or invalid) is left to the
//! decoder that reads the file in order, whose results and errors are authoritative. The window grows if it
//! holds few members, so that less is left over. At most 8 bytes of output per byte of the window are made
//! ahead.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::decompress;
use super::error::Error;
use super::gzip_header::{Header, MAGIC};
use super::threads::{share, threads_for};
use crate::memory::OutOfMemory;
use crate::output::Output;
use crate::{Task, memory};

/// The size of a window per thread, in compressed bytes: at first and at most.
const PACKED: [usize; 2] = [1 << 20, 4 << 20];

/// The most bytes of output per byte of the window.
const PLAIN: usize = 8;

/// The number of members per thread that a window should have: with fewer, threads wait for the last one.
const MEMBERS: usize = 8;

/// Longer headers are left to the decoder that reads in order, because many places may look like the
/// beginning of one.
const HEADER: usize = 4 << 10;

/// The window does not grow with more threads than this.
const THREADS: usize = 64;

/// How much of a file is decompressed at once.
pub(super) struct Window {
    threads: usize,
    packed: usize,
}

impl Window {
    /// The initial window for `threads` threads (0: one per core).
    pub(super) fn new(threads: usize) -> Self {
        let threads = threads_for(threads, usize::MAX);
        Self { threads, packed: threads.min(THREADS) * PACKED[0] }
    }

    /// The window at the beginning of a file.
    pub(super) fn anew(&self) -> Self {
        Self::new(self.threads)
    }

    pub(super) fn size(&self) -> usize {
        self.packed
    }

    fn grow_if_few(&mut self, members: usize) {
        if members < self.threads * MEMBERS {
            self.packed = (2 * self.packed).min(self.threads.min(THREADS) * PACKED[1]);
        }
    }
}

/// The complete members at the beginning of a window, decompressed.
pub(super) struct Together {
    /// How many bytes of the window they take, including the zero bytes after them.
    pub(super) read: usize,
    /// The header of the last one.
    pub(super) header: Header,
    pub(super) content: Content,
}

/// Decompressed bytes that have not been written yet.
#[derive(Default)]
pub(super) struct Content {
    buffers: Vec<Vec<u8>>,
    pieces: VecDeque<(usize, Range<usize>)>,
}

impl Content {
    /// Moves as much to `out` as fits; true if nothing is left.
    pub(super) fn give(&mut self, out: &mut Output<'_>) -> Result<bool, Error> {
        while let Some((buffer, range)) = self.pieces.front_mut() {
            let end = range.end.min(range.start.saturating_add(out.left()));
            let before = out.len();
            let pushed = out.push(&self.buffers[*buffer][range.start..end]);
            range.start += out.len() - before;
            pushed?;
            if range.start < range.end {
                return Ok(false);
            }
            self.pieces.pop_front();
        }
        self.buffers.clear();
        Ok(true)
    }

    #[cfg(test)]
    pub(super) fn size(&self) -> usize {
        self.buffers.iter().map(Vec::len).sum()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }
}

/// Decompresses the members at the beginning of `input`, to at most `most` bytes; `None` if that is not
/// worthwhile.
pub(super) fn together(
    input: &[u8],
    window: &mut Window,
    most: usize,
    task: &Task<'_>,
) -> Result<Option<Together>, Error> {
    let size = window.size();
    let input = &input[..input.len().min(size)];
    let starts = possible_members(input)?;
    // Not at the end of a file, where less than a window is left.
    if input.len() >= size / 4 {
        window.grow_if_few(starts.len());
    }
    if starts.first() != Some(&0) || starts.len() < 2 {
        return Ok(None);
    }
    let parts: Vec<Part> = members_at(input, &starts, window.threads, most.min(size * PLAIN), task)
        .into_iter()
        .collect::<Result<_, _>>()?;
    chain(input, parts)
}

/// The offsets at which members may begin: every magic number with a valid header after it.
fn possible_members(input: &[u8]) -> Result<Vec<usize>, Error> {
    let magic = [MAGIC[0], MAGIC[1], 8];
    let places = memchr::memmem::find_iter(input, &magic)
        .filter(|&at| matches!(Header::parse(&input[at..input.len().min(at + HEADER)]), Ok(Some(_))));
    memory::collected(places.map(Ok))
}

/// A member: its range in the window, and the range of its content in the thread's buffer.
struct Member {
    place: Range<usize>,
    content: Range<usize>,
}

type Part = (Vec<u8>, Vec<Member>);

/// Decompresses the candidates; returns the valid members that each thread found.
fn members_at(
    input: &[u8],
    starts: &[usize],
    threads: usize,
    most: usize,
    task: &Task<'_>,
) -> Vec<Result<Part, Error>> {
    let made = AtomicUsize::new(0);
    share(starts.len(), 1, threads_for(threads, input.len()), task, |ranges| {
        let mut out = Output::new();
        let mut members = Vec::new();
        for index in ranges.flatten() {
            let start = starts[index];
            let end = starts.get(index + 1).copied().unwrap_or(input.len());
            let before = out.len();
            out.set_left(most.saturating_sub(made.load(Ordering::Relaxed)));
            match decompress::decompress_whole(&input[start..end], 31, &mut out, task)? {
                Some(read) => {
                    made.fetch_add(out.len() - before, Ordering::Relaxed);
                    let member = Member { place: start..start + read, content: before..out.len() };
                    memory::push(&mut members, member)?;
                }
                None => out.truncate(before),
            }
        }
        Ok((out.into_bytes().into_vec(), members))
    })
}

/// Keeps the members that follow one another without a gap from the beginning.
fn chain(input: &[u8], parts: Vec<Part>) -> Result<Option<Together>, Error> {
    let all =
        parts.iter().enumerate().flat_map(|(part, (_, members))| members.iter().map(move |m| (part, m)));
    let mut found = memory::collected(all.map(Ok::<_, Error>))?;
    found.sort_unstable_by_key(|(_, member)| member.place.start);
    let (mut at, mut last, mut pieces) = (0, None, VecDeque::new());
    pieces.try_reserve(found.len()).map_err(OutOfMemory::from)?;
    for (part, member) in found {
        if member.place.start == at {
            pieces.push_back((part, member.content.clone()));
            last = Some(at);
            at = member.place.end;
            at += input[at..].iter().take_while(|&&byte| byte == 0).count();
        }
    }
    let header = last.map(|last| Header::parse(&input[last..]));
    let Some(Ok(Some((header, _)))) = header else { return Ok(None) };
    let buffers = parts.into_iter().map(|(buffer, _)| buffer).collect();
    Ok(Some(Together { read: at, header, content: Content { buffers, pieces } }))
}
