//! Decompression, of a stream or of a whole buffer.
//!
//! Both go through the library's window. Between two calls of the library, less than a millisecond of work, the task is
//! checked.

use super::compressor::BLOCK;
use super::decoder::{Decoder, DecoderSettings};
use super::error::{Error, ErrorKind};
use super::frame::Header;
use super::library::Failure;
use crate::Task;
use crate::output::Output;

/// The most that one call of the library writes.
const SLICE: usize = 256 << 10;

/// By how much the first piece of output is larger than its input.
const TYPICAL_RATIO: usize = 3;

/// Why a call on a stream returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// The input is used up, and all output that is due was written.
    More,
    /// The output reached its limit; there may be more to come.
    Full,
    /// The frame is complete.
    End,
}

/// A decompressor of one frame.
pub struct Decompressor {
    /// `None` while it is dropped.
    decoder: Option<Decoder>,
    ended: bool,
    /// Whether the library may have output left that it had no room for.
    has_more: bool,
    /// The number of bytes read.
    read: u64,
}

impl Decompressor {
    /// A new stream.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Decompress`] if the settings are out of bounds, `DecompressionDictionary` and `OutOfMemory`.
    pub fn new(settings: &DecoderSettings) -> Result<Self, Error> {
        Ok(Self { decoder: Some(Decoder::new(settings)?), ended: false, has_more: false, read: 0 })
    }

    /// Whether the frame is complete.
    pub fn ended(&self) -> bool {
        self.ended
    }

    /// The bytes of memory that its state takes.
    pub fn memory(&self) -> usize {
        self.decoder.as_ref().map_or(0, Decoder::memory)
    }

    /// The number of bytes read.
    pub fn total_in(&self) -> u64 {
        self.read
    }

    /// Forgets the frame, complete or not, and begins another one. The dictionary is kept, a prefix is not.
    pub fn reset(&mut self) {
        (self.ended, self.has_more) = (false, false);
        if let Some(decoder) = &mut self.decoder {
            decoder.reset();
        }
    }

    /// Decompresses `input`, which is advanced past what was read, at most to the end of the frame.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Decompress`] for invalid data, after which another frame begins; `OutOfMemory` and `Stopped`.
    pub fn run(&mut self, input: &mut &[u8], out: &mut Output<'_>, task: &Task<'_>) -> Result<Status, Error> {
        if self.ended {
            return Ok(Status::End);
        }
        let Some(decoder) = &mut self.decoder else { return Ok(Status::End) };
        // The library takes the sixteenth call without progress in a row for an error.
        if input.is_empty() && !self.has_more {
            return Ok(Status::More);
        }
        loop {
            task.check()?;
            let piece = &input[..input.len().min(BLOCK)];
            let spare = out.spare_for(piece.len().saturating_mul(TYPICAL_RATIO).min(SLICE))?;
            let room = spare.len().min(SLICE);
            let step = match decoder.step(piece, &mut spare[..room]) {
                Ok(step) => step,
                Err(failure) => {
                    let error = failed(self.read)(failure);
                    decoder.reset();
                    self.has_more = false;
                    return Err(error);
                }
            };
            // SAFETY: the library has written so many bytes.
            #[allow(unsafe_code)]
            unsafe {
                out.written(step.written);
            }
            *input = &input[step.read..];
            self.read += step.read as u64;
            task.advance(step.read as u64);
            // What it has kept back would have filled the room.
            self.has_more = step.written == room;
            if step.ended {
                self.ended = true;
                return Ok(Status::End);
            }
            if out.left() == 0 {
                return Ok(Status::Full);
            }
            if input.is_empty() && !self.has_more {
                return Ok(Status::More);
            }
        }
    }
}

impl Drop for Decompressor {
    fn drop(&mut self) {
        if let Some(decoder) = self.decoder.take() {
            decoder.keep();
        }
    }
}

/// For `map_err`: an error in the data, after `offset` bytes of input.
fn failed(offset: u64) -> impl Fn(Failure) -> Error {
    move |failure| failure.into_error(ErrorKind::Decompress, offset)
}

/// Decompresses all frames of `input`.
///
/// # Errors
///
/// [`ErrorKind::Decompress`] for invalid data, `Truncated` if the data ends inside a frame, `Limit` if there would be
/// more than `max_output` bytes, `DecompressionDictionary`, `OutOfMemory` and `Stopped`.
pub fn decompress(
    input: &[u8],
    settings: &DecoderSettings,
    max_output: Option<usize>,
    out: &mut Output<'_>,
    task: &Task<'_>,
) -> Result<(), Error> {
    let before = out.len();
    // One byte more than allowed shows that there is more.
    out.set_left(max_output.unwrap_or(usize::MAX).saturating_add(1));
    let mut rest = input;
    loop {
        let offset = (input.len() - rest.len()) as u64;
        // For each frame a new one, as in the original: a prefix counts for each.
        let mut stream = Decompressor::new(settings)?;
        stream.read = offset;
        let ended = stream.frame(&mut rest, out, task)?;
        if max_output.is_some_and(|most| out.len() - before > most) {
            return Err(Error::new(ErrorKind::Limit, (input.len() - rest.len()) as u64));
        }
        if !ended {
            return Err(Error::new(ErrorKind::Truncated, input.len() as u64));
        }
        if rest.is_empty() {
            return Ok(());
        }
    }
}

impl Decompressor {
    /// Decompresses a frame; false if it is incomplete, or the output full.
    fn frame(&mut self, input: &mut &[u8], out: &mut Output<'_>, task: &Task<'_>) -> Result<bool, Error> {
        // An output that need not grow is not copied either.
        out.reserve(expected_size(input))?;
        Ok(self.run(input, out, task)? == Status::End)
    }
}

/// The most content that is reserved on the word of a frame of so many bytes. More grows as it comes.
fn plausible_length(packed: usize) -> usize {
    packed.saturating_mul(64).saturating_add(1 << 20)
}

/// About how large the content of `input` is, to be lent memory of that size.
pub fn expected_size(input: &[u8]) -> usize {
    let known = Header::read(input).and_then(|header| usize::try_from(header.content?).ok());
    known.filter(|&length| length <= plausible_length(input.len())).unwrap_or(0)
}
