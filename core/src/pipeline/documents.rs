//! From a batch of records to the tokens of its documents.
//!
//! This is the bulk of the work, and each thread does it for batches of its own.

use std::path::Path;
use std::sync::Arc;

use super::batch::{Batch, Content, KeptRows, Table, Wanted};
use super::error::{Error, ErrorKind, Place};
use super::jsonl::Fields;
use super::model::Model;
use super::shard::Format;
use super::texts::{about_id, name_of_row, text_of, utf8};
use crate::msgpack::end_of_message;
use crate::msgpack::extract;
use crate::tokens::TokenId;
use crate::{Field, Task, memory};

/// What to take out of a record, and what to make of it.
pub(super) struct Extraction<'a> {
    pub(super) model: &'a Model,
    /// The keys that lead to the text, from the outermost one.
    pub(super) field: &'a [String],
    /// The keys that lead to the document's name, for formats that mention it.
    pub(super) id: Option<&'a [String]>,
    /// The most bytes that a record may have.
    pub(super) limit: usize,
    /// A token to put before each document, and one to put after it.
    pub(super) before: Option<TokenId>,
    pub(super) after: Option<TokenId>,
    /// The name of the column of tokens, if the other columns of a table are kept beside it.
    pub(super) keep_beside: Option<&'a str>,
    /// Whether documents without tokens have a place where they go.
    pub(super) may_be_empty: bool,
    pub(super) on_error: OnError,
}

/// A document that was encoded.
pub(super) struct Document {
    /// The end of its tokens among those of the batch.
    pub(super) end: usize,
    /// The length of its text in bytes.
    pub(super) bytes: usize,
    pub(super) place: Place,
    /// Its name, if that was asked for and it has one.
    pub(super) id: Option<String>,
    /// The number of its row among those that are kept.
    pub(super) row: usize,
}

/// The documents of a batch.
#[derive(Default)]
pub(super) struct Encoded {
    pub(super) tokens: Vec<TokenId>,
    pub(super) documents: Vec<Document>,
    /// The number of the other records.
    pub(super) failed: u64,
    /// What is wrong with them, unless they are only counted.
    pub(super) errors: Vec<Error>,
    /// The rows of the other columns, failed ones included, if they are kept.
    pub(super) kept: Option<Arc<KeptRows>>,
}

/// What to do with a record that fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnError {
    /// Stop with its error.
    Fail,
    /// Leave it out and count it.
    Skip,
    /// Leave it out, count it, and report its error.
    Report,
}

impl OnError {
    /// All choices with their names.
    pub const NAMES: [(&'static str, Self); 3] =
        [("fail", Self::Fail), ("skip", Self::Skip), ("report", Self::Report)];
}

impl Extraction<'_> {
    /// What is to be read of a shard.
    pub(super) fn wanted(&self) -> Wanted<'_> {
        Wanted { field: self.field, id: self.id, limit: self.limit, keep_beside: self.keep_beside }
    }

    /// Encodes the documents of a batch. Only errors that concern no record end it.
    pub(super) fn run(
        &self,
        batch: Batch,
        format: Format,
        path: &Path,
        task: &Task<'_>,
    ) -> Result<Encoded, Error> {
        match batch.content {
            Content::Bytes(bytes) => self.records(&bytes, batch.place, format, path, task),
            Content::Rows(table) => self.rows(table, batch.place, path, task),
        }
    }

    fn records(
        &self,
        bytes: &[u8],
        mut place: Place,
        format: Format,
        path: &Path,
        task: &Task<'_>,
    ) -> Result<Encoded, Error> {
        let fields = Fields::new(self.field, self.id).map_err(|kind| Error::new(path, kind))?;
        let mut encoded = Encoded::default();
        let mut rest = bytes;
        while !rest.is_empty() {
            task.check().map_err(|stopped| Error::new(path, stopped))?;
            let (length, done) = match format {
                Format::Msgpack => {
                    let length = end_of_message(rest, 0, task);
                    let length = length.map_err(|error| Error::in_record(path, place, error))?;
                    (length, self.message(&rest[..length], place, &mut encoded, task))
                }
                Format::Text | Format::Parquet => {
                    (rest.len(), self.document(rest, place, &mut encoded, task))
                }
                Format::Jsonl | Format::Lines => {
                    let end = memchr::memchr(b'\n', rest).map_or(rest.len(), |newline| newline + 1);
                    let line = content(&rest[..end]);
                    let is_blank = line.iter().all(u8::is_ascii_whitespace);
                    let done = match format {
                        _ if is_blank => Ok(()),
                        Format::Jsonl => self.line(line, &fields, place, &mut encoded, task),
                        _ => self.document(line, place, &mut encoded, task),
                    };
                    (end, done)
                }
            };
            if let Err(kind) = done {
                self.note(Error::in_record(path, place, kind), &mut encoded)?;
                if self.on_error == OnError::Fail {
                    break;
                }
            }
            rest = &rest[length..];
            place.offset += length as u64;
            place.number += 1;
        }
        Ok(encoded)
    }

    fn rows(&self, table: Table, first: Place, path: &Path, task: &Task<'_>) -> Result<Encoded, Error> {
        let mut encoded = Encoded::default();
        for (row, &offset) in table.pages.iter().enumerate() {
            task.check().map_err(|stopped| Error::new(path, stopped))?;
            let place = Place { number: first.number + row as u64, offset, ..first };
            if let Err(kind) = self.row(&table, row, place, &mut encoded, task) {
                self.note(Error::in_record(path, place, kind), &mut encoded)?;
                if self.on_error == OnError::Fail {
                    break;
                }
            }
        }
        encoded.kept = table.kept;
        Ok(encoded)
    }

    fn row(
        &self,
        table: &Table,
        row: usize,
        place: Place,
        encoded: &mut Encoded,
        task: &Task<'_>,
    ) -> Result<(), ErrorKind> {
        let text = table.text.get(row).ok_or(ErrorKind::MissingField)?;
        self.check_length(text)?;
        let id = match &table.id {
            Some((meaning, ids)) => ids.get(row).map(|id| name_of_row(*meaning, id)).transpose()?,
            None => None,
        };
        self.encode(utf8(text)?, place, id, encoded, task)?;
        if let Some(document) = encoded.documents.last_mut() {
            document.row = row;
        }
        Ok(())
    }

    /// Notes the error of a record. Errors that concern no record are returned.
    pub(super) fn note(&self, error: Error, encoded: &mut Encoded) -> Result<(), Error> {
        if !error.concerns_input() {
            return Err(error);
        }
        encoded.failed += 1;
        if self.on_error != OnError::Skip {
            let path = error.path.clone();
            memory::push(&mut encoded.errors, error).map_err(|error| Error::new(&path, error))?;
        }
        Ok(())
    }

    fn line(
        &self,
        line: &[u8],
        fields: &Fields,
        place: Place,
        encoded: &mut Encoded,
        task: &Task<'_>,
    ) -> Result<(), ErrorKind> {
        self.check_length(line)?;
        let (text, id) = fields.of(utf8(line)?)?;
        self.encode(&text, place, id, encoded, task)
    }

    fn message(
        &self,
        message: &[u8],
        place: Place,
        encoded: &mut Encoded,
        task: &Task<'_>,
    ) -> Result<(), ErrorKind> {
        self.check_length(message)?;
        let find = |path: &[String]| {
            let path: Vec<&[u8]> = path.iter().map(|key| key.as_bytes()).collect();
            let (found, _) = extract::of_record(message, 0, &path, task)?;
            found.ok_or(ErrorKind::MissingField)
        };
        let text = utf8(text_of(find(self.field)?)?.of(message))?;
        let id = |path| match find(path)? {
            Field::UInt(number) => Ok(number.to_string()),
            Field::Int(number) => Ok(number.to_string()),
            field => Ok(utf8(text_of(field)?.of(message))?.to_owned()),
        };
        let id = self.id.map_or(Ok(None), |path| about_id(id(path)))?;
        self.encode(text, place, id, encoded, task)
    }

    fn document(
        &self,
        text: &[u8],
        place: Place,
        encoded: &mut Encoded,
        task: &Task<'_>,
    ) -> Result<(), ErrorKind> {
        self.check_length(text)?;
        self.encode(utf8(text)?, place, None, encoded, task)
    }

    fn check_length(&self, record: &[u8]) -> Result<(), ErrorKind> {
        if record.len() <= self.limit {
            return Ok(());
        }
        Err(ErrorKind::TooLong { limit: self.limit, ends_shard: false })
    }

    fn encode(
        &self,
        text: &str,
        place: Place,
        id: Option<String>,
        encoded: &mut Encoded,
        task: &Task<'_>,
    ) -> Result<(), ErrorKind> {
        let tokens = &mut encoded.tokens;
        let before = tokens.len();
        if let Some(token) = self.before {
            memory::push(tokens, token)?;
        }
        if let Err(error) = self.model.encode(text, tokens, task) {
            tokens.truncate(before);
            return Err(error.into());
        }
        if let Some(token) = self.after {
            memory::push(tokens, token)?;
        }
        if tokens.len() == before && !self.may_be_empty {
            let message = "the document has no tokens, which the format cannot hold".to_owned();
            return Err(ErrorKind::Malformed { message });
        }
        let document = Document { end: tokens.len(), bytes: text.len(), place, id, row: 0 };
        Ok(memory::push(&mut encoded.documents, document)?)
    }
}

/// A line without what ends it.
fn content(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}
