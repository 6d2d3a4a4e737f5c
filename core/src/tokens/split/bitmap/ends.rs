//! A list of offsets with room for as many as a block may have.

#![allow(unsafe_code)]

use super::lanes::{BLOCK, Lanes};
use std::mem::MaybeUninit;
use std::ops::Range;

/// No more blocks are cut once there are this many ends.
const ENOUGH: usize = 256;
/// A block has 64 ends at most.
const ROOM: usize = ENOUGH + BLOCK;

/// Where pieces end. Memory is written as it is needed: short texts have few pieces.
pub(in crate::tokens) struct Ends {
    offsets: [MaybeUninit<usize>; ROOM],
    /// This many have been written.
    count: usize,
}

impl Ends {
    pub(in crate::tokens) fn new() -> Self {
        Self { offsets: [const { MaybeUninit::uninit() }; ROOM], count: 0 }
    }

    pub(in crate::tokens) fn as_slice(&self) -> &[usize] {
        let written = &self.offsets[..self.count];
        // SAFETY: that many have been written, and the two types have the same layout.
        unsafe { std::slice::from_raw_parts(written.as_ptr().cast(), written.len()) }
    }

    /// Finds the ends of the pieces that begin in `range` one by one, as far as there is room.
    #[inline]
    pub(in crate::tokens) fn fill(&mut self, range: Range<usize>, end: impl Fn(usize) -> usize) {
        self.clear();
        let mut at = range.start;
        while at < range.end && self.has_room() {
            at = end(at);
            self.push(at);
        }
    }

    #[inline]
    pub(super) fn clear(&mut self) {
        self.count = 0;
    }

    /// Whether all ends of a block find room.
    #[inline]
    pub(super) fn has_room(&self) -> bool {
        self.count < ENOUGH
    }

    #[inline]
    pub(super) fn last(&self) -> Option<usize> {
        self.as_slice().last().copied()
    }

    #[inline]
    pub(super) fn push(&mut self, end: usize) {
        self.offsets[self.count].write(end);
        self.count += 1;
    }

    /// Adds `at` and a bit's number for each bit that is set. There must be room for the ends of a block.
    ///
    /// # Safety
    ///
    /// The processor has the instructions of `L`.
    #[inline(always)]
    pub(super) unsafe fn add<L: Lanes>(&mut self, at: usize, bits: u64) {
        // SAFETY: as the caller says.
        unsafe { L::numbers(at, bits, &mut self.offsets[self.count..][..BLOCK]) };
        self.count += bits.count_ones() as usize;
    }

    /// Leaves out the ends of pieces that begin at or behind `limit`.
    #[inline]
    pub(super) fn leave_what_begins_behind(&mut self, limit: usize) {
        while let [.., start, _] = self.as_slice()
            && *start >= limit
        {
            self.count -= 1;
        }
    }
}
