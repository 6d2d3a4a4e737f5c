//! Memory straight from the system: addresses are reserved first, memory is committed later.

use std::ptr::NonNull;

/// Reserves `bytes` of addresses that cannot be used yet. `None` where the system has none.
#[cfg(unix)]
pub(crate) fn reserve(bytes: usize) -> Option<NonNull<u8>> {
    map(bytes, libc::PROT_NONE)
}

/// Zeroed memory that takes no pages until it is written to; never freed.
#[cfg(unix)]
pub(crate) fn zeros(bytes: usize) -> Option<NonNull<u8>> {
    map(bytes, libc::PROT_READ | libc::PROT_WRITE)
}

#[cfg(unix)]
fn map(bytes: usize, protection: libc::c_int) -> Option<NonNull<u8>> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANON | libc::MAP_NORESERVE;
    // SAFETY: asks for new addresses; nothing that exists is touched.
    let address = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, -1, 0) };
    if address == libc::MAP_FAILED { None } else { NonNull::new(address.cast()) }
}

/// Makes reserved addresses usable. False when the system refuses.
///
/// # Safety
///
/// They are whole pages of a range that [`reserve`] returned.
#[cfg(unix)]
pub(crate) unsafe fn commit(address: NonNull<u8>, bytes: usize) -> bool {
    // SAFETY: the caller owns these pages.
    unsafe { libc::mprotect(address.as_ptr().cast(), bytes, libc::PROT_READ | libc::PROT_WRITE) == 0 }
}

/// Lets the system reclaim the memory when it needs some, and keeps the addresses usable: they read as zeros,
/// or as before. Memory that is used again before that costs nothing.
///
/// # Safety
///
/// They are whole committed pages, and their contents are no longer needed.
#[cfg(unix)]
pub(crate) unsafe fn discard(address: NonNull<u8>, bytes: usize) {
    // SAFETY: the caller owns these pages and their contents are not needed. Failure keeps them as they are.
    unsafe { libc::madvise(address.as_ptr().cast(), bytes, libc::MADV_FREE) };
}

/// Requests few large pages in place of many small ones, where the system has such. The first write to a
/// large page allocates all of it.
///
/// # Safety
///
/// They are addresses that [`reserve`] returned.
#[cfg(unix)]
#[cfg_attr(not(target_os = "linux"), allow(unused_variables))]
pub(crate) unsafe fn prefer_large_pages(address: NonNull<u8>, bytes: usize) {
    #[cfg(target_os = "linux")]
    // SAFETY: the caller owns these pages; their contents stay. Failure keeps small ones.
    unsafe {
        libc::madvise(address.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE)
    };
}

/// About how many bytes of small objects are made or released within one memory latency.
pub(crate) const AHEAD: usize = 2048;

/// Tells the processor that the memory at this address will soon be written to. Where adjacent small objects
/// are made or released, it does not predict this, and waits for each.
#[inline]
#[cfg_attr(not(target_arch = "x86_64"), allow(unused_variables))]
pub(crate) fn expect_use<T>(address: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint, which accepts any address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
}

#[cfg(not(unix))]
mod unsupported {
    use std::ptr::NonNull;

    pub(crate) fn reserve(_: usize) -> Option<NonNull<u8>> {
        None
    }

    pub(crate) fn zeros(_: usize) -> Option<NonNull<u8>> {
        None
    }

    pub(crate) unsafe fn commit(_: NonNull<u8>, _: usize) -> bool {
        false
    }

    pub(crate) unsafe fn discard(_: NonNull<u8>, _: usize) {}

    pub(crate) unsafe fn prefer_large_pages(_: NonNull<u8>, _: usize) {}
}

#[cfg(not(unix))]
pub(crate) use unsupported::{commit, discard, prefer_large_pages, reserve, zeros};
