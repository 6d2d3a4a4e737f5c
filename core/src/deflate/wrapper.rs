//! Headers and trailers of the three formats: raw deflate, zlib (RFC 1950) and gzip (RFC 1952).

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
    /// The format of a stream with a window of 32 KB, the only size that libdeflate writes.
    pub(super) const fn of(wbits: i32) -> Option<Self> {
        match wbits {
            -15 => Some(Self::Raw),
            15 => Some(Self::Zlib),
            31 => Some(Self::Gzip),
            _ => None,
        }
    }
}

/// A format, and the length of the header in the data at hand.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wrapper {
    pub(super) format: Format,
    pub(super) header: usize,
}

impl Wrapper {
    /// The wrapper of `input` for the given `wbits`; `None` if the header is invalid or incomplete, if it
    /// asks for a dictionary or a smaller window, or if the format has no checksum.
    ///
    /// libdeflate accepts an incomplete Huffman code of a single symbol that zlib rejects when the missing
    /// half is met. The checksum shows if that mattered; raw data has none.
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

    /// The length of the trailer.
    pub(super) const fn trailer(&self) -> usize {
        match self.format {
            Format::Raw => 0,
            Format::Zlib => 4,
            Format::Gzip => 8,
        }
    }
}

/// Whether `input` begins with a valid zlib header that asks for no dictionary.
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

/// A running checksum of the uncompressed data, as the format's trailer needs it.
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
