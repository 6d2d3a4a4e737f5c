//! The queues between recording threads and the drain: one lock-free queue with a single producer and a
//! single consumer per native thread, made of chunks from a common, bounded pool.
//!
//! ```text
//! queue of thread 1:  [chunk 7: full] ──▶ [chunk 9: 31 records]
//!                      ▲ reader            ▲ writer
//! queue of thread 2:  [chunk 8: 200 records]
//! free chunks:         3 ──▶ 1 ──▶ none;  chunks 10 … have never been used
//! ```
//!
//! - A thread writes a record into its chunk with plain (relaxed) stores and publishes it by storing the new
//!   count with release ordering. A full chunk is linked to the next one.
//! - The drain reads the count with acquire ordering, so it sees all records below it. It follows the links
//!   and returns emptied chunks to the pool. It stops at the chunk that was the last one when it began, so a
//!   thread that records as fast as the drain reads cannot keep it for ever.
//! - The pool's free list is a Treiber stack of chunk numbers. The head carries a tag in its upper half that
//!   changes with every removal, against the ABA problem: a chunk that was taken and returned in between is
//!   not mistaken for the one that was there all along.
//!
//! An append takes three stores. The pool is one allocation of 128 MB of zeroed pages; a chunk takes no
//! physical memory before its first use. If the pool is exhausted, records are dropped and counted.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use bytemuck::Zeroable;

/// The number of records per chunk: with its header, a chunk fills a page.
const RECORDS: usize = 255;
/// The number of chunks: 128 MiB, 8 million events.
const CHUNKS: u32 = 1 << 15;

/// Marks "no chunk" in links.
const NONE: u32 = u32::MAX;

/// A page of records, written by one thread and read by the drain. Its type demands no page alignment: an
/// allocation with a larger alignment than usual is zeroed explicitly, which would touch all pages at once.
#[derive(Zeroable)]
#[repr(C)]
pub(super) struct Chunk {
    number: AtomicU32,
    next: AtomicU32,
    written: AtomicU64,
    records: [[AtomicU64; 2]; RECORDS],
}

impl Chunk {
    /// Appends a record; false if the chunk is full. Only the owning thread may call this.
    #[inline]
    fn push(&self, record: [u64; 2]) -> bool {
        let written = self.written.load(Ordering::Relaxed);
        let Some(slot) = self.records.get(written as usize) else { return false };
        slot[0].store(record[0], Ordering::Relaxed);
        slot[1].store(record[1], Ordering::Relaxed);
        self.written.store(written + 1, Ordering::Release);
        true
    }

    fn number(&self) -> u32 {
        self.number.load(Ordering::Relaxed)
    }
}

/// All chunks, and which of them are free.
pub(super) struct Pool {
    chunks: OnceLock<Box<[Chunk]>>,
    /// The number of chunks that have been used at least once; all later ones are free.
    used: AtomicU32,
    /// The number of the first returned chunk and, in the upper half, a tag that changes with every removal.
    free: AtomicU64,
}

impl Pool {
    pub(super) const fn new() -> Self {
        Self { chunks: OnceLock::new(), used: AtomicU32::new(0), free: AtomicU64::new(NONE as u64) }
    }

    /// Allocates the memory. Until then the pool has no chunks.
    pub(super) fn reserve(&self) {
        self.chunks.get_or_init(|| bytemuck::zeroed_slice_box(CHUNKS as usize));
    }

    fn chunk(&self, number: u32) -> Option<&Chunk> {
        self.chunks.get()?.get(number as usize)
    }

    fn take(&self) -> Option<&Chunk> {
        let chunk = self.take_again().or_else(|| self.take_new())?;
        chunk.next.store(NONE, Ordering::Relaxed);
        chunk.written.store(0, Ordering::Relaxed);
        Some(chunk)
    }

    fn take_new(&self) -> Option<&Chunk> {
        let next = |used: u32| (used < CHUNKS).then_some(used + 1);
        let number = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).ok()?;
        let chunk = self.chunk(number)?;
        chunk.number.store(number, Ordering::Relaxed);
        Some(chunk)
    }

    fn take_again(&self) -> Option<&Chunk> {
        let mut head = self.free.load(Ordering::Acquire);
        loop {
            let chunk = self.chunk(head as u32)?;
            let next = u64::from(chunk.next.load(Ordering::Relaxed));
            let tagged = (head >> 32).wrapping_add(1) << 32 | next;
            match self.free.compare_exchange_weak(head, tagged, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Some(chunk),
                Err(changed) => head = changed,
            }
        }
    }

    fn give(&self, chunk: &Chunk) {
        let mut head = self.free.load(Ordering::Relaxed);
        loop {
            chunk.next.store(head as u32, Ordering::Relaxed);
            let changed = head >> 32 << 32 | u64::from(chunk.number());
            match self.free.compare_exchange_weak(head, changed, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }
}

/// The part of a native thread's queue that the drain knows.
pub(super) struct Queue {
    native: AtomicU32,
    first: AtomicU32,
    last: AtomicU32,
    closed: AtomicBool,
}

impl Queue {
    pub(super) fn new() -> Self {
        Self {
            native: AtomicU32::new(0),
            first: AtomicU32::new(NONE),
            last: AtomicU32::new(NONE),
            closed: AtomicBool::new(true),
        }
    }

    /// Assigns a queue that is not in use to a native thread.
    pub(super) fn open(&self, native: u32) {
        self.native.store(native, Ordering::Relaxed);
        self.first.store(NONE, Ordering::Relaxed);
        self.last.store(NONE, Ordering::Relaxed);
        self.closed.store(false, Ordering::Release);
    }

    /// The native thread that writes.
    pub(super) fn native(&self) -> u32 {
        self.native.load(Ordering::Relaxed)
    }

    fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }
}

/// The writing end, owned by one thread.
#[derive(Clone, Copy)]
pub(super) struct Writer {
    pool: &'static Pool,
    queue: &'static Queue,
    chunk: Option<&'static Chunk>,
}

impl Writer {
    pub(super) fn new(pool: &'static Pool, queue: &'static Queue) -> Self {
        Self { pool, queue, chunk: None }
    }

    /// Appends a record to the current chunk; false if it is full.
    #[inline]
    pub(super) fn push(&self, record: [u64; 2]) -> bool {
        self.chunk.is_some_and(|chunk| chunk.push(record))
    }

    /// Closes the queue: nothing will be appended any more.
    pub(super) fn close(&self) {
        self.queue.close();
    }

    /// Continues in a new chunk; false if the pool is exhausted.
    #[cold]
    pub(super) fn extend(&mut self) -> bool {
        let Some(chunk) = self.pool.take() else { return false };
        let link = self.chunk.map_or(&self.queue.first, |full| &full.next);
        // Before the link, so that a reader that followed it finds the chunk, or a later one, to be the last.
        self.queue.last.store(chunk.number(), Ordering::Release);
        link.store(chunk.number(), Ordering::Release);
        self.chunk = Some(chunk);
        true
    }
}

/// The reading end, owned by the drain.
pub(super) struct Reader {
    pool: &'static Pool,
    pub(super) queue: &'static Queue,
    chunk: u32,
    read: u64,
}

impl Reader {
    pub(super) fn new(pool: &'static Pool, queue: &'static Queue) -> Self {
        Self { pool, queue, chunk: NONE, read: 0 }
    }

    /// Passes all records written so far to `each`, in order, and at most the rest of a chunk of those that are
    /// written meanwhile. Returns false once the queue is closed and empty; its chunks have then been returned.
    pub(super) fn read(&mut self, mut each: impl FnMut([u64; 2])) -> bool {
        let closed = self.queue.closed.load(Ordering::Acquire);
        let last = self.queue.last.load(Ordering::Acquire);
        if self.chunk == NONE {
            self.chunk = self.queue.first.load(Ordering::Acquire);
        }
        while let Some(chunk) = self.pool.chunk(self.chunk) {
            self.read_chunk(chunk, &mut each);
            let next = chunk.next.load(Ordering::Acquire);
            if next == NONE && !closed {
                return true;
            }
            // The link is set after the last record, so records may have been added between the two reads
            // above.
            self.read_chunk(chunk, &mut each);
            let number = std::mem::replace(&mut self.chunk, next);
            self.read = 0;
            self.pool.give(chunk);
            if number == last {
                break;
            }
        }
        !closed
    }

    fn read_chunk(&mut self, chunk: &Chunk, each: &mut impl FnMut([u64; 2])) {
        let written = chunk.written.load(Ordering::Acquire);
        for slot in &chunk.records[self.read as usize..written as usize] {
            each([slot[0].load(Ordering::Relaxed), slot[1].load(Ordering::Relaxed)]);
        }
        self.read = written;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (&'static Pool, Writer, Reader) {
        let pool: &'static Pool = Box::leak(Box::new(Pool::new()));
        pool.reserve();
        let queue: &'static Queue = Box::leak(Box::new(Queue::new()));
        queue.open(1);
        (pool, Writer::new(pool, queue), Reader::new(pool, queue))
    }

    fn push(writer: &mut Writer, record: [u64; 2]) -> bool {
        writer.push(record) || (writer.extend() && writer.push(record))
    }

    #[test]
    fn a_chunk_fills_a_page() {
        assert_eq!(size_of::<Chunk>(), 4_096);
    }

    /// The resident pages of this process.
    #[cfg(target_os = "linux")]
    fn resident() -> u64 {
        let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux");
        statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).expect("a number")
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn chunks_cost_nothing_before_they_are_used() {
        let pool = Pool::new();
        let before = resident();
        pool.reserve();
        assert!(resident() < before + u64::from(CHUNKS) / 2, "a chunk is a page");
    }

    #[test]
    fn records_arrive_in_order_and_chunks_come_back() {
        let (pool, mut writer, mut reader) = pair();
        let mut next = 0;
        for round in 0..2_000_u64 {
            for i in 0..300 {
                assert!(push(&mut writer, [round * 300 + i, i]));
            }
            assert!(reader.read(|[number, _]| {
                assert_eq!(number, next);
                next += 1;
            }));
        }
        assert_eq!(next, 600_000);
        writer.close();
        assert!(!reader.read(|_| unreachable!()));
        assert!(pool.used.load(Ordering::Relaxed) <= 4, "the same chunks again and again");
    }

    #[test]
    fn a_reader_does_not_chase_a_writer_that_never_pauses() {
        let (_, mut writer, mut reader) = pair();
        let before = RECORDS as u64 + 10;
        for number in 0..before {
            assert!(push(&mut writer, [number, 0]));
        }
        let (mut read, mut written) = (0, before);
        // One more record is written for each that is read.
        assert!(reader.read(|[number, _]| {
            assert_eq!(number, read);
            assert!(push(&mut writer, [written, 0]));
            (read, written) = (read + 1, written + 1);
            assert!(read <= before + RECORDS as u64, "the rest of the last chunk is the bound");
        }));
        assert!(read >= before);
        assert!(reader.read(|[number, _]| {
            assert_eq!(number, read);
            read += 1;
        }));
        writer.close();
        assert!(!reader.read(|_| read += 1));
        assert_eq!(read, written);
    }

    #[test]
    fn an_exhausted_pool_refuses() {
        let (_, mut writer, mut reader) = pair();
        let mut pushed = 0;
        while push(&mut writer, [pushed, 0]) {
            pushed += 1;
        }
        assert_eq!(pushed, u64::from(CHUNKS) * RECORDS as u64);
        let mut read = 0;
        reader.read(|_| read += 1);
        assert_eq!(read, pushed);
        assert!(push(&mut writer, [0, 0]), "room again");
    }

    #[test]
    fn many_threads_share_the_pool() {
        let pool: &'static Pool = Box::leak(Box::new(Pool::new()));
        pool.reserve();
        let queues: Vec<&'static Queue> = (0..4).map(|_| &*Box::leak(Box::new(Queue::new()))).collect();
        queues.iter().zip(0..).for_each(|(queue, native)| queue.open(native));
        let count = 100_000;
        std::thread::scope(|scope| {
            for queue in &queues {
                scope.spawn(move || {
                    let mut writer = Writer::new(pool, queue);
                    let mut sent = 0;
                    while sent < count {
                        sent += u64::from(push(&mut writer, [sent, u64::from(queue.native())]));
                    }
                    queue.close();
                });
            }
            let mut readers: Vec<_> = queues.iter().map(|queue| (Reader::new(pool, queue), 0)).collect();
            while !readers.is_empty() {
                readers.retain_mut(|(reader, next)| {
                    let native = u64::from(reader.queue.native());
                    let open = reader.read(|record| {
                        assert_eq!(record, [*next, native]);
                        *next += 1;
                    });
                    assert!(open || *next == count);
                    open
                });
            }
        });
        let all: Vec<u32> = std::iter::from_fn(|| pool.take_again()).map(Chunk::number).collect();
        let mut different = all.clone();
        different.sort_unstable();
        different.dedup();
        assert_eq!((different.len(), all.len()), (all.len(), pool.used.load(Ordering::Relaxed) as usize));
    }
}
