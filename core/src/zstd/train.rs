//! Making dictionaries from samples.
//!
//! The library does that in one call, which takes seconds for many samples: it runs on a thread of its own, on a copy
//! of the samples, where a caller who is interrupted leaves it.

#![allow(unsafe_code)]

use std::ffi::c_uint;

use zstd::zstd_safe::zstd_sys as z;

use super::error::{Error, ErrorKind};
use super::library::{Failure, size};
use crate::away::Away;
use crate::{Task, memory};

/// Samples, one after the other, and the length of each.
#[derive(Debug, Clone, Default)]
pub struct Samples {
    joined: Vec<u8>,
    lengths: Vec<usize>,
}

/// The library's words for samples with which it cannot train.
const TOO_SMALL: &str = "Src size is incorrect";

/// The bytes that are copied between two checks of the task.
const STRETCH: usize = 1 << 20;

impl Samples {
    /// Copies `samples`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::OutOfMemory`] and `Stopped`.
    pub fn copied(samples: &[&[u8]], task: &Task<'_>) -> Result<Self, Error> {
        let total = samples.iter().map(|sample| sample.len()).fold(0, usize::saturating_add);
        let mut all =
            Self { joined: memory::with_capacity(total)?, lengths: memory::with_capacity(samples.len())? };
        for sample in samples {
            task.check()?;
            for stretch in sample.chunks(STRETCH) {
                task.check()?;
                all.joined.extend_from_slice(stretch);
            }
            all.lengths.push(sample.len());
        }
        Ok(all)
    }

    /// Whether the library can train with them. It uses three quarters of the samples, and tests with the others; if the
    /// former have less than eight bytes together, it divides by zero or reads past their end (1.5.7).
    fn can_train(&self) -> bool {
        const LEAST: usize = 8;
        // Rounded down, as the library does; with few samples it refuses by itself.
        let training = self.lengths.len() / 4 * 3 + self.lengths.len() % 4 * 3 / 4;
        let mut total = 0_usize;
        self.lengths[..training].iter().any(|length| {
            total = total.saturating_add(*length);
            total >= LEAST
        })
    }

    fn count(&self) -> Result<c_uint, Error> {
        self.lengths.len().try_into().map_err(|_| Error::new(ErrorKind::OutOfMemory, 0))
    }
}

/// A dictionary of at most `capacity` bytes for content like `samples`.
///
/// # Errors
///
/// [`ErrorKind::Train`] if there are too few samples, `OutOfMemory` and `Stopped`.
pub fn train(samples: Samples, capacity: usize, task: &Task<'_>) -> Result<Vec<u8>, Error> {
    let count = samples.count()?;
    if !samples.can_train() {
        return Err(Error { kind: ErrorKind::Train, detail: TOO_SMALL, offset: 0 });
    }
    // Of its attempts it keeps the best, which is this error if there was no memory for any.
    let failed = |failure: Failure| {
        if failure.is_generic() {
            Error::new(ErrorKind::OutOfMemory, 0)
        } else {
            failure.into_error(ErrorKind::Train, 0)
        }
    };
    made(capacity, task, move |room| {
        // SAFETY: all memory is valid for its length, and the lengths add up to that of the samples.
        size(unsafe {
            z::ZDICT_trainFromBuffer(
                room.as_mut_ptr().cast(),
                room.len(),
                samples.joined.as_ptr().cast(),
                samples.lengths.as_ptr(),
                count,
            )
        })
        .map_err(failed)
    })
}

/// The dictionary that begins with a header for content like `samples`, and ends with `content`, in at most `capacity`
/// bytes.
///
/// # Errors
///
/// [`ErrorKind::Finalize`] if that does not fit or there are no samples, `OutOfMemory` and `Stopped`.
pub fn finalize(
    content: Vec<u8>,
    samples: Samples,
    capacity: usize,
    level: i32,
    task: &Task<'_>,
) -> Result<Vec<u8>, Error> {
    let count = samples.count()?;
    let failed = |failure: Failure| failure.into_error(ErrorKind::Finalize, 0);
    made(capacity, task, move |room| {
        let parameters = z::ZDICT_params_t { compressionLevel: level, notificationLevel: 0, dictID: 0 };
        // SAFETY: all memory is valid for its length, and the lengths add up to that of the samples.
        size(unsafe {
            z::ZDICT_finalizeDictionary(
                room.as_mut_ptr().cast(),
                room.len(),
                content.as_ptr().cast(),
                content.len(),
                samples.joined.as_ptr().cast(),
                samples.lengths.as_ptr(),
                count,
                parameters,
            )
        })
        .map_err(failed)
    })
}

/// What `write` leaves in memory of `capacity` bytes.
fn made(
    capacity: usize,
    task: &Task<'_>,
    write: impl FnOnce(&mut [u8]) -> Result<usize, Error> + Send + 'static,
) -> Result<Vec<u8>, Error> {
    let mut room = memory::filled(0_u8, capacity)?;
    task.check()?;
    let job = Away::start(move || {
        let length = write(&mut room)?;
        room.truncate(length);
        Ok(room)
    });
    job.wait(task)?
}
