//! Decompressing pages.

use super::error::{Fault, OTHER_SIZE};
use super::{lz4, snappy};
use crate::deflate::{self, Output};
use crate::zstd::{self, DecoderSettings};
use crate::{Task, memory};

/// How pages are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Codec {
    None,
    Snappy,
    Gzip,
    Zstd,
    Lz4,
}

/// The number by which files name Zstandard.
pub(super) const ZSTD: i32 = 6;

impl Codec {
    pub(super) fn of(code: i64) -> Result<Self, Fault> {
        let unsupported = |name: &str| {
            Err(Fault::Unsupported(format!("the column is compressed with {name}, which is not supported")))
        };
        match code {
            0 => Ok(Self::None),
            1 => Ok(Self::Snappy),
            2 => Ok(Self::Gzip),
            3 => unsupported("LZO"),
            4 => unsupported("Brotli"),
            5 => unsupported("LZ4 in Hadoop's frames (the codec LZ4; LZ4_RAW is)"),
            6 => Ok(Self::Zstd),
            7 => Ok(Self::Lz4),
            _ => unsupported(&format!("the codec of the number {code}")),
        }
    }

    /// Appends the content of `packed`, which must have `size` bytes.
    ///
    /// Memory grows with the content, not by the size, which the file only claims.
    pub(super) fn decompress(
        self,
        packed: &[u8],
        size: usize,
        plain: &mut Vec<u8>,
        task: &Task<'_>,
    ) -> Result<(), Fault> {
        let before = plain.len();
        match self {
            // Some writers leave out what has no content.
            _ if size == 0 && packed.is_empty() => {}
            Self::None => {
                if packed.len() == size {
                    memory::append(plain, packed)?;
                }
            }
            Self::Snappy => snappy::decompress(packed, size, plain, task)?,
            Self::Lz4 => lz4::decompress(packed, size, plain, task)?,
            Self::Gzip => gunzip(packed, size, plain, task)?,
            Self::Zstd => unzstd(packed, size, plain, task)?,
        }
        if plain.len() - before == size { Ok(()) } else { Err(OTHER_SIZE) }
    }
}

fn gunzip(packed: &[u8], size: usize, plain: &mut Vec<u8>, task: &Task<'_>) -> Result<(), Fault> {
    let mut output = Output::new();
    output.resume(plain);
    output.set_left(size);
    let done = deflate::gunzip(packed, 1, &mut output, task);
    *plain = output.into_bytes().into_vec();
    done.map_err(|error| match error.kind {
        deflate::ErrorKind::Stopped => Fault::Stopped,
        deflate::ErrorKind::Mem => Fault::OutOfMemory,
        deflate::ErrorKind::Limit => OTHER_SIZE,
        _ => Fault::Wrong("a page's gzip data is invalid"),
    })
}

fn unzstd(packed: &[u8], size: usize, plain: &mut Vec<u8>, task: &Task<'_>) -> Result<(), Fault> {
    let mut output = Output::new();
    output.resume(plain);
    let done = zstd::decompress(packed, &DecoderSettings::default(), Some(size), &mut output, task);
    *plain = output.into_bytes().into_vec();
    done.map_err(|error| match error.kind {
        zstd::ErrorKind::Stopped => Fault::Stopped,
        zstd::ErrorKind::OutOfMemory => Fault::OutOfMemory,
        zstd::ErrorKind::Limit => OTHER_SIZE,
        _ => Fault::Wrong("a page's Zstandard data is invalid"),
    })
}
