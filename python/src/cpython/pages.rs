//! Memory straight from the system: addresses first, memory behind them later.

use std::ptr::NonNull;

/// Reserves `bytes` of addresses that cannot be used yet. `None` where the system has none to give.
#[cfg(unix)]
pub(crate) fn reserve(bytes: usize) -> Option<NonNull<u8>> {
    map(bytes, libc::PROT_NONE)
}

/// Memory of zeros that takes no room until it is written to; never given back.
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
/// They are whole pages of what [`reserve`] returned.
#[cfg(unix)]
pub(crate) unsafe fn commit(address: NonNull<u8>, bytes: usize) -> bool {
    // SAFETY: the caller owns these pages.
    unsafe { libc::mprotect(address.as_ptr().cast(), bytes, libc::PROT_READ | libc::PROT_WRITE) == 0 }
}

/// Lets the system have the memory when it needs some, and keeps the addresses usable: they read as zeros, or as before.
/// What is used again before that costs nothing.
///
/// # Safety
///
/// They are whole committed pages, and nobody needs what they hold.
#[cfg(unix)]
pub(crate) unsafe fn discard(address: NonNull<u8>, bytes: usize) {
    // SAFETY: the caller owns these pages and what they hold is not needed. Failing keeps them as they are.
    unsafe { libc::madvise(address.as_ptr().cast(), bytes, libc::MADV_FREE) };
}

/// Asks for few large pages in place of many small ones, where the system has such. A whole large page becomes ours when
/// one byte of it is written to.
///
/// # Safety
///
/// They are addresses that [`reserve`] returned.
#[cfg(unix)]
#[cfg_attr(not(target_os = "linux"), allow(unused_variables))]
pub(crate) unsafe fn prefer_large_pages(address: NonNull<u8>, bytes: usize) {
    #[cfg(target_os = "linux")]
    // SAFETY: the caller owns these pages; what they hold stays. Failing keeps small ones.
    unsafe {
        libc::madvise(address.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE)
    };
}

/// About as many bytes of small objects as are made or released in the time that memory takes.
pub(crate) const AHEAD: usize = 2048;

/// Tells the processor that the memory at this address will soon be written to. Where small objects are made or
/// released one beside the other, it does not see that by itself, and waits for each.
#[inline]
#[cfg_attr(not(target_arch = "x86_64"), allow(unused_variables))]
pub(crate) fn expect_use<T>(address: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint, of which any address may be given.
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
