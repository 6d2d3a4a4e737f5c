//! The streaming decompressor: zlib-rs behind zlib's interface.
//!
//! A call of the engine gets at most 256 KB of input and of output, less than a millisecond of work, between
//! two checks of the task.

#![allow(unsafe_code)]

use std::ffi::c_int;

use libz_rs_sys as z;

use super::error::{Error, ErrorKind};
use super::state::{self, Decompressor};
use super::stream::Status;
use super::zlib_rs::{INFLATE_SLICE, Raw};
use crate::Task;
use crate::output::Output;

/// The end of a block.
pub(super) struct BlockEnd {
    /// The position in bits from the beginning of the stream.
    pub(super) end: usize,
    /// Whether it was the last block.
    pub(super) last: bool,
}

/// A decompressor of a stream.
///
/// ```
/// use offlock_core::deflate::{Inflater, Output, Status, compress};
/// use offlock_core::Task;
///
/// let (mut packed, task) = (Output::new(), Task::new());
/// compress(b"off the lock", 6, 15, &mut packed, &task)?;
/// let packed = packed.into_bytes();
///
/// let (mut stream, mut plain, mut rest) = (Inflater::new(15)?, Output::new(), &packed[..]);
/// assert_eq!(stream.run(&mut rest, &mut plain, &task)?, Status::End);
/// assert_eq!(&plain.into_bytes()[..], b"off the lock");
/// # Ok::<_, offlock_core::deflate::Error>(())
/// ```
pub struct Inflater {
    /// The engine's state, made when it is first needed.
    state: Option<Decompressor>,
    wbits: i32,
    ended: bool,
    /// The error in the data, which further calls report again.
    failure: Option<Box<Error>>,
}

impl Inflater {
    /// A new stream. `wbits` is 8 to 15 for the zlib format, 0 to take the window size from the data,
    /// negative for raw data, plus 16 for gzip, plus 32 for either format.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Stream`] if `wbits` is out of range.
    pub fn new(wbits: i32) -> Result<Self, Error> {
        if !state::is_readable(wbits) {
            return Err(Error::new(ErrorKind::Stream, 0));
        }
        Ok(Self { state: None, wbits, ended: false, failure: None })
    }

    fn raw(&mut self) -> Result<&mut Raw, Error> {
        let state = match self.state.take() {
            Some(state) => state,
            None => Decompressor::take(self.wbits)?,
        };
        Ok(self.state.insert(state))
    }

    /// Decompresses `input`, which is advanced past what was read.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Data`] for invalid data, `Mem` and `Stopped`.
    pub fn run(&mut self, input: &mut &[u8], out: &mut Output<'_>, task: &Task<'_>) -> Result<Status, Error> {
        self.run_watched(input, out, task, |_, _| {})
    }

    /// The same, but calls `made` after each write, with the previous length of the output. The new bytes are
    /// then still in the processor's caches.
    pub(super) fn run_watched(
        &mut self,
        input: &mut &[u8],
        out: &mut Output<'_>,
        task: &Task<'_>,
        mut made: impl FnMut(&Output<'_>, usize),
    ) -> Result<Status, Error> {
        if self.ended {
            return Ok(Status::End);
        }
        if let Some(failure) = &self.failure {
            return Err(Error::clone(failure));
        }
        loop {
            task.check()?;
            let read = input.len().min(INFLATE_SLICE);
            let (before, start) = (input.len(), out.len());
            // SAFETY: `step` has set input and output of an initialized stream.
            let engine = |stream: &mut z::z_stream| unsafe { z::inflate(stream, z::Z_SYNC_FLUSH) };
            let (code, left) = self.raw()?.step(input, read, out, INFLATE_SLICE, engine)?;
            task.advance((before - input.len()) as u64);
            made(out, start);
            match code {
                z::Z_STREAM_END => {
                    self.ended = true;
                    return Ok(Status::End);
                }
                z::Z_NEED_DICT => return Ok(Status::NeedDict),
                z::Z_OK | z::Z_BUF_ERROR if out.left() == 0 => return Ok(Status::Full),
                z::Z_OK if !left || !input.is_empty() => {}
                z::Z_OK | z::Z_BUF_ERROR => return Ok(Status::More),
                code => return Err(self.failed(code)?),
            }
        }
    }

    fn failed(&mut self, code: c_int) -> Result<Error, Error> {
        let mut failure = self.raw()?.failure(code);
        // The engine's fast loop reports what is wrong, but is called once more before it returns. (As of
        // 0.6.8.)
        if failure.detail == "repeated call with bad state" {
            failure.detail.clear();
        }
        self.failure = (failure.kind == ErrorKind::Data).then(|| failure.clone().into());
        Ok(failure)
    }

    /// Decompresses up to the end of a block; `None` if the output is full first.
    pub(super) fn next_block(
        &mut self,
        input: &mut &[u8],
        out: &mut Output<'_>,
    ) -> Result<Option<BlockEnd>, Error> {
        let read = input.len().min(INFLATE_SLICE);
        // SAFETY: `step` has set input and output of an initialized stream.
        let engine = |stream: &mut z::z_stream| unsafe { z::inflate(stream, z::Z_BLOCK) };
        let raw = self.raw()?;
        let (code, left) = raw.step(input, read, out, INFLATE_SLICE, engine)?;
        let state = raw.0.data_type;
        match code {
            z::Z_OK if state & 128 != 0 => {
                let end = raw.0.total_in as usize * 8 - (state & 7) as usize;
                Ok(Some(BlockEnd { end, last: state & 64 != 0 }))
            }
            z::Z_OK if !left || !input.is_empty() => Ok(None),
            z::Z_OK => Err(Error::new(ErrorKind::Buf, raw.0.total_in)),
            code => Err(raw.failure(code)),
        }
    }

    /// Sets the preset dictionary: when the stream asks for it or, for raw data, at any time.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Stream`] if the stream does not ask for a dictionary, `Data` if it asks for another one,
    /// and `Mem`.
    pub fn set_dictionary(&mut self, dictionary: &[u8]) -> Result<(), Error> {
        let raw = self.raw()?;
        // SAFETY: the stream is initialized, the dictionary valid for its length; the engine copies it.
        let code = unsafe {
            z::inflateSetDictionary(
                &mut *raw.0,
                dictionary.as_ptr(),
                dictionary.len().min(u32::MAX as usize) as u32,
            )
        };
        raw.expect(code)
    }

    /// Skips `input` up to the next full flush point; true if there was one.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Stream`] and `Mem`.
    pub fn sync(&mut self, input: &mut &[u8]) -> Result<bool, Error> {
        loop {
            let read = input.len().min(u32::MAX as usize);
            // SAFETY: `step` has set the input of an initialized stream; `inflateSync` writes no output.
            let engine = |stream: &mut z::z_stream| unsafe { z::inflateSync(stream) };
            let raw = self.raw()?;
            let (code, _) = raw.step(input, read, &mut Output::new(), 0, engine)?;
            match code {
                z::Z_OK => {
                    self.failure = None;
                    return Ok(true);
                }
                z::Z_DATA_ERROR | z::Z_BUF_ERROR if input.is_empty() => return Ok(false),
                z::Z_DATA_ERROR => {}
                code => return Err(raw.failure(code)),
            }
        }
    }

    /// Whether the stream is at a block boundary made by a flush.
    pub fn at_sync_point(&mut self) -> bool {
        // SAFETY: a `Decompressor` is initialized.
        self.state.as_mut().is_some_and(|state| unsafe { z::inflateSyncPoint(&mut *state.0) } == 1)
    }

    /// Resets the stream, keeping its memory.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Stream`] if the engine's state is inconsistent, which does not happen.
    pub fn reset(&mut self) -> Result<(), Error> {
        (self.ended, self.failure) = (false, None);
        match &mut self.state {
            Some(state) => state.reset(),
            None => Ok(()),
        }
    }

    /// Gives the engine's state back, for the next stream of this thread. The counts begin anew.
    pub(super) fn release(&mut self) {
        if let Some(state) = self.state.take() {
            state.keep();
        }
    }

    /// A copy of the stream in its present state.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Mem`].
    pub fn copy(&self) -> Result<Self, Error> {
        let state = self.state.as_ref().map(Decompressor::copy).transpose()?;
        Ok(Self { state, wbits: self.wbits, ended: self.ended, failure: self.failure.clone() })
    }

    /// Whether the stream is complete.
    pub fn ended(&self) -> bool {
        self.ended
    }

    /// The approximate size of the state in memory, as zlib documents it.
    pub fn memory(&self) -> usize {
        if self.state.is_some() { 40 << 10 } else { 0 }
    }

    /// Bytes read since the beginning.
    pub fn total_in(&self) -> u64 {
        self.state.as_ref().map_or(0, |state| state.0.total_in)
    }

    /// Bytes written since the beginning.
    pub fn total_out(&self) -> u64 {
        self.state.as_ref().map_or(0, |state| state.0.total_out)
    }

    /// The checksum of the uncompressed data so far, or of the dictionary that the stream asks for.
    pub fn adler(&self) -> u32 {
        self.state.as_ref().map_or(state::initial_adler(self.wbits), |state| state.0.adler as u32)
    }

    /// The position within the byte and block, in zlib's encoding.
    pub fn data_type(&self) -> i32 {
        self.state.as_ref().map_or(0, |state| state.0.data_type)
    }
}

impl Drop for Inflater {
    fn drop(&mut self) {
        self.release();
    }
}
