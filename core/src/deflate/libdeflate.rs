//! Whole buffers: a safe interface to libdeflate.
//!
//! The fastest engine of those measured. It can be neither interrupted nor continued, so its callers bound
//! the size of a call. Each thread keeps one compressor and one decompressor: making them costs as much as
//! processing a kilobyte.

#![allow(unsafe_code)]

use std::cell::Cell;
use std::ptr::NonNull;

use libdeflate_sys as ld;

use crate::memory::OutOfMemory;
use crate::output::Output;

thread_local! {
    // Kept, because making one costs as much as processing a kilobyte.
    static DECODER: Cell<Option<Decoder>> = const { Cell::new(None) };
    static ENCODER: Cell<Option<Encoder>> = const { Cell::new(None) };
}

struct Decoder(NonNull<ld::libdeflate_decompressor>);

impl Drop for Decoder {
    fn drop(&mut self) {
        // SAFETY: made by `libdeflate_alloc_decompressor`, freed once.
        unsafe { ld::libdeflate_free_decompressor(self.0.as_ptr()) };
    }
}

struct Encoder {
    level: i32,
    state: NonNull<ld::libdeflate_compressor>,
}

impl Drop for Encoder {
    fn drop(&mut self) {
        // SAFETY: made by `libdeflate_alloc_compressor`, freed once.
        unsafe { ld::libdeflate_free_compressor(self.state.as_ptr()) };
    }
}

/// Why a buffer could not be decompressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unable {
    /// The output does not fit.
    TooSmall,
    /// There is no memory for so much output, or for the engine.
    Memory,
    /// The data is bad or incomplete.
    Other,
}

impl From<OutOfMemory> for Unable {
    fn from(_: OutOfMemory) -> Self {
        Self::Memory
    }
}

/// Decompresses a raw stream from the beginning of `input` to at most `size` bytes, and returns how many
/// bytes of `input` were read.
///
/// For invalid data, the other engine reports what is wrong.
pub(super) fn inflate(input: &[u8], out: &mut Output<'_>, size: usize) -> Result<usize, Unable> {
    let kept = DECODER.try_with(Cell::take).unwrap_or_default();
    // SAFETY: takes nothing, gives a state or null.
    let make = || NonNull::new(unsafe { ld::libdeflate_alloc_decompressor() }).map(Decoder);
    let decoder = kept.or_else(make).ok_or(Unable::Memory)?;
    let spare = out.spare_for(size)?;
    let size = spare.len().min(size);
    let (mut read, mut written) = (0, 0);
    // SAFETY: the state is valid and used by this thread alone; both buffers are valid for their lengths, and
    // the engine only writes to the second.
    let code = unsafe {
        ld::libdeflate_deflate_decompress_ex(
            decoder.0.as_ptr(),
            input.as_ptr().cast(),
            input.len(),
            spare.as_mut_ptr().cast(),
            size,
            &mut read,
            &mut written,
        )
    };
    let _ = DECODER.try_with(|kept| kept.set(Some(decoder)));
    match code {
        ld::libdeflate_result_LIBDEFLATE_SUCCESS => {
            // SAFETY: the engine wrote that many bytes from the start of the spare memory.
            unsafe { out.written(written) };
            Ok(read)
        }
        ld::libdeflate_result_LIBDEFLATE_INSUFFICIENT_SPACE => Err(Unable::TooSmall),
        _ => Err(Unable::Other),
    }
}

/// An upper bound on the compressed size of `len` bytes.
fn bound(len: usize) -> usize {
    // SAFETY: without a state it answers for every level.
    unsafe { ld::libdeflate_deflate_compress_bound(std::ptr::null_mut(), len) }
}

/// Compresses `input` to a raw stream at libdeflate's `level`; `None` if the output does not fit or memory is
/// insufficient.
pub(super) fn deflate(level: i32, input: &[u8], out: &mut Output<'_>) -> Option<()> {
    // Level 0 needs hardly any state, and must not replace the kept state of another level.
    let keep = level > 0;
    let kept = if keep { ENCODER.try_with(Cell::take).unwrap_or_default() } else { None };
    let make = || {
        // SAFETY: gives a state or null.
        let state = NonNull::new(unsafe { ld::libdeflate_alloc_compressor(level) })?;
        Some(Encoder { level, state })
    };
    let encoder = kept.filter(|kept| kept.level == level).or_else(make)?;
    let spare = out.spare_for(bound(input.len())).ok()?;
    // SAFETY: the state is valid and used by this thread alone; both buffers are valid for their lengths.
    let written = unsafe {
        ld::libdeflate_deflate_compress(
            encoder.state.as_ptr(),
            input.as_ptr().cast(),
            input.len(),
            spare.as_mut_ptr().cast(),
            spare.len(),
        )
    };
    if keep {
        let _ = ENCODER.try_with(|kept| kept.set(Some(encoder)));
    }
    // SAFETY: the engine wrote that many bytes from the start of the spare memory; none when it is too small.
    unsafe { out.written(written) };
    (written > 0).then_some(())
}

/// CRC-32 of `data`, continued from `value`.
pub(super) fn crc32(value: u32, data: &[u8]) -> u32 {
    // SAFETY: `data` is valid for its length; null would mean the initial value, so it is never passed.
    unsafe { ld::libdeflate_crc32(value, data.as_ptr().cast(), data.len()) }
}

/// Adler-32 of `data`, continued from `value`.
pub(super) fn adler32(value: u32, data: &[u8]) -> u32 {
    // SAFETY: as in `crc32`.
    unsafe { ld::libdeflate_adler32(value, data.as_ptr().cast(), data.len()) }
}
