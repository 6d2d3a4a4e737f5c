//! zlib-rs: the record of a stream, and calls of the engine.
//!
//! The engine is called through its C interface, because that interface is stable and the only one with
//! copying, strategies and `inflateSync`.

#![allow(unsafe_code)]

use std::ffi::{CStr, c_int};
use std::mem::MaybeUninit;
use std::ptr::NonNull;

use libz_rs_sys as z;

use super::error::{Error, ErrorKind};
use crate::output::Output;

/// The most input and output of one call of the engine for decompression: less than a millisecond of work.
pub(super) const INFLATE_SLICE: usize = 256 << 10;

/// Between calls the engine holds no pointers to buffers. But it refuses to copy a stream whose output
/// pointer is null.
const NO_OUTPUT: *mut u8 = NonNull::dangling().as_ptr();

/// The engine's own record of a stream, at an address that does not change.
pub(super) struct Raw(pub(super) Box<z::z_stream>);

// SAFETY: the record and the state behind it belong to this value alone, and the engine keeps nothing per
// thread.
unsafe impl Send for Raw {}
// SAFETY: through a shared reference only plain numbers are read.
unsafe impl Sync for Raw {}

impl Raw {
    pub(super) fn new() -> Self {
        // SAFETY: all zero is what the engine expects before it is initialized: null pointers, no allocator.
        let mut raw: Box<z::z_stream> = Box::new(unsafe { MaybeUninit::zeroed().assume_init() });
        raw.next_out = NO_OUTPUT;
        Self(raw)
    }

    pub(super) fn failure(&self, code: c_int) -> Error {
        let detail = if self.0.msg.is_null() {
            String::new()
        } else {
            // SAFETY: the engine's messages are constant strings that end with NUL.
            unsafe { CStr::from_ptr(self.0.msg) }.to_string_lossy().into_owned()
        };
        Error::with_detail(ErrorKind::of(code), detail, self.0.total_in)
    }

    pub(super) fn expect(&self, code: c_int) -> Result<(), Error> {
        if code == z::Z_OK { Ok(()) } else { Err(self.failure(code)) }
    }

    /// Calls `engine` with the first `read` bytes of `input` and up to `write` bytes of spare memory, and
    /// advances both. Returns its code, and whether it left some of it unused. `Mem` if no memory can be had.
    pub(super) fn step(
        &mut self,
        input: &mut &[u8],
        read: usize,
        out: &mut Output<'_>,
        write: usize,
        engine: impl FnOnce(&mut z::z_stream) -> c_int,
    ) -> Result<(c_int, bool), Error> {
        let spare = out.spare().map_err(|_| Error::new(ErrorKind::Mem, self.0.total_in))?;
        let write = spare.len().min(write);
        let stream = &mut *self.0;
        stream.next_in = input.as_ptr().cast_mut();
        stream.avail_in = read as u32;
        stream.next_out = spare.as_mut_ptr().cast();
        stream.avail_out = write as u32;
        let code = engine(stream);
        let taken = read - stream.avail_in as usize;
        let (left, written) = (stream.avail_out as usize, write - stream.avail_out as usize);
        (stream.next_in, stream.next_out) = (std::ptr::null_mut(), NO_OUTPUT);
        (stream.avail_in, stream.avail_out) = (0, 0);
        *input = &input[taken..];
        // SAFETY: the engine wrote that many bytes from the start of the spare memory.
        unsafe { out.written(written) };
        Ok((code, left > 0))
    }
}
