//! What a run found out.

use offlock_core::pipeline::{self, Done, Totals};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::error::record_errors;
use super::file_name::FileName;
use crate::error::WithMessage;
use crate::objects::{Int, Text, tuple};

/// What a run over shards found out. Immutable.
#[pyclass(frozen, module = "offlock.pipeline")]
pub(crate) struct Summary {
    core: pipeline::Summary,
    totals: Totals,
    errors: Vec<pipeline::Error>,
    /// What other processes found wrong.
    elsewhere: Option<Py<PyTuple>>,
}

impl Summary {
    pub(super) fn new(core: pipeline::Summary, errors: Vec<pipeline::Error>) -> Self {
        Self { totals: core.totals(), core, errors, elsewhere: None }
    }
}

/// A number of documents, bytes or tokens.
fn int(number: u64) -> Int {
    Int(number as usize)
}

#[pymethods]
impl Summary {
    /// How many documents were encoded.
    #[getter]
    fn documents(&self) -> Int {
        int(self.totals.documents)
    }

    /// The bytes of their texts.
    #[getter]
    fn bytes(&self) -> Int {
        int(self.totals.bytes)
    }

    /// Their tokens, with those put before and after documents.
    #[getter]
    fn tokens(&self) -> Int {
        int(self.totals.tokens)
    }

    /// How many records failed and were left out, and how many shards could not be read to their end.
    #[getter]
    fn failed(&self) -> Int {
        int(self.totals.errors)
    }

    /// What is wrong with them: a tuple of ``RecordError``, with ``on_error="report"``. At most 1,000 are kept.
    #[getter]
    fn failures<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match &self.elsewhere {
            Some(failures) => Ok(failures.bind(py).clone().into_any()),
            None => record_errors(py, &self.errors),
        }
    }

    /// This summary of shards that other processes have written just now: how many an earlier run had finished, and what
    /// is wrong with records.
    fn _written_elsewhere(&self, resumed: usize, failures: &Bound<'_, PyTuple>) -> Self {
        let core = pipeline::Summary { resumed, ..self.core.clone() };
        Self { elsewhere: Some(failures.clone().unbind()), ..Self::new(core, Vec::new()) }
    }

    /// How many shards an earlier run had finished.
    #[getter]
    fn resumed(&self) -> Int {
        Int(self.core.resumed)
    }

    /// The tokens of the longest document.
    #[getter]
    fn longest(&self) -> Int {
        int(self.totals.lengths.longest())
    }

    /// Returns the least number of tokens that at least ``percent`` of the documents do not exceed; 0 without
    /// documents.
    ///
    /// Raises ``ValueError`` when ``percent`` is not between 0 and 100.
    fn percentile(&self, percent: f64) -> PyResult<Int> {
        if !(0.0..=100.0).contains(&percent) {
            let message = format!("percent must be between 0 and 100, it is {percent}");
            return Err(PyValueError::with_message(message));
        }
        Ok(int(self.totals.lengths.percentile(percent)))
    }

    /// The shards in their order: a tuple of ``ShardSummary``.
    #[getter]
    fn shards<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let shard = |done: &Done| Ok(Bound::new(py, ShardSummary(done.clone()))?.into_any());
        tuple(py, self.core.shards.iter().map(shard).collect::<PyResult<Vec<_>>>()?)
    }

    fn __repr__(&self) -> Text<String> {
        let Totals { documents, bytes, tokens, errors, .. } = self.totals;
        Text(format!("<Summary of {documents} documents, {bytes} bytes, {tokens} tokens, {errors} failed>"))
    }
}

/// What became of one shard. Immutable.
#[pyclass(frozen, module = "offlock.pipeline")]
pub(crate) struct ShardSummary(Done);

#[pymethods]
impl ShardSummary {
    /// The file that was read.
    #[getter]
    fn path(&self) -> FileName<'_> {
        FileName(&self.0.path)
    }

    /// How many documents were encoded.
    #[getter]
    fn documents(&self) -> Int {
        int(self.0.totals.documents)
    }

    /// The bytes of their texts.
    #[getter]
    fn bytes(&self) -> Int {
        int(self.0.totals.bytes)
    }

    /// Their tokens, with those put before and after documents.
    #[getter]
    fn tokens(&self) -> Int {
        int(self.0.totals.tokens)
    }

    /// How many records failed and were left out.
    #[getter]
    fn failed(&self) -> Int {
        int(self.0.totals.errors)
    }

    /// The names of the files that were written, below the folder.
    #[getter]
    fn files<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let name = |file: &pipeline::Written| Text(file.name.as_str()).into_pyobject(py).map(Bound::into_any);
        tuple(py, self.0.files.iter().map(name).collect::<PyResult<Vec<_>>>()?)
    }

    fn __repr__(&self) -> Text<String> {
        let Totals { documents, bytes, tokens, errors, .. } = self.0.totals;
        let path = self.0.path.display();
        Text(format!(
            "<ShardSummary of {path}: {documents} documents, {bytes} bytes, {tokens} tokens, {errors} failed>"
        ))
    }
}
