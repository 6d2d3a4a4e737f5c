//! Reads a file and decompresses it piece by piece.
//!
//! The content decides, not the name: a file that begins like gzip or Zstandard is decompressed, whatever it is
//! called. All members of a gzip file and all frames of a Zstandard file are read.

use std::fs::File;
use std::io::{Read, Seek};
use std::path::Path;

use zstd::stream::raw::{DParameter, Decoder as ZstdDecoder, Operation};

use super::error::ErrorKind;
use crate::deflate::{self, GzipDecoder, Members, Output, Status};
use crate::{Task, memory};

/// The number of compressed bytes that are read at a time.
const PACKED: usize = 128 << 10;

/// The most bytes that one call adds.
const PLAIN: usize = 256 << 10;

/// The largest window of Zstandard data, as a power of two: 128 MB, what its command accepts by default. A
/// decoder needs that much memory.
const WINDOW_LOG: u32 = 27;

/// A file whose content is decompressed.
pub(super) struct Decompressed {
    file: File,
    decoder: Decoder,
    packed: Vec<u8>,
    /// The part of `packed` that is still to be decompressed.
    next: usize,
    end: usize,
    /// The number of bytes of the file that have been read.
    read: u64,
}

enum Decoder {
    None,
    Gzip(Box<GzipDecoder>),
    Zstd {
        decoder: ZstdDecoder<'static>,
        /// Whether the data may end here: a frame is complete.
        may_end: bool,
    },
}

impl Decompressed {
    pub(super) fn open(path: &Path) -> Result<Self, ErrorKind> {
        let mut file = File::open(path)?;
        let mut magic = Vec::new();
        file.by_ref().take(4).read_to_end(&mut magic)?;
        file.rewind()?;
        let decoder = Decoder::for_content(&magic)?;
        Ok(Self { file, decoder, packed: memory::filled(0, PACKED)?, next: 0, end: 0, read: 0 })
    }

    /// The number of bytes of the file that have been read.
    pub(super) fn read(&self) -> u64 {
        self.read
    }

    /// Appends up to 256 KB to `plain`; false at the end of the file. Nothing is lost from `plain` by an error.
    pub(super) fn append(&mut self, plain: &mut Vec<u8>, task: &Task<'_>) -> Result<bool, ErrorKind> {
        let before = plain.len();
        while plain.len() == before {
            task.check()?;
            if self.next == self.end && self.fill()? == 0 {
                // What a decoder has kept back is written before the end is believed.
                self.decode(plain, task)?;
                let more = plain.len() > before;
                return if more { Ok(true) } else { self.decoder.check_end().map(|()| false) };
            }
            self.decode(plain, task)?;
        }
        Ok(true)
    }

    fn fill(&mut self) -> Result<usize, ErrorKind> {
        self.next = 0;
        self.end = loop {
            match self.file.read(&mut self.packed) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                read => break read?,
            }
        };
        self.read += self.end as u64;
        Ok(self.end)
    }

    fn decode(&mut self, plain: &mut Vec<u8>, task: &Task<'_>) -> Result<(), ErrorKind> {
        let mut packed = &self.packed[self.next..self.end];
        let decoded = self.decoder.decode(&mut packed, plain, task);
        self.next = self.end - packed.len();
        decoded
    }
}

impl Decoder {
    fn for_content(magic: &[u8]) -> Result<Self, ErrorKind> {
        match *magic {
            [0x1f, 0x8b, ..] => Ok(Self::Gzip(Box::new(GzipDecoder::new(Members::All)?))),
            // A frame, or a skippable one.
            [0x28, 0xb5, 0x2f, 0xfd] | [0x50..=0x5f, 0x2a, 0x4d, 0x18] => {
                let mut decoder = ZstdDecoder::new()?;
                decoder.set_parameter(DParameter::WindowLogMax(WINDOW_LOG))?;
                Ok(Self::Zstd { decoder, may_end: false })
            }
            _ => Ok(Self::None),
        }
    }

    fn decode(&mut self, packed: &mut &[u8], plain: &mut Vec<u8>, task: &Task<'_>) -> Result<(), ErrorKind> {
        match self {
            Self::None => {
                let taken = memory::append(plain, packed);
                *packed = &[];
                Ok(taken?)
            }
            Self::Gzip(decoder) => gunzip(decoder, packed, plain, task),
            Self::Zstd { decoder, may_end } => unzstd(decoder, may_end, packed, plain),
        }
    }

    fn check_end(&self) -> Result<(), ErrorKind> {
        match self {
            Self::None => Ok(()),
            Self::Gzip(decoder) => Ok(decoder.check_end()?),
            Self::Zstd { may_end: true, .. } => Ok(()),
            Self::Zstd { .. } => {
                Err(ErrorKind::Compression { message: "the Zstandard data ends early".to_owned() })
            }
        }
    }
}

fn gunzip(
    decoder: &mut GzipDecoder,
    packed: &mut &[u8],
    plain: &mut Vec<u8>,
    task: &Task<'_>,
) -> Result<(), ErrorKind> {
    let mut output = Output::new();
    output.resume(plain);
    output.set_left(PLAIN);
    let status: Result<Status, deflate::Error> = decoder.run(packed, &mut output, task);
    *plain = output.into_bytes().into_vec();
    status?;
    Ok(())
}

fn unzstd(
    decoder: &mut ZstdDecoder<'_>,
    may_end: &mut bool,
    packed: &mut &[u8],
    plain: &mut Vec<u8>,
) -> Result<(), ErrorKind> {
    if *may_end && packed.is_empty() {
        return Ok(());
    }
    let before = plain.len();
    memory::reserve(plain, PLAIN)?;
    plain.resize(before + PLAIN, 0);
    let ran = decoder.run_on_buffers(packed, &mut plain[before..]);
    plain.truncate(before + ran.as_ref().map_or(0, |status| status.bytes_written));
    let status = ran.map_err(|error| ErrorKind::Compression { message: format!("Zstandard: {error}") })?;
    *packed = &packed[status.bytes_read..];
    *may_end = status.remaining == 0;
    Ok(())
}
