//! The rows of a column in one group, page by page.

use std::sync::Arc;

use super::codec::Codec;
use super::error::{Error, Fault, OTHER_SIZE};
use super::hybrid::Hybrid;
use super::page::{Content, Header};
use super::schema::{Leaf, Type};
use super::source::{Source, append, read};
use super::thrift;
use super::values::{Dictionary, Values};
use crate::deflate::crc32;
use crate::{Task, memory};

/// The most bytes that a page may have. It is decompressed as a whole, so much memory may be needed.
pub const LARGEST_PAGE: u64 = 1 << 30;

/// The most bytes of a page's header, which may have the least and the greatest value of the page.
const LONGEST_HEADER: u64 = 64 << 20;

/// Where a part of a column lies in the file, and how it is compressed.
pub(super) struct Chunk {
    pub(super) codec: Codec,
    pub(super) values: u64,
    pub(super) start: u64,
    pub(super) end: u64,
}

/// A reader of the rows of a column in one group.
pub struct Column {
    source: Arc<dyn Source>,
    kind: Type,
    levels: u32,
    codec: Codec,
    /// How many values are in pages that were not read yet.
    left: u64,
    /// Where the next page begins, and where the last one ends.
    at: u64,
    end: u64,
    dictionary: Dictionary,
    has_dictionary: bool,
    page: Page,
}

/// The page that is being read.
struct Page {
    bytes: Vec<u8>,
    /// Where its header stands in the file.
    offset: u64,
    /// How many values are left, missing ones included.
    left: u64,
    levels: Option<Hybrid>,
    values: Values,
}

/// Rows of a column.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Rows {
    /// The values, one after the other; a boolean is a byte.
    pub bytes: Vec<u8>,
    /// Where the value of each row ends, and whether it is there.
    ends: Vec<(usize, bool)>,
}

impl Rows {
    /// The number of rows.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The value of a row, `None` if it is missing.
    pub fn get(&self, row: usize) -> Option<&[u8]> {
        let start = row.checked_sub(1).map_or(0, |before| self.ends[before].0);
        let (end, is_there) = self.ends[row];
        is_there.then(|| &self.bytes[start..end])
    }
}

impl Column {
    pub(super) fn new(source: Arc<dyn Source>, leaf: &Leaf, chunk: Chunk) -> Self {
        let page =
            Page { bytes: Vec::new(), offset: chunk.start, left: 0, levels: None, values: Values::None };
        Self {
            source,
            kind: leaf.kind,
            levels: leaf.levels,
            codec: chunk.codec,
            left: chunk.values,
            at: chunk.start,
            end: chunk.end,
            dictionary: Dictionary::default(),
            has_dictionary: false,
            page,
        }
    }

    /// Where the page of the last row begins in the file, or the one that could not be read.
    pub fn page_offset(&self) -> u64 {
        self.page.offset
    }

    /// Appends the next row to `rows`; there must be one.
    ///
    /// # Errors
    ///
    /// `Malformed`, `Unsupported`, `Io`, `OutOfMemory` and `Stopped`.
    pub fn next(&mut self, rows: &mut Rows, task: &Task<'_>) -> Result<(), Error> {
        while self.page.left == 0 {
            self.next_page(task)?;
        }
        self.page.left -= 1;
        self.page.next(self.levels, &self.dictionary, rows).map_err(|fault| fault.at(self.page.offset))
    }

    fn next_page(&mut self, task: &Task<'_>) -> Result<(), Error> {
        task.check()?;
        if self.at >= self.end || self.left == 0 {
            let message = "a column has fewer values than its group has rows";
            return Err(Error::Malformed { message, offset: self.at });
        }
        let offset = self.at;
        self.page.offset = offset;
        let header = self.header(task)?;
        let wrong = |fault: Fault| fault.at(offset);
        if header.packed > self.end - self.at {
            return Err(wrong(Fault::Wrong("a page reaches beyond the end of its column")));
        }
        if header.packed.max(header.plain) > LARGEST_PAGE {
            return Err(wrong(Fault::Unsupported(format!("a page has more than {LARGEST_PAGE} bytes"))));
        }
        if header.content == Content::Other {
            self.at += header.packed;
            return Ok(());
        }
        // The memory of the page before is free from here on.
        self.page.bytes = Vec::new();
        let packed = read(&*self.source, self.at, header.packed, task)?;
        self.at += header.packed;
        if let Some(expected) = header.crc
            && crc32(0, &packed, task)? != expected
        {
            return Err(wrong(Fault::Wrong("a page's checksum is not that of its content")));
        }
        self.begin_page(&header, packed, task).map_err(wrong)
    }

    /// The header of the next page, behind which the reader then is.
    fn header(&mut self, task: &Task<'_>) -> Result<Header, Error> {
        /// What is enough in nearly all cases.
        const FIRST: u64 = 1 << 10;
        let most = (self.end - self.at).min(LONGEST_HEADER);
        let (mut bytes, mut length) = (Vec::new(), most.min(FIRST));
        loop {
            let more = length - bytes.len() as u64;
            append(&*self.source, self.at + bytes.len() as u64, more, &mut bytes, task)?;
            match Header::read(&bytes) {
                Ok((header, length)) => {
                    self.at += length as u64;
                    return Ok(header);
                }
                Err(fault) if fault == thrift::ENDS && length < most => length = most.min(length * 8),
                Err(fault) => return Err(fault.at(self.at)),
            }
        }
    }

    fn begin_page(&mut self, header: &Header, packed: Vec<u8>, task: &Task<'_>) -> Result<(), Fault> {
        // Within the limit of a page's size.
        let plain = header.plain as usize;
        if header.content == Content::Dictionary {
            if std::mem::replace(&mut self.has_dictionary, true) {
                return Err(Fault::Wrong("a column has two dictionaries"));
            }
            if !matches!(header.encoding, 0 | 2) {
                return Err(Fault::Unsupported("a dictionary's encoding is not supported".to_owned()));
            }
            let bytes = self.decompress(packed, plain, task)?;
            self.dictionary = Dictionary::new(bytes, self.kind, header.values, task)?;
            return Ok(());
        }
        if header.values > self.left {
            return Err(Fault::Wrong("a column has more values than its group has rows"));
        }
        let (bytes, levels, at) = if header.content == Content::NewerValues {
            self.newer(header, packed, plain, task)?
        } else {
            self.older(header, self.decompress(packed, plain, task)?)?
        };
        let values = Values::new(header.encoding, self.kind, &bytes, at, self.has_dictionary, task)?;
        self.left -= header.values;
        self.page = Page { bytes, offset: self.page.offset, left: header.values, levels, values };
        Ok(())
    }

    fn decompress(&self, packed: Vec<u8>, size: usize, task: &Task<'_>) -> Result<Vec<u8>, Fault> {
        if self.codec == Codec::None && packed.len() == size {
            return Ok(packed);
        }
        let mut plain = Vec::new();
        self.codec.decompress(&packed, size, &mut plain, task)?;
        Ok(plain)
    }

    /// The reader of the levels, and where the values begin. Levels stand behind their length.
    fn older(&self, header: &Header, bytes: Vec<u8>) -> Result<(Vec<u8>, Option<Hybrid>, usize), Fault> {
        const RLE: i64 = 3;
        if self.levels == 0 {
            return Ok((bytes, None, 0));
        }
        if header.level_encoding != RLE {
            return Err(Fault::Unsupported("the encoding of a page's levels is not supported".to_owned()));
        }
        let length = bytes.first_chunk().map(|&length| u32::from_le_bytes(length) as usize);
        let end = length.and_then(|length| length.checked_add(4)).filter(|&end| end <= bytes.len());
        let end = end.ok_or(Fault::Wrong("a page's levels are longer than the page"))?;
        let levels = Hybrid::new(4, end, self.width())?;
        Ok((bytes, Some(levels), end))
    }

    /// The page, with the levels before it, which are not compressed; the reader of these, and where the values begin.
    fn newer(
        &self,
        header: &Header,
        packed: Vec<u8>,
        plain: usize,
        task: &Task<'_>,
    ) -> Result<(Vec<u8>, Option<Hybrid>, usize), Fault> {
        let levels =
            usize::try_from(header.repetition.saturating_add(header.definition)).unwrap_or(usize::MAX);
        if levels > packed.len() || levels > plain {
            return Err(Fault::Wrong("a page's levels are longer than the page"));
        }
        let start = header.repetition as usize;
        let reader = match self.levels {
            0 => None,
            _ => Some(Hybrid::new(start, levels, self.width())?),
        };
        if !header.is_compressed {
            return if packed.len() == plain { Ok((packed, reader, levels)) } else { Err(OTHER_SIZE) };
        }
        let mut bytes = memory::copied(&packed[..levels])?;
        self.codec.decompress(&packed[levels..], plain - levels, &mut bytes, task)?;
        Ok((bytes, reader, levels))
    }

    /// The bits of a level.
    fn width(&self) -> u32 {
        u32::BITS - self.levels.leading_zeros()
    }
}

impl Page {
    fn next(&mut self, full: u32, dictionary: &Dictionary, rows: &mut Rows) -> Result<(), Fault> {
        let level = self.levels.as_mut().map_or(Ok(full), |levels| levels.next(&self.bytes))?;
        if level > full {
            return Err(Fault::Wrong("a page has a level that its column cannot have"));
        }
        let before = rows.bytes.len();
        if level == full
            && let Err(fault) = self.values.next(&self.bytes, dictionary, &mut rows.bytes)
        {
            rows.bytes.truncate(before);
            return Err(fault);
        }
        Ok(memory::push(&mut rows.ends, (rows.bytes.len(), level == full))?)
    }
}
