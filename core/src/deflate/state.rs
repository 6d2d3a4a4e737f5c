//! The engine states of zlib-rs: 268 KB for a compressor, 40 KB for a decompressor.
//!
//! Making one costs as much as compressing several kilobytes, so each thread keeps the last one of each kind
//! that it no longer needed. A state is reset before it is used again, so nothing of the earlier stream
//! remains.

#![allow(unsafe_code)]

use std::cell::Cell;
use std::ffi::c_int;
use std::mem::size_of;
use std::ops::{Deref, DerefMut};

use libz_rs_sys as z;

use super::error::{Error, ErrorKind};
use super::level;
use super::stream::Config;
use super::zlib_rs::Raw;

thread_local! {
    static COMPRESSOR: Cell<Option<Compressor>> = const { Cell::new(None) };
    static DECOMPRESSOR: Cell<Option<Decompressor>> = const { Cell::new(None) };
}

/// The state of a compressor.
pub(super) struct Compressor {
    raw: Raw,
    /// The `wbits` and memory level, which cannot be changed.
    shape: (i32, i32),
}

impl Compressor {
    /// A new or reset state, with the level that `config` has in a header.
    pub(super) fn take(config: Config) -> Result<Self, Error> {
        let shape = (config.wbits, config.mem_level);
        match COMPRESSOR.try_with(Cell::take).unwrap_or_default() {
            Some(mut kept) if kept.shape == shape => kept.reset(config).map(|()| kept),
            kept => {
                let _ = COMPRESSOR.try_with(|place| place.set(kept));
                Self::make(config)
            }
        }
    }

    fn make(config: Config) -> Result<Self, Error> {
        let level = level::in_header(config.level).ok_or(Error::new(ErrorKind::Stream, 0))?;
        let mut raw = Raw::new();
        // SAFETY: the record is zeroed as `deflateInit2` asks; version and size are those it was built with.
        let code = unsafe {
            z::deflateInit2_(
                &mut *raw.0,
                level,
                z::Z_DEFLATED,
                config.wbits,
                config.mem_level,
                config.strategy,
                z::zlibVersion(),
                size_of::<z::z_stream>() as c_int,
            )
        };
        raw.expect(code)?;
        Ok(Self { raw, shape: (config.wbits, config.mem_level) })
    }

    /// Resets the state, with the level that `config` has in a header.
    pub(super) fn reset(&mut self, config: Config) -> Result<(), Error> {
        // SAFETY: `make` or `copy` initialized the stream.
        let code = unsafe { z::deflateReset(&mut *self.raw.0) };
        self.raw.expect(code)?;
        self.prepare_header(config)
    }

    /// Sets the level that the header will state, before any input.
    pub(super) fn prepare_header(&mut self, config: Config) -> Result<(), Error> {
        let level = level::in_header(config.level).ok_or(Error::new(ErrorKind::Stream, 0))?;
        // SAFETY: `make` or `copy` initialized the stream; before anything was put in, nothing is given out.
        let code = unsafe { z::deflateParams(&mut *self.raw.0, level, config.strategy) };
        self.raw.expect(code)
    }

    /// A second one in the same state.
    pub(super) fn copy(&self) -> Result<Self, Error> {
        let mut raw = Raw::new();
        // SAFETY: the source is initialized and only read (the C interface says `mut` by tradition).
        let code = unsafe { z::deflateCopy(&mut *raw.0, (&raw const *self.raw.0).cast_mut()) };
        raw.expect(code)?;
        Ok(Self { raw, shape: self.shape })
    }

    /// Keeps the state for this thread's next stream, if it is of the usual size.
    pub(super) fn keep(self) {
        const USUAL: i32 = 8;
        if self.shape.1 <= USUAL {
            // This fails while the thread ends.
            let _ = COMPRESSOR.try_with(|place| place.set(Some(self)));
        }
    }
}

impl Deref for Compressor {
    type Target = Raw;

    fn deref(&self) -> &Raw {
        &self.raw
    }
}

impl DerefMut for Compressor {
    fn deref_mut(&mut self) -> &mut Raw {
        &mut self.raw
    }
}

impl Drop for Compressor {
    fn drop(&mut self) {
        // SAFETY: initialized in `make` or `copy`, ended once.
        unsafe { z::deflateEnd(&mut *self.raw.0) };
    }
}

/// The state of a decompressor, which has the same size for all formats.
pub(super) struct Decompressor {
    raw: Raw,
}

impl Decompressor {
    /// A new or reset state.
    pub(super) fn take(wbits: i32) -> Result<Self, Error> {
        let Some(mut kept) = DECOMPRESSOR.try_with(Cell::take).unwrap_or_default() else {
            return Self::make(wbits);
        };
        // SAFETY: `make` or `copy` initialized the stream, which another one of this thread used.
        let code = unsafe { z::inflateReset2(&mut *kept.raw.0, wbits) };
        kept.raw.expect(code)?;
        // The engine does not reset these for raw streams.
        kept.raw.0.adler = 0;
        kept.raw.0.data_type = 0;
        Ok(kept)
    }

    fn make(wbits: i32) -> Result<Self, Error> {
        let mut raw = Raw::new();
        // SAFETY: the record is zeroed as `inflateInit2` asks; version and size are those it was built with.
        let code = unsafe {
            z::inflateInit2_(&mut *raw.0, wbits, z::zlibVersion(), size_of::<z::z_stream>() as c_int)
        };
        raw.expect(code)?;
        Ok(Self { raw })
    }

    /// Back to the beginning.
    pub(super) fn reset(&mut self) -> Result<(), Error> {
        // SAFETY: `make` or `copy` initialized the stream.
        let code = unsafe { z::inflateReset(&mut *self.raw.0) };
        self.raw.expect(code)
    }

    /// A second one in the same state.
    pub(super) fn copy(&self) -> Result<Self, Error> {
        let mut raw = Raw::new();
        // SAFETY: the source is initialized and only read.
        let code = unsafe { z::inflateCopy(&mut *raw.0, &*self.raw.0) };
        raw.expect(code)?;
        Ok(Self { raw })
    }

    /// Keeps the state for this thread's next stream.
    pub(super) fn keep(self) {
        let _ = DECOMPRESSOR.try_with(|place| place.set(Some(self)));
    }
}

impl Deref for Decompressor {
    type Target = Raw;

    fn deref(&self) -> &Raw {
        &self.raw
    }
}

impl DerefMut for Decompressor {
    fn deref_mut(&mut self) -> &mut Raw {
        &mut self.raw
    }
}

impl Drop for Decompressor {
    fn drop(&mut self) {
        // SAFETY: initialized in `make` or `copy`, ended once.
        unsafe { z::inflateEnd(&mut *self.raw.0) };
    }
}

/// Drops the states that this thread keeps, so that its next streams get new ones.
#[cfg(test)]
pub(super) fn forget() {
    drop(COMPRESSOR.take());
    drop(DECOMPRESSOR.take());
}

/// Whether the engine accepts `config`, apart from the level, which is checked elsewhere.
pub(super) const fn is_possible(config: Config) -> bool {
    let window = match config.wbits {
        wbits @ ..0 => wbits != -8 && -wbits >= 8 && -wbits <= 15,
        wbits @ ..16 => wbits >= 8,
        wbits => wbits - 16 >= 9 && wbits - 16 <= 15,
    };
    let memory = config.mem_level >= 1 && config.mem_level <= 9;
    window && memory && config.strategy >= 0 && config.strategy <= 4
}

/// Whether the engine accepts `wbits` for a decompressor.
pub(super) const fn is_readable(wbits: i32) -> bool {
    match wbits {
        wbits @ ..0 => -wbits >= 8 && -wbits <= 15,
        wbits if wbits < 48 => wbits & 15 == 0 || wbits & 15 >= 8,
        _ => false,
    }
}

/// The checksum that a decompressor reports before any input.
pub(super) const fn initial_adler(wbits: i32) -> u32 {
    if wbits < 0 { 0 } else { ((wbits >> 4) as u32 + 5) & 1 }
}
