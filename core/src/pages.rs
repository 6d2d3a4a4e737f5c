//! Tables on large pages of memory.
//!
//! A table of megabytes that is read at random places spends much of its time on translating addresses: a page
//! has 4 KB, and the processor remembers the places of few of them. Linux maps 2 MB at a time where a program
//! asks for it before it touches the memory (`madvise`, which the setting of most distributions waits for).
//!
//! The mapping is private to the process and ordinary memory in every other way: the child of a fork shares it
//! until one of them writes. If the system has no large pages, or none is free, it has small ones. Elsewhere, and
//! for small tables, this is an ordinary allocation.

#![allow(unsafe_code)]

use crate::memory::OutOfMemory;
use bytemuck::Zeroable;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::slice;

/// A slice of a fixed length that was filled with zeros at first.
pub(crate) struct Pages<T> {
    start: NonNull<T>,
    length: usize,
    /// The bytes of the mapping; 0 if it is an ordinary allocation.
    mapped: usize,
}

impl<T: Zeroable> Pages<T> {
    /// `length` items of zeros.
    pub(crate) fn zeroed(length: usize) -> Result<Self, OutOfMemory> {
        match map::zeroed(length.checked_mul(size_of::<T>()).ok_or(OutOfMemory)?) {
            Some(large) => large.map(|(start, mapped)| Self { start: start.cast(), length, mapped }),
            None => {
                let items = bytemuck::allocation::try_zeroed_slice_box(length).map_err(|()| OutOfMemory)?;
                let mut items: ManuallyDrop<Box<[T]>> = ManuallyDrop::new(items);
                Ok(Self { start: NonNull::from(&mut items[..]).cast(), length, mapped: 0 })
            }
        }
    }
}

impl<T> Default for Pages<T> {
    fn default() -> Self {
        Self { start: NonNull::dangling(), length: 0, mapped: 0 }
    }
}

impl<T> Deref for Pages<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: there are `length` items from `start` on, which nobody else uses. Zeros are items of this type.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }
}

impl<T> DerefMut for Pages<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.length) }
    }
}

impl<T> Drop for Pages<T> {
    fn drop(&mut self) {
        if self.mapped > 0 {
            map::unmap(self.start.cast(), self.mapped);
        } else {
            let items = std::ptr::slice_from_raw_parts_mut(self.start.as_ptr(), self.length);
            // SAFETY: it was a boxed slice of this length, or has no items, for which nothing was allocated.
            drop(unsafe { Box::from_raw(items) });
        }
    }
}

// SAFETY: it owns its items, as a boxed slice does.
unsafe impl<T: Send> Send for Pages<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Pages<T> {}

/// Has the processor fetch an item into its caches, if it can, and goes on.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn prefetch<T>(item: &T) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: every processor of this architecture has the instruction, which changes nothing that can be seen.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(item).cast()) };
}

#[cfg(not(target_arch = "x86_64"))]
#[inline]
pub(crate) fn prefetch<T>(_: &T) {}

#[cfg(target_os = "linux")]
mod map {
    use crate::memory::OutOfMemory;
    use std::ptr::{self, NonNull};

    /// The size of a large page on x86-64, and on AArch64 with small pages of 4 KB.
    const LARGE: usize = 2 << 20;

    /// Maps zeros, at least `bytes`; `None` if that is too little for a large page.
    pub(super) fn zeroed(bytes: usize) -> Option<Result<(NonNull<u8>, usize), OutOfMemory>> {
        (bytes >= LARGE / 2).then(|| large(bytes))
    }

    /// Whole large pages, and the number of their bytes.
    fn large(bytes: usize) -> Result<(NonNull<u8>, usize), OutOfMemory> {
        let wanted = bytes.checked_next_multiple_of(LARGE).ok_or(OutOfMemory)?;
        let whole = wanted.checked_add(LARGE).ok_or(OutOfMemory)?;
        let (protection, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping, wherever the system likes.
        let mapped = unsafe { libc::mmap(ptr::null_mut(), whole, protection, flags, -1, 0) };
        if mapped == libc::MAP_FAILED {
            return Err(OutOfMemory);
        }
        let mapped: *mut u8 = mapped.cast();
        let before = mapped.align_offset(LARGE);
        // SAFETY: the mapping has one large page more than is wanted, so this is within it.
        let start = unsafe { mapped.add(before) };
        // What lies before and behind is given back. If the system cannot, it stays unused.
        if before > 0 {
            // SAFETY: the beginning of the new mapping, which nobody uses.
            unsafe { libc::munmap(mapped.cast(), before) };
        }
        // SAFETY: as above, its end.
        unsafe { libc::munmap(start.add(wanted).cast(), whole - before - wanted) };
        // SAFETY: advice about memory of our own. Without it, the pages are small.
        unsafe { libc::madvise(start.cast(), wanted, libc::MADV_HUGEPAGE) };
        NonNull::new(start).map(|start| (start, wanted)).ok_or(OutOfMemory)
    }

    pub(super) fn unmap(start: NonNull<u8>, bytes: usize) {
        // SAFETY: `large` made the mapping, and its owner is dropped.
        unsafe { libc::munmap(start.as_ptr().cast(), bytes) };
    }
}

#[cfg(not(target_os = "linux"))]
mod map {
    use crate::memory::OutOfMemory;
    use std::ptr::NonNull;

    /// No large pages here.
    pub(super) fn zeroed(_: usize) -> Option<Result<(NonNull<u8>, usize), OutOfMemory>> {
        None
    }

    pub(super) fn unmap(_: NonNull<u8>, _: usize) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_and_large_tables_begin_with_zeros_and_keep_what_is_written() {
        for length in [0, 1, 1000, (1 << 17) - 1, 1 << 17, (1 << 19) + 1] {
            let mut pages = Pages::<u64>::zeroed(length).unwrap();
            assert_eq!(pages.len(), length);
            assert!(pages.iter().all(|&item| item == 0));
            pages.iter_mut().zip(7..).for_each(|(item, number)| *item = number);
            assert!(pages.iter().zip(7..).all(|(&item, number)| item == number));
        }
        assert!(Pages::<u64>::default().is_empty());
    }

    #[test]
    fn what_there_is_no_memory_for_is_an_error() {
        assert!(Pages::<u64>::zeroed(usize::MAX / 8).is_err());
        assert!(Pages::<u64>::zeroed(usize::MAX).is_err());
        assert!(Pages::<u64>::zeroed(usize::MAX / 64).is_err());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn memory_is_given_back() {
        // Together more than an address space of 47 bits holds.
        for _ in 0..1 << 17 {
            let pages = Pages::<u64>::zeroed(1 << 27).unwrap();
            assert_eq!(pages.as_ptr().align_offset(2 << 20), 0);
        }
    }
}
