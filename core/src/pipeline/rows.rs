//! The rows of a Parquet file, in batches.
//!
//! The columns that are wanted are read side by side, each page by page. Pages are decompressed here, by one thread at a
//! time, and the values of each row are copied out of them; encoding is left to the threads that get the batches.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::batch::{BATCH, Batch, Content, KeptRows, Table, Wanted};
use super::error::{Error, ErrorKind, Place};
use crate::parquet::{self, Group, Kept, Leaf, Meaning, Named, Rows, Schema};
use crate::{Task, memory};

/// What a row counts for in the size of a batch, besides its values.
const ROW: usize = 32;

/// How many columns a message names.
const NAMED: usize = 20;

/// The rows of a file, in batches.
pub(super) struct RowReader {
    path: PathBuf,
    file: parquet::File,
    /// The columns that are read: the text, the document's name, if it is wanted and there, and those that are kept.
    columns: Vec<usize>,
    id: Option<Meaning>,
    kept: Option<Arc<[Kept]>>,
    group: Option<Group>,
    /// How many rows of the group are still to come.
    left: u64,
    /// The number of the next row, and where the page of the last one begins.
    place: Place,
    /// Why no more can be read, once the rows before that have been given.
    broken: Option<Error>,
    ended: bool,
    /// Whether a batch was given, so that it is known which columns are kept.
    has_begun: bool,
}

impl RowReader {
    pub(super) fn open(path: &Path, wanted: Wanted<'_>, task: &Task<'_>) -> Result<Self, Error> {
        let wrong = |kind: ErrorKind| Error::new(path, kind);
        let source = File::open(path).map_err(|error| Error::new(path, error))?;
        let file = parquet::File::open(Arc::new(source), task).map_err(|error| wrong(error.into()))?;
        let schema = file.schema();
        let mut columns = vec![text(schema, wanted.field).map_err(wrong)?];
        let mut id = None;
        let mut kept = None;
        if let Some(made) = wanted.keep_beside {
            kept = Some(keep(schema, made, &mut columns));
        } else if let Some(keys) = wanted.id
            && let Some((column, meaning)) = name(schema, keys).map_err(wrong)?
        {
            columns.push(column);
            id = Some(meaning);
        }
        Ok(Self {
            path: path.to_owned(),
            file,
            columns,
            id,
            kept,
            group: None,
            left: 0,
            place: Place { number: 1, offset: 0, is_page: true },
            broken: None,
            ended: false,
            has_begun: false,
        })
    }

    /// The number of bytes of the file that have been read, estimated by the rows.
    pub(super) fn read(&self) -> u64 {
        let (size, rows) = (self.file.size(), self.file.rows());
        if self.ended {
            return size;
        }
        let done = (self.place.number - 1).min(rows);
        (u128::from(size) * u128::from(done) / u128::from(rows.max(1))) as u64
    }

    pub(super) fn next(&mut self, task: &Task<'_>) -> Result<Option<Batch>, Error> {
        while !self.ended {
            if let Some(error) = self.broken.take() {
                self.ended = true;
                return Err(error);
            }
            if self.left == 0 {
                self.next_group();
                continue;
            }
            let batch = self.batch(task)?;
            if !matches!(&batch.content, Content::Rows(table) if table.pages.is_empty()) {
                self.has_begun = true;
                return Ok(Some(batch));
            }
        }
        // A table without rows has columns nevertheless.
        if std::mem::replace(&mut self.has_begun, true) || self.kept.is_none() {
            return Ok(None);
        }
        self.empty().map(Some)
    }

    /// Begins the next group of rows, if there is one.
    fn next_group(&mut self) {
        match self.file.next_group(&self.columns) {
            Ok(Some(group)) => {
                self.left = group.rows;
                self.group = Some(group);
            }
            Ok(None) => self.ended = true,
            Err(error) => self.broken = Some(Error::in_record(&self.path, self.place, error)),
        }
    }

    /// Rows of the group, as many as make up a batch.
    fn batch(&mut self, task: &Task<'_>) -> Result<Batch, Error> {
        let no_memory = |error: memory::OutOfMemory| Error::new(&self.path, error);
        let mut rows =
            memory::collected(self.columns.iter().map(|_| Ok(Rows::default()))).map_err(no_memory)?;
        let (mut pages, mut first) = (Vec::new(), self.place);
        let mut size = 0;
        while self.left > 0 && size < BATCH {
            match self.row(&mut rows, task) {
                Ok(page) => {
                    memory::push(&mut pages, page).map_err(|error| Error::new(&self.path, error))?;
                    self.place.offset = page;
                }
                Err(error) => {
                    self.place.offset = self.page();
                    let error = Error::in_record(&self.path, self.place, error);
                    if !error.concerns_input() {
                        return Err(error);
                    }
                    self.broken = Some(error);
                    self.left = 0;
                    break;
                }
            }
            self.left -= 1;
            self.place.number += 1;
            size = rows.iter().map(|rows| rows.bytes.len()).sum::<usize>() + pages.len() * ROW;
        }
        if let Some(page) = pages.first() {
            first.offset = *page;
        }
        Ok(Batch { place: first, content: Content::Rows(self.table(pages, rows)) })
    }

    /// Appends a row to each column. Returns where the page of its text begins.
    fn row(&mut self, rows: &mut [Rows], task: &Task<'_>) -> Result<u64, parquet::Error> {
        let columns = self.group.iter_mut().flat_map(|group| &mut group.columns);
        columns.zip(rows).try_for_each(|(column, rows)| column.next(rows, task))?;
        Ok(self.page())
    }

    /// Where the page of the last text begins.
    fn page(&self) -> u64 {
        self.group.as_ref().map_or(0, |group| group.columns[0].page_offset())
    }

    fn table(&self, pages: Vec<u64>, rows: Vec<Rows>) -> Table {
        let mut rows = rows.into_iter();
        let text = rows.next().unwrap_or_default();
        let id = self.id.and_then(|meaning| Some((meaning, rows.next()?)));
        let kept =
            self.kept.as_ref().map(|columns| KeptRows { columns: Arc::clone(columns), rows: rows.collect() });
        Table { pages, text, id, kept: kept.map(Arc::new) }
    }

    fn empty(&self) -> Result<Batch, Error> {
        let rows = self.columns.iter().map(|_| Rows::default()).collect();
        Ok(Batch { place: self.place, content: Content::Rows(self.table(Vec::new(), rows)) })
    }
}

/// The column of texts of these keys.
fn text(schema: &Schema, keys: &[String]) -> Result<usize, ErrorKind> {
    let column = match schema.find(keys) {
        Named::Column(column) => column,
        Named::Group => return Err(ErrorKind::NotText { found: "a group or a list" }),
        Named::Nothing => {
            let names = schema.columns().iter().filter(|leaf| leaf.is_flat).take(NAMED);
            let names: Vec<_> = names.map(|leaf| String::from_utf8_lossy(schema.name(leaf))).collect();
            let message = format!("there is no column {}, but {}", keys.join("."), names.join(", "));
            return Err(ErrorKind::Malformed { message });
        }
    };
    match meaning(&schema.columns()[column]) {
        Meaning::Text | Meaning::Null => Ok(column),
        Meaning::Other(found) => Err(ErrorKind::NotText { found }),
        Meaning::Signed | Meaning::Unsigned => Err(ErrorKind::NotText { found: "a number" }),
    }
}

/// The column of documents' names, and what these are, if there is one.
fn name(schema: &Schema, keys: &[String]) -> Result<Option<(usize, Meaning)>, ErrorKind> {
    let wrong = |found| {
        let message = format!("the document's id: {}", ErrorKind::NotText { found });
        Err(ErrorKind::Malformed { message })
    };
    match schema.find(keys) {
        Named::Nothing => Ok(None),
        Named::Group => wrong("a group or a list"),
        Named::Column(column) => match meaning(&schema.columns()[column]) {
            Meaning::Null => Ok(None),
            Meaning::Other(found) => wrong(found),
            meaning => Ok(Some((column, meaning))),
        },
    }
}

fn meaning(leaf: &Leaf) -> Meaning {
    if leaf.is_repeated { Meaning::Other("a list") } else { leaf.meaning }
}

/// Adds the columns that are kept beside the one that is made, which takes the place of one of its name.
fn keep(schema: &Schema, made: &str, columns: &mut Vec<usize>) -> Arc<[Kept]> {
    let mut kept = Vec::new();
    for (index, leaf) in schema.columns().iter().enumerate() {
        if index != columns[0]
            && let Some(column) = Kept::of(schema, leaf)
            && column.name() != made.as_bytes()
        {
            columns.push(index);
            kept.push(column);
        }
    }
    kept.into()
}
