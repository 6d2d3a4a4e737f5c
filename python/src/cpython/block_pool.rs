//! Blocks of memory for string objects, recycled per thread.
//!
//! All blocks lie in one range of addresses that is reserved at first use and never released: one comparison
//! shows whether an object lives in a block, and rounding its address down finds the block's header. Memory
//! is allocated only for blocks that are used. When much of it is free, the system may reclaim the memory of
//! some blocks. These are then used last: otherwise a program that once had many strings would offer the same
//! blocks, and fault on them, again and again.
//!
//! A thread takes blocks from, and returns them to, its own short list. Only once per [`CHAIN`] blocks does
//! it exchange a whole chain with the other threads, on a lock-free stack: no thread waits, and a process
//! that forks at any moment leaves its child a pool that works.

use std::cell::Cell;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use offlock_core::cpu;
use offlock_core::text::Memory;

use pyo3::prelude::*;

use super::pages;

/// Small, because one string that stays alive keeps its whole block.
pub(crate) const BLOCK: usize = 16 << 10;

/// The blocks that pass between threads at once. Few, so that the next thread finds memory that is still in
/// the cache of the previous one.
const CHAIN: u32 = 4;

/// The blocks that are allocated from the system at once.
const FRESH: u32 = 128;

/// Bytes of a large page: as many as those blocks have.
const LARGE_PAGE: usize = 2 << 20;
const _: () = assert!(FRESH as usize * BLOCK == LARGE_PAGE);

/// The system may reclaim the memory of free blocks beyond this many (64 MiB, as much as the C library's
/// allocator keeps at most).
const KEPT: u32 = 4096;

/// The first bytes, which suffice for a program with few strings, have pages of the usual size. The bytes
/// after these have large pages, because a fault for a page takes longer than filling an object.
const SMALL_PAGES: usize = 4 << 20;

/// The largest range of addresses that is requested; halved until the system accepts.
const MOST_ADDRESSES: usize = 64 << 30;
const FEWEST_ADDRESSES: usize = 64 << 20;

/// The header of a block; objects follow.
#[repr(C, align(64))]
struct BlockHeader {
    /// Objects that still live in it.
    live: AtomicU32,
    /// The memory with their characters, a counted reference; null for objects that hold their own.
    characters: AtomicPtr<Memory>,
}

/// The bytes of a block that objects can use.
pub(crate) const ROOM: usize = BLOCK - size_of::<BlockHeader>();

/// A block that has one owner. It returns to the pool when dropped, unless it is
/// [published](Block::publish).
pub(crate) struct Block(u32);

impl Block {
    /// A block with undefined contents; `None` when no memory or address is left.
    pub(crate) fn take() -> Option<Self> {
        Pool::get()?.take().map(Self)
    }

    /// Where the block begins, aligned to [`BLOCK`].
    pub(crate) fn start(&self) -> NonNull<u8> {
        self.header().cast()
    }

    /// Where objects begin, aligned to 64 bytes.
    pub(crate) fn objects(&self) -> NonNull<u8> {
        // SAFETY: the block is longer than its header.
        unsafe { self.header().add(1) }.cast()
    }

    /// Passes ownership of the block, and of the reference to `characters`, to the `live` objects that were
    /// built in it. [`release_object`] of the last one frees both.
    pub(crate) fn publish(self, live: u32, characters: Option<Arc<Memory>>) {
        let characters = characters.map_or(ptr::null_mut(), |memory| Arc::into_raw(memory).cast_mut());
        let header = BlockHeader { live: AtomicU32::new(live), characters: AtomicPtr::new(characters) };
        // SAFETY: the header lies in this block, which only `self` refers to.
        unsafe { self.header().write(header) };
        std::mem::forget(self);
    }

    fn header(&self) -> NonNull<BlockHeader> {
        Pool::existing().address(self.0).cast()
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        Pool::existing().give(self.0);
    }
}

/// Decrements the count of the object's block, and recycles the block after the last object.
///
/// # Safety
///
/// The object lives in a published block and is no longer used.
#[inline]
pub(crate) unsafe fn release_object<T>(object: *mut T) {
    let header = object.map_addr(|address| address & !(BLOCK - 1)).cast::<BlockHeader>();
    // Tuples and lists release the last item first. The memory before the block belongs to another thread.
    if object.addr() % BLOCK >= pages::AHEAD {
        pages::expect_use(object.wrapping_byte_sub(pages::AHEAD));
    }
    // SAFETY: blocks are aligned to their size and begin with their header, which stays as long as objects
    // live.
    let live = unsafe { &(*header).live };
    if count_off(live) {
        // SAFETY: this was the last object, so that no other thread reaches this point for this block.
        unsafe { recycle(header) };
    }
}

/// Objects are freed with the lock held, one after the other.
#[cfg(not(Py_GIL_DISABLED))]
#[inline]
fn count_off(live: &AtomicU32) -> bool {
    let left = live.load(Ordering::Relaxed) - 1;
    live.store(left, Ordering::Relaxed);
    left == 0
}

/// Several threads free objects of one block at once.
#[cfg(Py_GIL_DISABLED)]
#[inline]
fn count_off(live: &AtomicU32) -> bool {
    live.fetch_sub(1, Ordering::AcqRel) == 1
}

/// # Safety
///
/// The header of a published block without live objects; called once.
#[cold]
unsafe fn recycle(header: *mut BlockHeader) {
    let pool = Pool::existing();
    // SAFETY: the header exists until the block is returned to the pool.
    let characters = unsafe { (*header).characters.load(Ordering::Relaxed) };
    pool.give(pool.id(header.addr()));
    if !characters.is_null() {
        // SAFETY: `publish` left this reference to the objects of the block, and they are freed.
        drop(unsafe { Arc::from_raw(characters) });
    }
}

/// The first address of all blocks, and how many bytes follow; zeros until the first block is asked for.
pub(crate) fn addresses() -> (usize, usize) {
    POOL.get().and_then(Option::as_ref).map_or((0, 0), |pool| (pool.base.addr().get(), pool.bytes))
}

/// Reserves the pool, unless that was done before. Called with the lock held, so that no fork finds another
/// thread in the middle of it.
pub(crate) fn prepare(_: Python<'_>) {
    Pool::get();
}

/// How many blocks are in use, how many were ever used, and how often the memory of one was offered to the
/// system.
pub(crate) fn usage() -> (usize, usize, usize) {
    POOL.get().and_then(Option::as_ref).map_or((0, 0, 0), |pool| {
        let used = pool.fresh.load(Ordering::Relaxed).min(pool.blocks());
        (pool.taken.load(Ordering::Relaxed), used as usize, pool.offered.load(Ordering::Relaxed))
    })
}

/// The address of the block that an object lives in, if it lives in one.
pub(crate) fn home_of<T>(object: *const T) -> Option<usize> {
    let (base, bytes) = addresses();
    (object.addr().wrapping_sub(base) < bytes).then(|| object.addr() & !(BLOCK - 1))
}

/// The memory with the characters of the objects of a block.
///
/// # Safety
///
/// The block is published, and one of its objects lives as long as the reference is used.
pub(crate) unsafe fn characters_of<'a>(block: usize) -> Option<&'a Memory> {
    let header = ptr::with_exposed_provenance::<BlockHeader>(block);
    // SAFETY: a published block has a header, and its reference until its last object is freed.
    unsafe { (*header).characters.load(Ordering::Relaxed).as_ref() }
}

static POOL: OnceLock<Option<Pool>> = OnceLock::new();

struct Pool {
    base: NonNull<u8>,
    bytes: usize,
    /// One for each block.
    links: NonNull<Link>,
    /// The first block that was never used.
    fresh: AtomicU32,
    /// The chains of free blocks that no thread holds, by the processor that used them last.
    stacks: [Stack; STACKS],
    /// Blocks in these chains.
    spare: AtomicU32,
    /// The chains whose memory was offered to the system.
    cold: Stack,
    /// How many blocks were ever put there.
    offered: AtomicUsize,
    /// Blocks that are neither free nor fresh.
    taken: AtomicUsize,
}

// SAFETY: the pointed-to memory is never freed; the links are atomics, and only a block's owner accesses it.
unsafe impl Send for Pool {}
// SAFETY: threads that share the pool reach a block through an atomic exchange, so one at a time.
unsafe impl Sync for Pool {}

/// How many processors have a stack of their own; the others share.
const STACKS: usize = 16;

/// Chains of free blocks: the first block of the top one (none: 0, else one more than its number), and a
/// count of changes in the upper half, so that no change goes unseen. Alone in its cache line, as each is
/// used by another processor.
#[derive(Default)]
#[repr(align(128))]
struct Stack(AtomicU64);

/// The state of a free block, kept outside of it. Blocks are written here as in a [`Stack`]: one more than
/// the number.
#[derive(Default)]
struct Link {
    /// The next block of its chain.
    next: AtomicU32,
    /// For the first block of a chain: the next chain.
    below: AtomicU32,
    /// For the first block of a chain: how many blocks are in it.
    length: AtomicU32,
}

impl Pool {
    fn get() -> Option<&'static Self> {
        POOL.get_or_init(Self::reserve).as_ref()
    }

    /// The pool; it exists, because the caller has a block of it.
    fn existing() -> &'static Self {
        Self::get().expect("a block comes from a pool")
    }

    fn reserve() -> Option<Self> {
        let halves = std::iter::successors(Some(MOST_ADDRESSES), |bytes| Some(bytes / 2));
        let (start, bytes) = halves
            .take_while(|bytes| *bytes >= FEWEST_ADDRESSES)
            .find_map(|bytes| pages::reserve(bytes).map(|start| (start, bytes)))?;
        let before = start.align_offset(LARGE_PAGE);
        let bytes = (bytes - before) / LARGE_PAGE * LARGE_PAGE;
        // SAFETY: less than one large page into a range of many.
        let base = unsafe { start.add(before) };
        // SAFETY: the rest of the same range.
        unsafe { pages::prefer_large_pages(base.add(SMALL_PAGES), bytes - SMALL_PAGES) };
        Some(Self {
            base,
            bytes,
            links: pages::zeros(bytes / BLOCK * size_of::<Link>())?.cast(),
            fresh: AtomicU32::new(0),
            stacks: Default::default(),
            spare: AtomicU32::new(0),
            cold: Stack::default(),
            offered: AtomicUsize::new(0),
            taken: AtomicUsize::new(0),
        })
    }

    fn blocks(&self) -> u32 {
        u32::try_from(self.bytes / BLOCK).expect("few enough blocks")
    }

    fn address(&self, id: u32) -> NonNull<u8> {
        // SAFETY: the block is one of the range.
        unsafe { self.base.add(id as usize * BLOCK) }
    }

    fn id(&self, address: usize) -> u32 {
        u32::try_from((address - self.base.addr().get()) / BLOCK).expect("few enough blocks")
    }

    fn link(&self, id: u32) -> &Link {
        // SAFETY: there is one for each block; all zeros is a valid value of one.
        unsafe { self.links.add(id as usize).as_ref() }
    }

    fn take(&self) -> Option<u32> {
        let id = OwnBlocks::with(|own| own.pop(self)).or_else(|| self.refill())?;
        self.taken.fetch_add(1, Ordering::Relaxed);
        Some(id)
    }

    fn give(&self, id: u32) {
        self.taken.fetch_sub(1, Ordering::Relaxed);
        if OwnBlocks::with(|own| own.push(self, id)).is_none() {
            self.link(id).next.store(0, Ordering::Relaxed);
            self.push_chain(id, 1);
        }
    }

    /// Acquires a chain for this thread, and takes its first block.
    fn refill(&self) -> Option<u32> {
        let (id, length) = self.pop_chain().or_else(|| self.fresh_chain())?;
        let rest = self.link(id).next.load(Ordering::Relaxed);
        if length > 1 && OwnBlocks::with(|own| own.refill(rest, length - 1)).is_none() {
            self.push_chain(rest - 1, length - 1);
        }
        Some(id)
    }

    fn fresh_chain(&self) -> Option<(u32, u32)> {
        let first = self
            .fresh
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |fresh| {
                fresh.checked_add(FRESH).filter(|fresh| *fresh <= self.blocks())
            })
            .ok()?;
        // SAFETY: these blocks were reserved, and no other thread got the same ones.
        if !unsafe { pages::commit(self.address(first), FRESH as usize * BLOCK) } {
            return None;
        }
        for id in first..first + FRESH {
            let next = if id + 1 < first + FRESH { id + 2 } else { 0 };
            self.link(id).next.store(next, Ordering::Relaxed);
        }
        Some((first, FRESH))
    }

    /// A chain that this processor used last, or else another one.
    fn pop_chain(&self) -> Option<(u32, u32)> {
        let here = cpu::current();
        let warm = (here..here + STACKS).find_map(|number| self.pop_from(&self.stacks[number % STACKS]));
        match warm {
            Some((_, length)) => {
                self.spare.fetch_sub(length, Ordering::Relaxed);
                warm
            }
            None => self.pop_from(&self.cold),
        }
    }

    fn pop_from(&self, Stack(stack): &Stack) -> Option<(u32, u32)> {
        let mut top = stack.load(Ordering::Acquire);
        loop {
            let id = first_of(top).checked_sub(1)?;
            let below = self.link(id).below.load(Ordering::Relaxed);
            match stack.compare_exchange_weak(top, changed(top, below), Ordering::Acquire, Ordering::Acquire)
            {
                Ok(_) => return Some((id, self.link(id).length.load(Ordering::Relaxed))),
                Err(now) => top = now,
            }
        }
    }

    fn push_chain(&self, first: u32, length: u32) {
        if self.spare.fetch_add(length, Ordering::Relaxed) < KEPT {
            self.push_to(&self.stacks[cpu::current() % STACKS], first, length);
        } else {
            self.spare.fetch_sub(length, Ordering::Relaxed);
            self.offered.fetch_add(length as usize, Ordering::Relaxed);
            self.discard(first);
            self.push_to(&self.cold, first, length);
        }
    }

    fn push_to(&self, Stack(stack): &Stack, first: u32, length: u32) {
        let link = self.link(first);
        link.length.store(length, Ordering::Relaxed);
        let mut top = stack.load(Ordering::Relaxed);
        loop {
            link.below.store(first_of(top), Ordering::Relaxed);
            let pushed = changed(top, first + 1);
            match stack.compare_exchange_weak(top, pushed, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => top = now,
            }
        }
    }

    /// Lets the system reclaim the memory of a chain, with one call for each run of adjacent blocks.
    fn discard(&self, first: u32) {
        let follower = |id: u32| self.link(id).next.load(Ordering::Relaxed).checked_sub(1);
        let mut next = Some(first);
        while let Some(id) = next {
            let (mut low, mut high) = (id, id);
            next = follower(id);
            while let Some(id) = next.filter(|&id| id + 1 == low || id == high + 1) {
                (low, high) = (low.min(id), high.max(id));
                next = follower(id);
            }
            // SAFETY: the blocks were used before, and are free.
            unsafe { pages::discard(self.address(low), (high - low + 1) as usize * BLOCK) };
        }
    }
}

/// The part of a stack's top that identifies a block.
#[allow(clippy::cast_possible_truncation, reason = "the lower half is what is asked for")]
const fn first_of(top: u64) -> u32 {
    top as u32
}

/// The top of a stack after a change that makes `first` its block.
const fn changed(top: u64, first: u32) -> u64 {
    ((top >> 32) + 1) << 32 | first as u64
}

/// The free blocks of one thread: a chain, written as in [`Link`].
struct OwnBlocks {
    first: Cell<u32>,
    length: Cell<u32>,
}

thread_local! {
    static OWN: OwnBlocks = const { OwnBlocks { first: Cell::new(0), length: Cell::new(0) } };
}

impl OwnBlocks {
    /// The result of `body` for this thread's blocks; `None` also when the thread's local storage is
    /// destroyed.
    fn with<T>(body: impl FnOnce(&Self) -> Option<T>) -> Option<T> {
        OWN.try_with(body).ok().flatten()
    }

    fn pop(&self, pool: &Pool) -> Option<u32> {
        let id = self.first.get().checked_sub(1)?;
        self.first.set(pool.link(id).next.load(Ordering::Relaxed));
        self.length.set(self.length.get() - 1);
        Some(id)
    }

    fn push(&self, pool: &Pool, id: u32) -> Option<()> {
        if self.length.get() >= 2 * CHAIN {
            self.share(pool);
        }
        pool.link(id).next.store(self.first.get(), Ordering::Relaxed);
        self.first.set(id + 1);
        self.length.set(self.length.get() + 1);
        Some(())
    }

    fn refill(&self, first: u32, length: u32) -> Option<()> {
        self.first.set(first);
        self.length.set(length);
        Some(())
    }

    /// Passes the half that was used least recently to the other threads.
    fn share(&self, pool: &Pool) {
        let mut last = self.first.get() - 1;
        for _ in 1..self.length.get() - CHAIN {
            last = pool.link(last).next.load(Ordering::Relaxed) - 1;
        }
        let colder = pool.link(last).next.swap(0, Ordering::Relaxed);
        self.length.set(self.length.get() - CHAIN);
        pool.push_chain(colder - 1, CHAIN);
    }
}

impl Drop for OwnBlocks {
    fn drop(&mut self) {
        if let (Some(first), Some(pool)) = (self.first.get().checked_sub(1), Pool::get()) {
            pool.push_chain(first, self.length.get());
        }
    }
}
