//! The documents of shards, a batch at a time.

use std::path::PathBuf;

use offlock_core::pipeline::{self, Error};
use offlock_core::{Stopped, tokens::TokenId};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyList;

use super::error::record_errors;
use super::file_name::FileName;
use super::packed::PackedNumbers;
use crate::cpython::sequence::{Container, SequenceBuilder};
use crate::gil_yield::Yielder;
use crate::int_list;
use crate::large::Large;
use crate::objects::{Int, Text, imported, tuple};
use crate::operations::{PIPELINE_CLOSE, PIPELINE_NEXT};
use crate::region::{Cancel, Region, Release};
use crate::tiktoken::packed::PackedTokens;

/// An iterator over batches of documents, which threads of its own encode ahead. Threads can share it.
///
/// As a context manager it ends these threads. They also end when the iterator is collected.
#[pyclass(frozen, module = "offlock.pipeline")]
pub(crate) struct Batches(pub(super) pipeline::Batches);

#[pymethods]
impl Batches {
    fn __iter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Batch>> {
        self.next(py, None)
    }

    /// Returns the next batch; ``None`` behind the last one, after an error and after ``close``.
    ///
    /// ``cancel``, an ``offlock.Cancel``, ends the wait from another thread; no batch is lost.
    #[pyo3(signature = (*, cancel = None), text_signature = "($self, *, cancel=None)", name = "next")]
    fn py_next(&self, py: Python<'_>, cancel: Option<&Bound<'_, Cancel>>) -> PyResult<Option<Batch>> {
        self.next(py, cancel)
    }

    /// Ends the threads. Batches that were not taken are dropped.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        Region::new(&PIPELINE_CLOSE, 0).run(py, |_| {
            self.0.close();
            Ok::<_, Stopped>(())
        })
    }

    fn __enter__(this: Py<Self>) -> Py<Self> {
        this
    }

    #[pyo3(signature = (*_exception), text_signature = "($self, *exception)")]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, pyo3::types::PyTuple>) -> PyResult<()> {
        self.close(py)
    }

    /// The number of bytes of the shards that have been read so far, as they are on the disk.
    #[getter]
    fn bytes_read(&self) -> Int {
        Int(self.0.bytes_read() as usize)
    }

    /// The size of all shards in bytes.
    #[getter]
    fn bytes_total(&self) -> Int {
        Int(self.0.bytes_total() as usize)
    }
}

impl Batches {
    fn next(&self, py: Python<'_>, cancel: Option<&Bound<'_, Cancel>>) -> PyResult<Option<Batch>> {
        let next = Region::new(&PIPELINE_NEXT, 0)
            .cancel(cancel.map(Bound::get))
            .run(py, |task| self.0.next(task))?;
        next.map(|batch| Batch::new(py, batch)).transpose()
    }
}

/// The documents of about 1 MB of records of one shard. Immutable.
#[pyclass(frozen, module = "offlock.pipeline")]
pub(crate) struct Batch {
    path: PathBuf,
    tokens: Py<PackedTokens>,
    offsets: Py<PackedNumbers>,
    records: Py<PackedNumbers>,
    bytes: u64,
    failed: u64,
    errors: Vec<Error>,
}

impl Batch {
    fn new(py: Python<'_>, batch: pipeline::Batch) -> PyResult<Self> {
        let pipeline::Batch { path, tokens, offsets, records, bytes, failed, errors, .. } = batch;
        Ok(Self {
            path,
            tokens: Py::new(py, PackedTokens(tokens))?,
            offsets: Py::new(py, PackedNumbers(Large::new(offsets)))?,
            records: Py::new(py, PackedNumbers(Large::new(records)))?,
            bytes,
            failed,
            errors,
        })
    }

    fn documents(&self) -> impl ExactSizeIterator<Item = &[TokenId]> {
        let tokens = &self.tokens.get().0;
        let ends = self.offsets.get().0.windows(2);
        ends.map(|ends| &tokens[ends[0] as usize..ends[1] as usize])
    }
}

#[pymethods]
impl Batch {
    /// The number of documents.
    fn __len__(&self) -> usize {
        self.records.get().0.len()
    }

    /// The shard's file.
    #[getter]
    fn path(&self) -> FileName<'_> {
        FileName(&self.path)
    }

    /// The tokens of all documents, one document after the other: 4 bytes each in the machine's order, read-only,
    /// behind the buffer protocol.
    #[getter]
    fn tokens(&self) -> &Py<PackedTokens> {
        &self.tokens
    }

    /// Where each document begins in ``tokens``, and the end of the last one: 8 bytes each.
    #[getter]
    fn offsets(&self) -> &Py<PackedNumbers> {
        &self.offsets
    }

    /// The number of each document's record in the shard, the first being 1; in formats of lines, that of the line: 8
    /// bytes each.
    #[getter]
    fn records(&self) -> &Py<PackedNumbers> {
        &self.records
    }

    /// The bytes of the documents' texts.
    #[getter]
    fn bytes(&self) -> Int {
        Int(self.bytes as usize)
    }

    /// How many records between the documents failed and were left out.
    #[getter]
    fn failed(&self) -> Int {
        Int(self.failed as usize)
    }

    /// What is wrong with them: a tuple of ``RecordError``, with ``on_error="report"``. At most 1,000 are kept.
    #[getter]
    fn failures<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        record_errors(py, &self.errors)
    }

    /// Returns the ids of each document, as a list of lists.
    fn lists<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let mut yielder = Yielder::of(Release::AUTO);
        let documents = self.documents();
        let mut lists = SequenceBuilder::new(py, Container::List, documents.len())?;
        for document in documents {
            yielder.tick_many(py, 1 + document.len() / 8)?;
            lists.push(int_list::list(py, document, &mut yielder)?);
        }
        Ok(lists.finish().cast_into()?)
    }

    /// Returns ``tokens`` and ``offsets`` as read-only numpy arrays of ``uint32`` and ``uint64``, without a copy.
    fn to_numpy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let array = |packed: Bound<'py, PyAny>, dtype| from_buffer(py)?.call1((packed, Text(dtype)));
        let tokens = array(self.tokens.bind(py).clone().into_any(), "uint32")?;
        let offsets = array(self.offsets.bind(py).clone().into_any(), "uint64")?;
        tuple(py, [tokens, offsets])
    }

    fn __repr__(&self) -> Text<String> {
        let (path, documents) = (self.path.display(), self.__len__());
        Text(format!("<Batch of {documents} documents of {path}, {} tokens>", self.tokens.get().0.len()))
    }
}

/// The function `numpy.frombuffer`.
fn from_buffer(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static FROM_BUFFER: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    imported(&FROM_BUFFER, py, "numpy", "frombuffer")
}
