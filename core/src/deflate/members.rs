//! The members of a gzip file, several at once: files that were put together, BGZF.
//!
//! A window of the file is looked through for places where a member may begin. What lies between two of them is
//! decompressed on some thread, and taken for a member when it proves to be one and the member before it ends there.
//! Everything else (the member that the window cuts off, one that is large or bad) is left to the decoder that goes through
//! the file in order, so that results and errors are its. Where members are large the window grows, so that there is not
//! too much of everything else.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::decompress;
use super::error::Error;
use super::gzip_header::{Header, MAGIC};
use super::output::Output;
use super::threads::{share, threads_for};
use crate::memory::OutOfMemory;
use crate::{Task, memory};

/// Packed bytes that are looked through together, for each thread: at first, and at most.
const PACKED: [usize; 2] = [1 << 20, 4 << 20];

/// The most plain bytes that are made together, for each packed byte of the window.
const PLAIN: usize = 8;

/// The members that a window should have for each thread: less, and threads wait for the last one.
const MEMBERS: usize = 8;

/// Longer headers are left to the decoder that goes in order: many places may look like the beginning of one.
const HEADER: usize = 4 << 10;

/// More threads than this get no larger window.
const THREADS: usize = 64;

/// How much of a file is looked through together.
pub(super) struct Window {
    threads: usize,
    packed: usize,
}

impl Window {
    /// For so many threads (0: one per core).
    pub(super) fn new(threads: usize) -> Self {
        let threads = threads_for(threads, usize::MAX);
        Self { threads, packed: threads.min(THREADS) * PACKED[0] }
    }

    /// As it was at the beginning of the file.
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

/// Whole members from the beginning of a window.
pub(super) struct Together {
    /// How much of the window they take, with the zero bytes after them.
    pub(super) read: usize,
    /// The header of the last one.
    pub(super) header: Header,
    pub(super) content: Content,
}

/// Plain bytes that wait to be given out.
#[derive(Default)]
pub(super) struct Content {
    buffers: Vec<Vec<u8>>,
    pieces: VecDeque<(usize, Range<usize>)>,
}

impl Content {
    /// Moves to `out` what it has room for; true when nothing is left.
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

/// The members that `input` begins with, decompressed to at most `most` bytes; `None` when there is nothing to be gained.
pub(super) fn together(
    input: &[u8],
    window: &mut Window,
    most: usize,
    task: &Task<'_>,
) -> Result<Option<Together>, Error> {
    let size = window.size();
    let input = &input[..input.len().min(size)];
    let starts = possible_members(input)?;
    // Not at the end of a file; what is there may be short of a window by the member before it.
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

/// Where members may begin: at every magic number with a good header behind it, which compressed data holds by chance only
/// every 100 MB or so.
fn possible_members(input: &[u8]) -> Result<Vec<usize>, Error> {
    let magic = [MAGIC[0], MAGIC[1], 8];
    let places = memchr::memmem::find_iter(input, &magic)
        .filter(|&at| matches!(Header::parse(&input[at..input.len().min(at + HEADER)]), Ok(Some(_))));
    memory::collected(places.map(Ok))
}

/// A member of the window, and where in its thread's buffer the content is.
struct Member {
    place: Range<usize>,
    content: Range<usize>,
}

type Part = (Vec<u8>, Vec<Member>);

/// What each thread found.
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
            out.set_room(most.saturating_sub(made.load(Ordering::Relaxed)));
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

/// Those members that follow one another from the beginning on.
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
