//! Cuts a shard into batches of whole records.
//!
//! Only the ends of records are looked for here, because a shard's batches are made by one thread at a time: the
//! last newline of what was decompressed, or the ends of MessagePack messages. Parsing is left to the threads that
//! get the batches.

use std::path::{Path, PathBuf};

use super::batch::{BATCH, Batch, Content};
use super::decompress::Decompressed;
use super::error::{Error, ErrorKind, Place};
use super::shard::Format;
use crate::jsonl::BYTE_ORDER_MARK;
use crate::msgpack::{Limits, Reader, Scanner, Token};
use crate::{Task, memory};

/// How deep MessagePack records may be nested.
const DEPTH: usize = 1000;

/// The most bytes that end a line.
const LINE_END: usize = 2;

/// Whether the beginning of a shard is enough to see a byte order mark, the header of an array, and what follows
/// blanks.
fn tells_format(beginning: &[u8]) -> bool {
    const HEADER: usize = 5;
    beginning.len() >= BATCH || beginning.len() >= HEADER && !beginning.iter().all(u8::is_ascii_whitespace)
}

/// Whole records at the beginning of some bytes.
#[derive(Default)]
struct Whole {
    end: usize,
    records: u64,
}

/// The records of a shard, in batches.
pub(super) struct Stream {
    path: PathBuf,
    source: Decompressed,
    format: Format,
    limit: usize,
    /// The beginning of the next batch, which has been decompressed already.
    rest: Vec<u8>,
    place: Place,
    /// How much of the next batch has no newline.
    searched: usize,
    scanner: Scanner,
    /// Items of an array that is the whole file, of which each is a record.
    missing: u64,
    /// Why the source ended early, once the records before that have been given.
    broken: Option<ErrorKind>,
    ended: bool,
    /// Whether the rest of a record that was too long is still to be skipped.
    skips: bool,
}

impl Stream {
    /// Opens a shard. If the name does not tell its format, the first bytes do.
    pub(super) fn open(
        path: &Path,
        format: Option<Format>,
        limit: usize,
        task: &Task<'_>,
    ) -> Result<Self, Error> {
        let wrong = |kind| Error::new(path, kind);
        let mut source = Decompressed::open(path).map_err(wrong)?;
        let (mut rest, mut broken) = (Vec::new(), None);
        while !tells_format(&rest) {
            match source.append(&mut rest, task) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    broken = Some(error);
                    break;
                }
            }
        }
        let mark = if rest.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
        rest.drain(..mark);
        let format = match format.or_else(|| Format::of_content(&rest)) {
            Some(format) => format,
            None if rest.is_empty() => Format::Lines,
            None => {
                let message = "the format is not known by the name nor by the content; state it".to_owned();
                return Err(wrong(ErrorKind::Invalid { message }));
            }
        };
        let mut records = Self {
            path: path.to_owned(),
            source,
            format,
            limit,
            rest,
            place: Place { number: 1, offset: mark as u64, is_page: false },
            searched: 0,
            scanner: Scanner::default(),
            missing: 0,
            broken,
            ended: false,
            skips: false,
        };
        if format == Format::Msgpack {
            records.open_array();
        }
        Ok(records)
    }

    /// The format of the shard.
    pub(super) fn format(&self) -> Format {
        self.format
    }

    /// The number of bytes of the file that have been read.
    pub(super) fn read(&self) -> u64 {
        self.source.read()
    }

    /// Passes the header of an array that is the whole file.
    fn open_array(&mut self) {
        let mut reader = Reader::at(&self.rest, 0);
        if let Ok(Token::Array(items)) = reader.token() {
            self.missing = items.into();
            self.place.offset = reader.pos() as u64;
            let header = reader.pos();
            self.rest.drain(..header);
        }
    }

    /// The next batch. After an error about a record, the next call goes on behind that record; if the rest
    /// cannot be read, the next call returns `None`.
    pub(super) fn next(&mut self, task: &Task<'_>) -> Result<Option<Batch>, Error> {
        let mut bytes = std::mem::take(&mut self.rest);
        self.searched = 0;
        loop {
            if self.skips {
                self.skip_line(&mut bytes);
            }
            let source_ended = self.ended || self.broken.is_some();
            if bytes.len() >= BATCH || source_ended {
                match self.whole_records(&bytes, source_ended, task) {
                    Ok(whole) if whole.end > 0 => return self.batch(bytes, whole).map(Some),
                    Ok(_) if source_ended => return self.end(&bytes),
                    Ok(_) if bytes.len() > self.limit.saturating_add(LINE_END) => {
                        return Err(self.too_long(&bytes));
                    }
                    Ok(_) => {}
                    Err(kind) => return Err(self.give_up(kind)),
                }
            }
            match self.source.append(&mut bytes, task) {
                Ok(true) => {}
                Ok(false) => self.ended = true,
                Err(kind @ (ErrorKind::Stopped | ErrorKind::OutOfMemory)) => {
                    return Err(Error::new(&self.path, kind));
                }
                Err(kind) => self.broken = Some(kind),
            }
        }
    }

    /// The whole records at the beginning of `bytes`.
    fn whole_records(&mut self, bytes: &[u8], is_all: bool, task: &Task<'_>) -> Result<Whole, ErrorKind> {
        // The last record of lines may lack its newline, unless the shard was cut off there.
        let takes_all = is_all && self.broken.is_none();
        match self.format {
            Format::Msgpack => self.whole_messages(bytes, task),
            Format::Text | Format::Parquet if takes_all => Ok(Whole { end: bytes.len(), records: 1 }),
            Format::Text | Format::Parquet => Ok(Whole::default()),
            Format::Jsonl | Format::Lines => {
                let newline = memchr::memrchr(b'\n', &bytes[self.searched..]);
                let newline = newline.map_or(0, |newline| self.searched + newline + 1);
                self.searched = bytes.len();
                let end = if takes_all { bytes.len() } else { newline };
                let records = memchr::memchr_iter(b'\n', &bytes[..end]).count() as u64;
                Ok(Whole { end, records })
            }
        }
    }

    /// The messages before one that is invalid are whole; the next call finds that one at the beginning.
    fn whole_messages(&mut self, bytes: &[u8], task: &Task<'_>) -> Result<Whole, ErrorKind> {
        let mut whole = Whole::default();
        while whole.end < bytes.len() {
            match self.scanner.advance(&bytes[whole.end..], &Limits::depth(DEPTH), task) {
                Ok(Some(length)) => {
                    whole.end += length;
                    whole.records += 1;
                }
                Err(error) if whole.records == 0 => return Err(error.into()),
                Ok(None) | Err(_) => break,
            }
        }
        self.missing = self.missing.saturating_sub(whole.records);
        Ok(whole)
    }

    fn batch(&mut self, mut bytes: Vec<u8>, whole: Whole) -> Result<Batch, Error> {
        self.rest = memory::copied(&bytes[whole.end..]).map_err(|error| Error::new(&self.path, error))?;
        bytes.truncate(whole.end);
        let batch = Batch { place: self.place, content: Content::Bytes(bytes) };
        self.place.offset += whole.end as u64;
        self.place.number += whole.records;
        Ok(batch)
    }

    /// Nothing is left but what is not a whole record.
    fn end(&mut self, rest: &[u8]) -> Result<Option<Batch>, Error> {
        self.ended = true;
        if let Some(kind) = self.broken.take() {
            return Err(match kind {
                ErrorKind::Compression { .. } => Error::in_record(&self.path, self.place, kind),
                kind => Error::new(&self.path, kind),
            });
        }
        if rest.is_empty() && self.missing == 0 {
            return Ok(None);
        }
        self.missing = 0;
        let message = "MessagePack: the data ends within a record".to_owned();
        Err(Error::in_record(&self.path, self.place, ErrorKind::Malformed { message }))
    }

    /// Ends the shard, as the end of the record cannot be found.
    fn give_up(&mut self, kind: ErrorKind) -> Error {
        (self.ended, self.broken, self.missing) = (true, None, 0);
        Error::in_record(&self.path, self.place, kind)
    }

    fn too_long(&mut self, bytes: &[u8]) -> Error {
        let ends_shard = matches!(self.format, Format::Text | Format::Msgpack);
        let kind = ErrorKind::TooLong { limit: self.limit, ends_shard };
        if ends_shard {
            return self.give_up(kind);
        }
        let error = Error::in_record(&self.path, self.place, kind);
        self.place.offset += bytes.len() as u64;
        self.skips = true;
        error
    }

    /// Drops the bytes up to the end of the line.
    fn skip_line(&mut self, bytes: &mut Vec<u8>) {
        let newline = memchr::memchr(b'\n', bytes);
        let end = newline.map_or(bytes.len(), |newline| newline + 1);
        bytes.drain(..end);
        self.searched = 0;
        self.place.offset += end as u64;
        if newline.is_some() {
            self.place.number += 1;
            self.skips = false;
        }
    }
}
