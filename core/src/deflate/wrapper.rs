//! What stands around a raw deflate stream in each format.

use super::gzip_header;
use super::libdeflate;

/// The three formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Raw,
    Zlib,
    Gzip,
}

impl Format {
    /// The format of a stream with the usual window, for which alone there is a whole-buffer engine.
    pub(super) const fn of(wbits: i32) -> Option<Self> {
        match wbits {
            -15 => Some(Self::Raw),
            15 => Some(Self::Zlib),
            31 => Some(Self::Gzip),
            _ => None,
        }
    }
}

/// A format, and how long the header is in the data at hand.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wrapper {
    pub(super) format: Format,
    pub(super) header: usize,
}

impl Wrapper {
    /// The wrapper of `input` when it is to be read with `wbits`; `None` when it is bad, incomplete, asks for a
    /// dictionary or for a smaller window, or has no checksum.
    ///
    /// The whole-buffer engine takes a code of a single word that zlib refuses once its other half is met. The checksum
    /// shows when that mattered; raw data has none.
    pub(super) fn of(input: &[u8], wbits: i32) -> Option<Self> {
        let zlib = || zlib_header(input).then_some(Self { format: Format::Zlib, header: 2 });
        let whole_window = || zlib().filter(|_| input[0] >> 4 == 7);
        let gzip = || Some(Self { format: Format::Gzip, header: gzip_header::header_len(input)? });
        match wbits {
            0 => whole_window(),
            15 => zlib(),
            31 => gzip(),
            32 => whole_window().or_else(gzip),
            47 => zlib().or_else(gzip),
            _ => None,
        }
    }

    /// Bytes after the stream.
    pub(super) const fn trailer(&self) -> usize {
        match self.format {
            Format::Raw => 0,
            Format::Zlib => 4,
            Format::Gzip => 8,
        }
    }
}

/// Whether `input` begins with a good header of zlib's format, with no dictionary.
fn zlib_header(input: &[u8]) -> bool {
    let &[cmf, flags, ..] = input else { return false };
    let checked = u16::from_be_bytes([cmf, flags]) % 31 == 0;
    checked && cmf & 15 == 8 && cmf >> 4 <= 7 && flags & 0x20 == 0
}

/// The header that zlib itself writes at `level` with a window of 32 KB.
pub(super) fn header(format: Format, level: i32) -> Vec<u8> {
    match format {
        Format::Raw => Vec::new(),
        Format::Zlib => {
            let flags = match level {
                0 | 1 => 0x01,
                2..=5 => 0x5e,
                -1 | 6 => 0x9c,
                _ => 0xda,
            };
            vec![0x78, flags]
        }
        Format::Gzip => {
            let extra_flags = match level {
                9 => 2,
                0 | 1 => 4,
                _ => 0,
            };
            vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, extra_flags, gzip_header::OS_UNIX]
        }
    }
}

/// A running checksum of plain data, as the format's trailer wants it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sum {
    format: Format,
    value: u32,
    len: u32,
}

impl Sum {
    pub(super) const fn new(format: Format) -> Self {
        let value = if matches!(format, Format::Zlib) { 1 } else { 0 };
        Self { format, value, len: 0 }
    }

    pub(super) fn add(&mut self, data: &[u8]) {
        self.len = self.len.wrapping_add(data.len() as u32);
        self.value = match self.format {
            Format::Raw => 0,
            Format::Zlib => libdeflate::adler32(self.value, data),
            Format::Gzip => libdeflate::crc32(self.value, data),
        };
    }

    /// The trailer for the data added so far: 0, 4 or 8 bytes.
    pub(super) fn trailer(&self) -> Vec<u8> {
        match self.format {
            Format::Raw => Vec::new(),
            Format::Zlib => self.value.to_be_bytes().to_vec(),
            Format::Gzip => [self.value.to_le_bytes(), self.len.to_le_bytes()].concat(),
        }
    }
}
