//! The header of a gzip member (RFC 1952), and the size field at its end.

use super::error::{Error, ErrorKind};
use super::libdeflate;
use crate::memory::{self, OutOfMemory};

/// The two bytes at the beginning of a member.
pub const MAGIC: [u8; 2] = [0x1f, 0x8b];

/// The number that stands for Unix in a header.
pub const OS_UNIX: u8 = 3;

/// Larger headers are refused: the format does not bound the length of name and comment.
pub(super) const LARGEST_HEADER: usize = 1 << 20;

const FIXED: usize = 10;
const TEXT: u8 = 1;
const HEADER_CRC: u8 = 2;
const EXTRA: u8 = 4;
pub(super) const NAME: u8 = 8;
const COMMENT: u8 = 16;
/// The flags that have no meaning yet.
pub const RESERVED: u8 = 0xe0;

/// The fields of a header.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Header {
    /// Whether the content is probably text.
    pub text: bool,
    /// Seconds since 1970, 0 when unknown.
    pub mtime: u32,
    /// 2 for the best, 4 for the fastest compression.
    pub extra_flags: u8,
    /// The operating system on which the file was made.
    pub os: u8,
    /// The flags that have no meaning yet. RFC 1952 demands that such files are refused; that is left to the
    /// caller.
    pub reserved: u8,
    /// The extra field, uninterpreted.
    pub extra: Option<Vec<u8>>,
    /// The name of the file.
    pub name: Option<Vec<u8>>,
    /// A comment.
    pub comment: Option<Vec<u8>>,
}

impl Header {
    /// The bytes of the header. Name and comment end at their first NUL.
    pub fn to_bytes(&self) -> Vec<u8> {
        let flag = |on: bool, bit: u8| if on { bit } else { 0 };
        let flags = flag(self.text, TEXT)
            | flag(self.extra.is_some(), EXTRA)
            | flag(self.name.is_some(), NAME)
            | flag(self.comment.is_some(), COMMENT);
        let mut bytes = vec![MAGIC[0], MAGIC[1], 8, flags];
        bytes.extend(self.mtime.to_le_bytes());
        bytes.extend([self.extra_flags, self.os]);
        if let Some(extra) = &self.extra {
            let len = extra.len().min(u16::MAX.into());
            bytes.extend((len as u16).to_le_bytes());
            bytes.extend(&extra[..len]);
        }
        for text in [&self.name, &self.comment].into_iter().flatten() {
            bytes.extend(text.split(|&byte| byte == 0).next().unwrap_or_default());
            bytes.push(0);
        }
        bytes
    }

    /// Reads the header at the beginning of `input` and returns it with its length; `None` if the input ends
    /// within it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotGzip`] if the magic number is missing, `GzipMethod` for another method than deflate,
    /// `Data` for a wrong header checksum or a header of more than 1 MB, and `Mem`.
    pub fn parse(input: &[u8]) -> Result<Option<(Self, usize)>, Error> {
        if !MAGIC.starts_with(&input[..input.len().min(2)]) {
            return Err(Error::new(ErrorKind::NotGzip, 0));
        }
        // What a header may be does not depend on how much of the file is there.
        let input = &input[..input.len().min(LARGEST_HEADER + 1)];
        let mut fields = Fields { input, at: FIXED };
        let Some(&[_, _, method, flags, m0, m1, m2, m3, extra_flags, os]) = input.first_chunk() else {
            return Ok(None);
        };
        if method != 8 {
            let detail = format!("unsupported compression method {method}");
            return Err(Error::with_detail(ErrorKind::GzipMethod, detail, 2));
        }
        let mut header = Self {
            text: flags & TEXT != 0,
            mtime: u32::from_le_bytes([m0, m1, m2, m3]),
            extra_flags,
            os,
            reserved: flags & RESERVED,
            ..Self::default()
        };
        let complete = fields.read(flags, &mut header)?.is_some();
        match (complete, input.len() > LARGEST_HEADER) {
            (true, _) if flags & HEADER_CRC != 0 && !fields.crc_fits() => {
                Err(Error::with_detail(ErrorKind::Data, "header crc mismatch", fields.at as u64))
            }
            (true, _) => Ok(Some((header, fields.at))),
            (false, true) => {
                let detail = format!("the gzip header is larger than {LARGEST_HEADER} bytes");
                Err(Error::with_detail(ErrorKind::Data, detail, LARGEST_HEADER as u64))
            }
            (false, false) => Ok(None),
        }
    }
}

/// Reads the fields of variable length in order.
struct Fields<'a> {
    input: &'a [u8],
    at: usize,
}

impl<'a> Fields<'a> {
    /// `None` if the input ends within the fields.
    fn read(&mut self, flags: u8, header: &mut Header) -> Result<Option<()>, OutOfMemory> {
        if flags & EXTRA != 0 {
            let Some(&[low, high]) = self.take(2).and_then(<[u8]>::first_chunk) else { return Ok(None) };
            let Some(extra) = self.take(u16::from_le_bytes([low, high]).into()) else { return Ok(None) };
            header.extra = Some(memory::copied(extra)?);
        }
        for (flag, text) in [(NAME, &mut header.name), (COMMENT, &mut header.comment)] {
            if flags & flag != 0 {
                let Some(read) = self.text() else { return Ok(None) };
                *text = Some(memory::copied(read)?);
            }
        }
        Ok(if flags & HEADER_CRC != 0 { self.take(2).map(drop) } else { Some(()) })
    }

    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let bytes = self.input.get(self.at..self.at + len)?;
        self.at += len;
        Some(bytes)
    }

    fn text(&mut self) -> Option<&'a [u8]> {
        let len = self.input.get(self.at..)?.iter().position(|&byte| byte == 0)?;
        let text = &self.input[self.at..self.at + len];
        self.at += len + 1;
        Some(text)
    }

    /// Whether the two bytes just read are the checksum of all bytes before them.
    fn crc_fits(&self) -> bool {
        let (covered, stated) = self.input[..self.at].split_at(self.at - 2);
        (libdeflate::crc32(0, covered) as u16).to_le_bytes() == *stated
    }
}

/// The length of the header at the beginning of `input`, if zlib itself would accept the header.
pub(super) fn header_len(input: &[u8]) -> Option<usize> {
    if input.get(3)? & RESERVED != 0 {
        return None;
    }
    Header::parse(input).ok()?.map(|(_, len)| len)
}

/// The field ISIZE: the size of the content according to the last four bytes, if `input` begins like a gzip
/// file.
pub(super) fn isize(input: &[u8]) -> Option<usize> {
    let size = input.last_chunk().map(|&last| u32::from_le_bytes(last) as usize);
    size.filter(|_| input.starts_with(&MAGIC))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full_header() -> Header {
        Header {
            text: true,
            mtime: 0x0102_0304,
            extra_flags: 2,
            reserved: 0,
            os: 255,
            extra: Some(b"BC\x02\0ab".to_vec()),
            name: Some(b"name".to_vec()),
            comment: Some(b"a comment".to_vec()),
        }
    }

    #[test]
    fn a_header_is_read_as_it_was_written() {
        for header in [Header::default(), full_header()] {
            let bytes = header.to_bytes();
            assert_eq!(Header::parse(&bytes).unwrap(), Some((header, bytes.len())));
            for cut in 0..bytes.len() {
                assert_eq!(Header::parse(&bytes[..cut]).unwrap(), None, "{cut}");
            }
        }
    }

    #[test]
    fn a_wrong_header_checksum_is_found() {
        let mut bytes = full_header().to_bytes();
        bytes[3] |= HEADER_CRC;
        let crc = libdeflate::crc32(0, &bytes) as u16;
        bytes.extend(crc.to_le_bytes());
        assert_eq!(Header::parse(&bytes).unwrap().unwrap().1, bytes.len());
        *bytes.last_mut().unwrap() ^= 1;
        assert_eq!(Header::parse(&bytes).unwrap_err().message(), "header crc mismatch");
    }
}
