//! What files are read from.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::error::Error;
use crate::{Task, memory};

/// Bytes that can be read at any place, by several readers.
pub trait Source: Send + Sync {
    /// How many there are.
    ///
    /// # Errors
    ///
    /// Those of the system.
    fn size(&self) -> io::Result<u64>;

    /// Reads some bytes from this offset on, at most as many as `buffer` takes; 0 at the end.
    ///
    /// # Errors
    ///
    /// Those of the system.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;
}

impl Source for File {
    fn size(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match FileExt::read_at(self, buffer, offset) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => return read,
            }
        }
    }
}

impl Source for Vec<u8> {
    fn size(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = usize::try_from(offset).ok().and_then(|offset| self.get(offset..)).unwrap_or_default();
        let length = rest.len().min(buffer.len());
        buffer[..length].copy_from_slice(&rest[..length]);
        Ok(length)
    }
}

/// The bytes of a part of a file.
pub(super) fn read(source: &dyn Source, offset: u64, length: u64, task: &Task<'_>) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    append(source, offset, length, &mut bytes, task)?;
    Ok(bytes)
}

/// Appends a part of a file. Memory grows with what is really there.
pub(super) fn append(
    source: &dyn Source,
    offset: u64,
    length: u64,
    bytes: &mut Vec<u8>,
    task: &Task<'_>,
) -> Result<(), Error> {
    /// The most bytes that are read at a time.
    const PIECE: u64 = 1 << 20;
    let mut done = 0;
    while done < length {
        task.check()?;
        let before = bytes.len();
        let piece = (length - done).min(PIECE) as usize;
        memory::reserve(bytes, piece)?;
        bytes.resize(before + piece, 0);
        let read = source.read_at(offset + done, &mut bytes[before..])?;
        bytes.truncate(before + read);
        if read == 0 {
            return Err(Error::Malformed { message: "the file ends early", offset: offset + done });
        }
        done += read as u64;
    }
    Ok(())
}
