//! The pages of a column that is written, compressed with Zstandard.

use super::codec::ZSTD;
use super::error::Error;
use super::hybrid::Runs;
use super::schema::Type;
use super::write_thrift::Writer as Thrift;
use crate::deflate::crc32;
use crate::zstd::{self, Output, Settings};
use crate::{Task, memory};

/// The size at which a page is complete, in bytes.
const PAGE: usize = 1 << 20;

/// The most bytes of a page.
const LARGEST: usize = i32::MAX as usize;

/// The level of compression. Ids are as small at higher ones.
const LEVEL: i32 = 1;

/// The numbers of the encodings.
const PLAIN: i32 = 0;
const RLE: i32 = 3;

/// A column in the group of rows that is being written.
pub(super) struct WriteColumn {
    /// The names that lead to it.
    path: Vec<Vec<u8>>,
    physical: i32,
    kind: Type,
    /// The levels and values of the next page.
    repetition: Option<Runs>,
    definition: Option<Runs>,
    values: Vec<u8>,
    /// How many values the next page has, missing ones included, and how many that are there.
    count: u64,
    present: u64,
    /// The complete pages.
    pages: Vec<u8>,
    pages_count: u64,
    /// Their size before they were compressed.
    plain: u64,
}

impl WriteColumn {
    /// A column whose values may be repeated or missing.
    pub(super) fn new(
        path: Vec<Vec<u8>>,
        (physical, kind): (i32, Type),
        is_repeated: bool,
        may_miss: bool,
    ) -> Self {
        Self {
            path,
            physical,
            kind,
            repetition: is_repeated.then(Runs::default),
            definition: may_miss.then(Runs::default),
            values: Vec::new(),
            count: 0,
            present: 0,
            pages: Vec::new(),
            pages_count: 0,
            plain: 0,
        }
    }

    /// The bytes of the group so far, before they were compressed.
    pub(super) fn plain(&self) -> u64 {
        self.plain + self.pending() as u64
    }

    fn pending(&self) -> usize {
        let levels = [&self.repetition, &self.definition].into_iter().flatten().map(Runs::len);
        levels.sum::<usize>() + self.values.len()
    }

    /// Appends a row that has at most one value.
    pub(super) fn push(&mut self, value: Option<&[u8]>, task: &Task<'_>) -> Result<(), Error> {
        if let Some(definition) = &mut self.definition {
            definition.push(value.is_some().into(), 1);
        }
        if let Some(value) = value {
            self.push_value(value)?;
        }
        self.count += 1;
        self.end_row(task)
    }

    fn push_value(&mut self, value: &[u8]) -> Result<(), Error> {
        match self.kind {
            Type::Bytes => {
                let length = u32::try_from(value.len()).map_err(|_| too_long())?;
                memory::append(&mut self.values, &length.to_le_bytes())?;
                memory::append(&mut self.values, value)?;
            }
            Type::Fixed(_) => memory::append(&mut self.values, value)?,
            Type::Boolean => {
                let bit = self.present % 8;
                if bit == 0 {
                    memory::push(&mut self.values, 0)?;
                }
                if let (Some(byte), [1]) = (self.values.last_mut(), value) {
                    *byte |= 1 << bit;
                }
            }
        }
        self.present += 1;
        Ok(())
    }

    /// Appends a row that is a list of numbers. It has the levels that a list which may be missing of numbers which may be
    /// missing has, though none is.
    pub(super) fn push_list(&mut self, numbers: &[u32], task: &Task<'_>) -> Result<(), Error> {
        const EMPTY: u8 = 1;
        const PRESENT: u8 = 3;
        let count = numbers.len() as u64;
        if let (Some(repetition), Some(definition)) = (&mut self.repetition, &mut self.definition) {
            repetition.push(0, 1);
            repetition.push(1, count.saturating_sub(1));
            definition.push(if count == 0 { EMPTY } else { PRESENT }, count.max(1));
        }
        memory::reserve(&mut self.values, size_of_val(numbers))?;
        self.values.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        self.count += count.max(1);
        self.end_row(task)
    }

    fn end_row(&mut self, task: &Task<'_>) -> Result<(), Error> {
        if self.pending() < PAGE { Ok(()) } else { self.end_page(task) }
    }

    /// Completes the page, if anything is in it.
    pub(super) fn end_page(&mut self, task: &Task<'_>) -> Result<(), Error> {
        if self.count == 0 {
            return Ok(());
        }
        let levels = [&mut self.repetition, &mut self.definition].into_iter().flatten();
        let mut plain = levels.flat_map(Runs::take).collect::<Vec<u8>>();
        memory::append(&mut plain, &self.values)?;
        self.values = Vec::new();
        if plain.len() > LARGEST {
            return Err(too_long());
        }
        let mut packed = Output::new();
        zstd::compress(&plain, &Settings::of_level(LEVEL), &mut packed, task).map_err(|error| match error
            .kind
        {
            zstd::ErrorKind::Stopped => Error::Stopped,
            zstd::ErrorKind::OutOfMemory => Error::OutOfMemory,
            _ => Error::unsupported(error.to_string()),
        })?;
        let packed = packed.into_bytes();
        let sum = crc32(0, &packed, task)?;
        let header = header(self.count, plain.len(), packed.len(), sum);
        memory::append(&mut self.pages, &header)?;
        memory::append(&mut self.pages, &packed)?;
        self.plain += (header.len() + plain.len()) as u64;
        self.pages_count += self.count;
        (self.count, self.present) = (0, 0);
        Ok(())
    }

    /// The complete pages.
    pub(super) fn pages(&self) -> &[u8] {
        &self.pages
    }

    /// Describes the column for the group's metadata. Its pages are at `offset` in the file.
    pub(super) fn describe(&self, offset: u64, thrift: &mut Thrift) {
        thrift.item(|thrift| {
            thrift.i64(2, 0);
            thrift.structure(3, |thrift| {
                thrift.i32(1, self.physical);
                thrift.list_of_i32(2, 2);
                thrift.i32_item(PLAIN);
                thrift.i32_item(RLE);
                thrift.list_of_texts(3, self.path.len());
                self.path.iter().for_each(|name| thrift.text_item(name));
                thrift.i32(4, ZSTD);
                thrift.i64(5, self.pages_count.cast_signed());
                thrift.i64(6, self.plain.cast_signed());
                thrift.i64(7, self.pages.len() as i64);
                thrift.i64(9, offset.cast_signed());
            });
        });
    }

    /// Makes the column ready for the next group.
    pub(super) fn clear(&mut self) {
        self.pages = Vec::new();
        (self.plain, self.pages_count) = (0, 0);
    }
}

fn header(count: u64, plain: usize, packed: usize, sum: u32) -> Vec<u8> {
    const VALUES: i32 = 0;
    let mut thrift = Thrift::default();
    thrift.item(|thrift| {
        thrift.i32(1, VALUES);
        thrift.i32(2, plain as i32);
        thrift.i32(3, packed as i32);
        thrift.i32(4, sum.cast_signed());
        thrift.structure(5, |thrift| {
            thrift.i32(1, count as i32);
            thrift.i32(2, PLAIN);
            thrift.i32(3, RLE);
            thrift.i32(4, RLE);
        });
    });
    thrift.bytes
}

fn too_long() -> Error {
    Error::unsupported("a value is too long for a page of Parquet")
}
