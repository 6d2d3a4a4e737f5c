//! Memory straight from the system: addresses first, memory behind them later.

use std::ptr::NonNull;

/// Reserves `bytes` of addresses that cannot be used yet. `None` where the system has none to give.
#[cfg(unix)]
pub(super) fn reserve(bytes: usize) -> Option<NonNull<u8>> {
    map(bytes, libc::PROT_NONE)
}

/// Memory of zeros that takes no room until it is written to; never given back.
#[cfg(unix)]
pub(super) fn zeros(bytes: usize) -> Option<NonNull<u8>> {
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
pub(super) unsafe fn commit(address: NonNull<u8>, bytes: usize) -> bool {
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
pub(super) unsafe fn discard(address: NonNull<u8>, bytes: usize) {
    // SAFETY: the caller owns these pages and what they hold is not needed. Failing keeps them as they are.
    unsafe { libc::madvise(address.as_ptr().cast(), bytes, libc::MADV_FREE) };
}

#[cfg(not(unix))]
mod unsupported {
    use std::ptr::NonNull;

    pub(in super::super) fn reserve(_: usize) -> Option<NonNull<u8>> {
        None
    }

    pub(in super::super) fn zeros(_: usize) -> Option<NonNull<u8>> {
        None
    }

    pub(in super::super) unsafe fn commit(_: NonNull<u8>, _: usize) -> bool {
        false
    }

    pub(in super::super) unsafe fn discard(_: NonNull<u8>, _: usize) {}
}

#[cfg(not(unix))]
pub(super) use unsupported::{commit, discard, reserve, zeros};
