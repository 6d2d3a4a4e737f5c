//! The headers of pages.
//!
//! A page is what is compressed at a time: a dictionary, or values of a column. The older version of pages has everything
//! in one compressed piece, the newer one has the levels before it.

use super::error::Fault;
use super::thrift::{Kind, Reader};

/// What a page's header says.
#[derive(Debug, Default)]
pub(super) struct Header {
    pub(super) content: Content,
    /// The size of the content in bytes, and before it was compressed.
    pub(super) packed: u64,
    pub(super) plain: u64,
    /// The CRC-32 of the content as it stands in the file.
    pub(super) crc: Option<u32>,
    /// The number of values, missing ones included.
    pub(super) values: u64,
    pub(super) encoding: i64,
    /// How the levels of a page of the older version are encoded.
    pub(super) level_encoding: i64,
    /// The bytes of levels, of a page of the newer version: of repetition, and of definition.
    pub(super) repetition: u64,
    pub(super) definition: u64,
    /// Whether the values of a page of the newer version are compressed.
    pub(super) is_compressed: bool,
}

/// What a page is.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    Dictionary,
    Values,
    NewerValues,
    /// Nothing that matters here.
    #[default]
    Other,
}

impl Header {
    /// The header at the beginning of `bytes`, and its length.
    pub(super) fn read(bytes: &[u8]) -> Result<(Self, usize), Fault> {
        let mut header = Self { level_encoding: 3, is_compressed: true, ..Self::default() };
        let mut kinds = [false; 3];
        let mut reader = Reader::at(bytes, 0);
        reader.structure(Kind::Struct, |reader, number, kind| {
            match number {
                1 => {
                    header.content = match reader.int(kind)? {
                        0 => Content::Values,
                        2 => Content::Dictionary,
                        3 => Content::NewerValues,
                        _ => Content::Other,
                    }
                }
                2 => header.plain = reader.size(kind)?,
                3 => header.packed = reader.size(kind)?,
                4 => header.crc = Some(reader.int(kind)? as u32),
                5 => {
                    kinds[0] = true;
                    header.read_values(reader, kind, [1, 2, 3, 0, 0, 0])?;
                }
                7 => {
                    kinds[1] = true;
                    header.read_values(reader, kind, [1, 2, 0, 0, 0, 0])?;
                }
                8 => {
                    kinds[2] = true;
                    header.read_values(reader, kind, [1, 4, 0, 5, 6, 7])?;
                }
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        let has_part = match header.content {
            Content::Values => kinds[0],
            Content::Dictionary => kinds[1],
            Content::NewerValues => kinds[2],
            Content::Other => true,
        };
        if !has_part {
            return Err(Fault::Wrong("a page's header lacks what belongs to its type"));
        }
        Ok((header, reader.pos()))
    }

    /// Reads the part that belongs to the page's type. `numbers` are those of its fields: of the number of values, of
    /// the encoding, of that of the levels, of the levels' lengths, and of whether the page is compressed.
    fn read_values(&mut self, reader: &mut Reader<'_>, kind: Kind, numbers: [i64; 6]) -> Result<(), Fault> {
        reader.structure(kind, |reader, number, kind| {
            match numbers.iter().position(|&known| known == number) {
                Some(0) => self.values = reader.size(kind)?,
                Some(1) => self.encoding = reader.int(kind)?,
                Some(2) => self.level_encoding = reader.int(kind)?,
                Some(3) => self.definition = reader.size(kind)?,
                Some(4) => self.repetition = reader.size(kind)?,
                Some(5) => {
                    self.is_compressed = kind != Kind::Bool(false);
                    return Ok(false);
                }
                _ => return Ok(false),
            }
            Ok(true)
        })
    }
}
