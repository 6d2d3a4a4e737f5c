//! A file: its footer, and from there its groups of rows.
//!
//! A file ends with its metadata, the metadata's length, and `PAR1`, with which it also begins. The metadata has the
//! schema and, for each group of rows, the places of its columns. It is kept as it is, and each group is looked up when
//! its turn comes, so memory does not depend on what the metadata claims.

use std::sync::Arc;

use super::codec::Codec;
use super::column::{Chunk, Column};
use super::error::{Error, Fault};
use super::schema::Schema;
use super::source::{Source, read};
use super::thrift::{Kind, Reader};
use crate::{Task, memory};

/// What a file begins and ends with.
pub const MAGIC: &[u8; 4] = b"PAR1";

/// What one ends with whose metadata is encrypted.
const ENCRYPTED: &[u8; 4] = b"PARE";

/// The length of the metadata, and the magic bytes.
const TAIL: u64 = 8;

/// The most bytes of metadata.
const LONGEST: u64 = 256 << 20;

/// A file that is read.
pub struct File {
    source: Arc<dyn Source>,
    size: u64,
    schema: Schema,
    rows: u64,
    /// Where the metadata begins in the file.
    start: u64,
    /// Where the next group is described in the metadata, of what type that is, and how many are left.
    next: usize,
    items: Kind,
    left: usize,
}

/// A group of rows.
pub struct Group {
    /// How many there are.
    pub rows: u64,
    /// The columns that were asked for.
    pub columns: Vec<Column>,
}

impl File {
    /// Opens a file.
    ///
    /// # Errors
    ///
    /// `Malformed` if it has no valid metadata, `Unsupported` if that is encrypted, `Io`, `OutOfMemory` and `Stopped`.
    pub fn open(source: Arc<dyn Source>, task: &Task<'_>) -> Result<Self, Error> {
        let size = source.size()?;
        let wrong = |message, offset| Err(Error::Malformed { message, offset });
        if size < TAIL + MAGIC.len() as u64 {
            return wrong("the file is too short for Parquet", size);
        }
        let tail = read(&*source, size - TAIL, TAIL, task)?;
        let (length, magic) = tail.split_at(4);
        if magic == ENCRYPTED {
            return Err(Error::unsupported("the file is encrypted"));
        }
        if magic != MAGIC {
            return wrong("the file does not end as Parquet does", size - 4);
        }
        let length = u64::from(u32::from_le_bytes([length[0], length[1], length[2], length[3]]));
        if length > size - TAIL || length > LONGEST {
            return wrong("the length of the metadata cannot be right", size - TAIL);
        }
        let start = size - TAIL - length;
        let metadata = read(&*source, start, length, task)?;
        Self::of_metadata(source, size, start, metadata).map_err(|fault| fault.at(start))
    }

    fn of_metadata(source: Arc<dyn Source>, size: u64, start: u64, metadata: Vec<u8>) -> Result<Self, Fault> {
        let (mut schema, mut rows, mut groups) = (None, 0, None);
        let mut reader = Reader::at(&metadata, 0);
        reader.structure(Kind::Struct, |reader, number, kind| {
            match number {
                2 => {
                    let begins = reader.pos();
                    reader.skip(kind)?;
                    schema = Some(begins..reader.pos());
                }
                3 => rows = reader.size(kind)?,
                4 => {
                    let begins = reader.pos();
                    let (length, items) = reader.list(kind)?;
                    groups = Some((reader.pos(), items, length));
                    reader.go_back(begins);
                    return Ok(false);
                }
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        let schema = schema.ok_or(Fault::Wrong("the metadata has no schema"))?;
        let (next, items, left) = groups.ok_or(Fault::Wrong("the metadata has no groups of rows"))?;
        Ok(Self { source, size, schema: Schema::read(metadata, schema)?, rows, start, next, items, left })
    }

    /// The columns.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The number of rows, as the file claims.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The size of the file in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The next group of rows, with the columns of these indices; `None` behind the last one.
    ///
    /// # Errors
    ///
    /// `Malformed`, `Unsupported` and `OutOfMemory`.
    pub fn next_group(&mut self, columns: &[usize]) -> Result<Option<Group>, Error> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        let at = self.start + self.next as u64;
        self.group(columns).map(Some).map_err(|fault| fault.at(at))
    }

    fn group(&mut self, columns: &[usize]) -> Result<Group, Fault> {
        let mut found = memory::filled(None, columns.len())?;
        let mut rows = None;
        let mut reader = Reader::at(self.schema.metadata(), self.next);
        reader.structure(self.items, |reader, number, kind| {
            match number {
                1 => {
                    let (length, items) = reader.list(kind)?;
                    for index in 0..length {
                        let chunk = ChunkMetadata::read(reader, items)?;
                        for (wanted, found) in columns.iter().zip(&mut found) {
                            if *wanted == index {
                                *found = Some(chunk);
                            }
                        }
                    }
                }
                3 => rows = Some(reader.size(kind)?),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        self.next = reader.pos();
        let rows = rows.ok_or(Fault::Wrong("the metadata does not say how many rows a group has"))?;
        let mut made = memory::with_capacity(columns.len())?;
        for (&column, metadata) in columns.iter().zip(found) {
            let metadata = metadata.ok_or(Fault::Wrong("the metadata lacks a column of a group of rows"))?;
            let leaf = &self.schema.columns()[column];
            if leaf.is_repeated {
                return Err(Fault::Unsupported("lists are not read".to_owned()));
            }
            let chunk = metadata.chunk(self.size, rows)?;
            made.push(Column::new(Arc::clone(&self.source), leaf, chunk));
        }
        Ok(Group { rows, columns: made })
    }
}

/// What the metadata says of the part of a column that is in a group of rows.
#[derive(Clone, Copy, Default)]
struct ChunkMetadata {
    has_data: bool,
    is_elsewhere: bool,
    is_encrypted: bool,
    codec: i64,
    values: u64,
    length: u64,
    data: u64,
    dictionary: Option<u64>,
}

impl ChunkMetadata {
    fn read(reader: &mut Reader<'_>, kind: Kind) -> Result<Self, Fault> {
        let mut found = Self::default();
        reader.structure(kind, |reader, number, kind| {
            match number {
                1 => found.is_elsewhere = true,
                8 => found.is_encrypted = true,
                3 => {
                    found.has_data = true;
                    reader.structure(kind, |reader, number, kind| {
                        match number {
                            4 => found.codec = reader.int(kind)?,
                            5 => found.values = reader.size(kind)?,
                            7 => found.length = reader.size(kind)?,
                            9 => found.data = reader.size(kind)?,
                            11 => found.dictionary = Some(reader.size(kind)?),
                            _ => return Ok(false),
                        }
                        Ok(true)
                    })?;
                    return Ok(true);
                }
                _ => {}
            }
            Ok(false)
        })?;
        Ok(found)
    }

    fn chunk(self, size: u64, rows: u64) -> Result<Chunk, Fault> {
        if self.is_elsewhere {
            return Err(Fault::Unsupported("a column is in another file".to_owned()));
        }
        if self.is_encrypted {
            return Err(Fault::Unsupported("a column is encrypted".to_owned()));
        }
        if !self.has_data {
            return Err(Fault::Wrong("the metadata does not say where a column is"));
        }
        if self.values != rows {
            return Err(Fault::Wrong("a column has more or fewer values than its group has rows"));
        }
        // Some writers give 0 for a dictionary that is not there.
        let start = self.dictionary.filter(|&start| start > 0 && start < self.data).unwrap_or(self.data);
        let end = start.checked_add(self.length).filter(|&end| end <= size);
        let end = end.ok_or(Fault::Wrong("a column reaches beyond the end of the file"))?;
        Ok(Chunk { codec: Codec::of(self.codec)?, values: self.values, start, end })
    }
}
