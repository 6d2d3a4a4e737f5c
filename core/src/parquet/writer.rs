//! A file that is written: columns that are kept from elsewhere, and one of lists of numbers.
//!
//! A group of rows is complete at 64 MB. Until then its pages are in memory, compressed: in the file the pages of one column
//! follow each other.

use std::io::Write;

use super::error::Error;
use super::file::MAGIC;
use super::schema::{Leaf, Schema, Type};
use super::write_column::WriteColumn;
use super::write_thrift::Writer as Thrift;
use crate::{Task, memory};

/// The size at which a group of rows is complete, before it is compressed, in bytes.
const GROUP: u64 = 64 << 20;

/// The most rows of a group.
const ROWS: u64 = 1 << 20;

/// The number by which files name arrays of bytes, and integers of 32 bits.
const BYTE_ARRAY: i32 = 6;
const INT32: i32 = 1;

/// Whether a field is always there, may be missing, or is repeated.
const OPTIONAL: i32 = 1;
const REPEATED: i32 = 2;

/// A column whose values are kept as they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    name: Vec<u8>,
    /// What the metadata says of it.
    description: Vec<u8>,
    physical: i32,
    kind: Type,
    may_miss: bool,
}

impl Kept {
    /// A column of another file; `None` if it is in a group or repeated.
    pub fn of(schema: &Schema, leaf: &Leaf) -> Option<Self> {
        leaf.is_flat.then(|| Self {
            name: schema.name(leaf).to_owned(),
            description: schema.description(leaf).to_owned(),
            physical: leaf.physical,
            kind: leaf.kind,
            may_miss: leaf.levels > 0,
        })
    }

    /// A column of texts.
    pub fn text(name: &str) -> Self {
        let mut thrift = Thrift::default();
        thrift.item(|thrift| {
            thrift.i32(1, BYTE_ARRAY);
            thrift.i32(3, OPTIONAL);
            thrift.text(4, name.as_bytes());
            thrift.i32(6, 0);
            thrift.structure(10, |thrift| thrift.structure(1, |_| {}));
        });
        let (name, description) = (name.as_bytes().to_owned(), thrift.bytes);
        Self { name, description, physical: BYTE_ARRAY, kind: Type::Bytes, may_miss: true }
    }

    /// Its name.
    pub fn name(&self) -> &[u8] {
        &self.name
    }
}

/// A file that is being written.
pub struct Writer<W> {
    out: W,
    written: u64,
    kept: Vec<Kept>,
    /// The name of the lists.
    name: String,
    columns: Vec<WriteColumn>,
    /// The rows of the group, and those of the groups before it.
    rows: u64,
    rows_before: u64,
    /// The descriptions of the complete groups.
    groups: Thrift,
    groups_count: usize,
}

impl<W: Write> Writer<W> {
    /// Begins a file with these columns, and behind them one of lists.
    ///
    /// # Errors
    ///
    /// `Io`.
    pub fn begin(out: W, kept: &[Kept], name: &str) -> Result<Self, Error> {
        let mut columns: Vec<_> = kept
            .iter()
            .map(|kept| {
                WriteColumn::new(vec![kept.name.clone()], (kept.physical, kept.kind), false, kept.may_miss)
            })
            .collect();
        let path = [name, "list", "element"].map(|name| name.as_bytes().to_owned()).to_vec();
        columns.push(WriteColumn::new(path, (INT32, Type::Fixed(4)), true, true));
        let mut writer = Self {
            out,
            written: 0,
            kept: kept.to_vec(),
            name: name.to_owned(),
            columns,
            rows: 0,
            rows_before: 0,
            groups: Thrift::default(),
            groups_count: 0,
        };
        writer.write(MAGIC)?;
        Ok(writer)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.written += bytes.len() as u64;
        Ok(self.out.write_all(bytes)?)
    }

    /// Appends a row: the values of the columns that are kept, in their order, and the list.
    ///
    /// # Errors
    ///
    /// `Io`, `OutOfMemory`, `Stopped`, and `Unsupported` for what is too long. The file is of no use then.
    pub fn row<'v>(
        &mut self,
        values: impl IntoIterator<Item = Option<&'v [u8]>>,
        list: &[u32],
        task: &Task<'_>,
    ) -> Result<(), Error> {
        let (lists, kept) = self.columns.split_last_mut().expect("the lists are a column");
        kept.iter_mut().zip(values).try_for_each(|(column, value)| column.push(value, task))?;
        lists.push_list(list, task)?;
        self.rows += 1;
        let size: u64 = self.columns.iter().map(WriteColumn::plain).sum();
        if size >= GROUP || self.rows == ROWS { self.end_group(task) } else { Ok(()) }
    }

    fn end_group(&mut self, task: &Task<'_>) -> Result<(), Error> {
        if self.rows == 0 {
            return Ok(());
        }
        let mut described = Thrift::default();
        let mut offset = self.written;
        let (start, mut plain) = (offset, 0);
        for column in &mut self.columns {
            column.end_page(task)?;
            column.describe(offset, &mut described);
            offset += column.pages().len() as u64;
            plain += column.plain();
        }
        for index in 0..self.columns.len() {
            let (column, out) = (&mut self.columns[index], &mut self.out);
            out.write_all(column.pages())?;
            self.written += column.pages().len() as u64;
            column.clear();
        }
        memory::reserve(&mut self.groups.bytes, described.bytes.len() + 64)?;
        let columns = self.columns.len();
        self.groups.item(|thrift| {
            thrift.list(1, columns);
            thrift.bytes.extend_from_slice(&described.bytes);
            thrift.i64(2, plain.cast_signed());
            thrift.i64(3, self.rows.cast_signed());
            thrift.i64(6, (offset - start).cast_signed());
        });
        self.groups_count += 1;
        self.rows_before += std::mem::take(&mut self.rows);
        Ok(())
    }

    /// Completes the file and returns what it was written to.
    ///
    /// # Errors
    ///
    /// As [`row`](Self::row).
    pub fn finish(mut self) -> Result<W, Error> {
        self.end_group(&Task::new())?;
        let metadata = self.metadata();
        let length = u32::try_from(metadata.len())
            .map_err(|_| Error::unsupported("the file has too many groups of rows for Parquet"))?;
        self.write(&metadata)?;
        self.write(&length.to_le_bytes())?;
        self.write(MAGIC)?;
        Ok(self.out)
    }

    fn metadata(&self) -> Vec<u8> {
        const VERSION: i32 = 2;
        let mut thrift = Thrift::default();
        thrift.item(|thrift| {
            thrift.i32(1, VERSION);
            thrift.list(2, 1 + self.kept.len() + 3);
            thrift.item(|thrift| {
                thrift.text(4, b"schema");
                thrift.i32(5, self.columns.len() as i32);
            });
            self.kept.iter().for_each(|kept| thrift.bytes.extend_from_slice(&kept.description));
            describe_list(thrift, &self.name);
            thrift.i64(3, self.rows_before.cast_signed());
            thrift.list(4, self.groups_count);
            thrift.bytes.extend_from_slice(&self.groups.bytes);
            thrift.text(6, concat!("offlock version ", env!("CARGO_PKG_VERSION")).as_bytes());
        });
        thrift.bytes
    }
}

/// The three fields that a list consists of, the last one being its numbers, without a sign.
fn describe_list(thrift: &mut Thrift, name: &str) {
    const LIST: i32 = 3;
    const UINT_32: i32 = 13;
    thrift.item(|thrift| {
        thrift.i32(3, OPTIONAL);
        thrift.text(4, name.as_bytes());
        thrift.i32(5, 1);
        thrift.i32(6, LIST);
        thrift.structure(10, |thrift| thrift.structure(3, |_| {}));
    });
    thrift.item(|thrift| {
        thrift.i32(3, REPEATED);
        thrift.text(4, b"list");
        thrift.i32(5, 1);
    });
    thrift.item(|thrift| {
        thrift.i32(1, INT32);
        thrift.i32(3, OPTIONAL);
        thrift.text(4, b"element");
        thrift.i32(6, UINT_32);
        thrift.structure(10, |thrift| {
            thrift.structure(10, |thrift| {
                thrift.byte(1, 32);
                thrift.bool(2, false);
            });
        });
    });
}
