//! The runs over shards: count, write, and read in batches.

use std::path::PathBuf;
use std::sync::Arc;

use offlock_core::pipeline::{
    self, Destination, Eos, Error, Format, Model, OnError, Output, Part, Reports, Settings, Shard,
    TokenizerSource,
};
use offlock_core::{Operation, Task};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString, PyTuple, PyType};

use super::batches::Batches;
use super::file_name::{FileName, file_path};
use super::summary::Summary;
use crate::bytes;
use crate::cpython::late_init::Boxed;
use crate::error::{IntoException, WithMessage};
use crate::model::ModelTokenizer;
use crate::objects::{Int, Text, tuple};
use crate::operations::{
    PIPELINE_COUNT, PIPELINE_FIND, PIPELINE_PACK, PIPELINE_PREPARE, PIPELINE_WRITE, TOKENS_LOAD,
};
use crate::region::{Cancel, Progress, Region};

/// The shards that paths name.
#[pyclass(frozen, module = "offlock._offlock.pipeline")]
pub(crate) struct Shards(Arc<Vec<Shard>>);

#[pymethods]
impl Shards {
    #[new]
    fn new(py: Python<'_>, paths: &Bound<'_, PyList>) -> PyResult<Self> {
        let paths: Vec<PathBuf> = paths.iter().map(|path| file_path(&path)).collect::<PyResult<_>>()?;
        Region::new(&PIPELINE_FIND, 0).run(py, |_| pipeline::find(&paths)).map(Arc::new).map(Self)
    }

    /// The files, as a tuple.
    #[getter]
    fn paths<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let path = |shard: &Shard| FileName(&shard.path).into_pyobject(py);
        tuple(py, self.0.iter().map(path).collect::<PyResult<Vec<_>>>()?)
    }

    /// Their size in bytes.
    #[getter]
    fn size(&self) -> Int {
        Int(self.0.iter().map(|shard| shard.size).sum::<u64>() as usize)
    }

    /// The shards that `packed` of other ones returned.
    #[classmethod]
    fn unpacked<'py>(class: &Bound<'py, PyType>, packed: &Bound<'py, PyBytes>) -> PyResult<Self> {
        let bytes = packed.as_bytes();
        let shards =
            Region::new(&PIPELINE_PACK, bytes.len() / 100).run(class.py(), |_| pipeline::unpack(bytes));
        shards.map(Arc::new).map(Self)
    }

    /// The shards as bytes, for another process.
    fn packed<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let packed = Region::new(&PIPELINE_PACK, self.0.len()).run(py, |_| pipeline::pack(&self.0))?;
        bytes::from_memory(py, packed)
    }
}

/// The tokens of the documents in shards: counted, written to files, or in batches. Immutable.
#[pyclass(frozen, subclass, module = "offlock._offlock.pipeline")]
pub(crate) struct Tokens(Boxed<Source>);

/// What to read, and how.
struct Source {
    shards: Arc<Vec<Shard>>,
    settings: Arc<Settings>,
}

#[pymethods]
impl Tokens {
    #[new]
    #[pyo3(signature = (shards, *, field, format, max_doc_bytes, on_error, num_threads, encoding, model, tokenizer))]
    #[expect(clippy::too_many_arguments, reason = "one for each keyword in Python")]
    fn new(
        py: Python<'_>,
        shards: &Bound<'_, Shards>,
        field: &Bound<'_, PyTuple>,
        format: Option<&str>,
        max_doc_bytes: usize,
        on_error: &str,
        num_threads: usize,
        encoding: Option<&str>,
        model: Option<&str>,
        tokenizer: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let format = format.map(|name| named("format", name, &Format::NAMES)).transpose()?;
        let on_error = named("on_error", on_error, &OnError::NAMES)?;
        let field = field.iter().map(|key| Ok(key.cast::<PyString>()?.to_str()?.to_owned()));
        let field = field.collect::<PyResult<_>>()?;
        let loaded = tokenizer.and_then(|tokenizer| tokenizer.cast::<ModelTokenizer>().ok());
        let path = tokenizer.filter(|_| loaded.is_none()).map(file_path).transpose()?;
        let loaded = loaded.map(|tokenizer| TokenizerSource::Loaded(tokenizer.get().core()));
        let tokenizer = loaded.or_else(|| path.as_deref().map(TokenizerSource::File));
        let model = Region::new(&TOKENS_LOAD, 0)
            .run(py, |task| Model::choose(encoding, model, tokenizer.clone(), task))?;
        let settings =
            Settings { format, field, max_doc_bytes, on_error, threads: num_threads, ..Settings::new(model) };
        let shards = Arc::clone(&shards.get().0);
        Ok(Self(Boxed::new(Source { shards, settings: Arc::new(settings) })))
    }

    /// The name of the encoding, or the path of the tokenizer.
    #[getter]
    fn name(&self) -> Text<&str> {
        Text(self.0.settings.model.name())
    }

    /// Counts the documents and their tokens.
    ///
    /// ``progress`` is called now and then, and at the end, with the bytes of the shards that have been read and those of
    /// all shards, on the calling thread; what it raises ends the call. ``cancel``, an ``offlock.Cancel``, ends the call
    /// from another thread.
    ///
    /// Raises ``RecordError`` for the first record that fails, unless they are left out, and ``OSError``.
    #[pyo3(signature = (*, progress = None, cancel = None), text_signature = "($self, *, progress=None, cancel=None)")]
    fn count(
        &self,
        py: Python<'_>,
        progress: Option<Py<PyAny>>,
        cancel: Option<&Bound<'_, Cancel>>,
    ) -> PyResult<Summary> {
        let Source { shards, settings } = &*self.0;
        self.0.run(py, &PIPELINE_COUNT, progress, cancel, |report, task| {
            pipeline::count(shards, settings, report, task)
        })
    }

    /// Writes the tokens of each shard to files in a folder.
    ///
    /// ``output`` is ``"megatron"``, ``"datatrove"``, ``"llmc"``, ``"nanogpt"``, ``"dolma"``, ``"mds"`` or ``"parquet"``.
    /// The special token ``eos_token`` separates documents: ``eos`` is ``"append"``, ``"prepend"`` or ``"none"``, by
    /// default as the format's own writer does. A file gets its name when it is complete and on the disk; ``resume``
    /// continues an earlier run, and leaves the shards alone that it finished. ``progress`` and ``cancel`` are as for
    /// ``count``.
    ///
    /// ``part=(index, count)`` writes every ``count``-th shard only, from that of ``index`` on, beside other processes,
    /// which write the other parts. Finished shards are left alone. Once all parts are written, ``resume=True`` without
    /// ``part`` writes the list of all results.
    ///
    /// Raises ``RecordError`` for the first record that fails, unless they are left out; ``ValueError`` for a folder
    /// with other results, for one to which another run writes, and when the format cannot hold the vocabulary; and
    /// ``OSError``.
    #[pyo3(
        signature = (
            folder, *, output, eos = None, eos_token = "<|endoftext|>".to_owned(), resume = false, part = None, progress = None,
            cancel = None
        ),
        text_signature = "($self, folder, *, output, eos=None, eos_token='<|endoftext|>', resume=False, part=None, \
                          progress=None, cancel=None)"
    )]
    #[expect(clippy::too_many_arguments, reason = "one for each keyword in Python")]
    fn write(
        &self,
        py: Python<'_>,
        folder: &Bound<'_, PyAny>,
        output: &str,
        eos: Option<&str>,
        eos_token: String,
        resume: bool,
        part: Option<(i64, i64)>,
        progress: Option<Py<PyAny>>,
        cancel: Option<&Bound<'_, Cancel>>,
    ) -> PyResult<Summary> {
        let part = part.map(|(index, count)| part_of(index, count)).transpose()?;
        let destination = Destination { part, ..destination(folder, output, eos, eos_token, resume)? };
        let Source { shards, settings } = &*self.0;
        self.0.run(py, &PIPELINE_WRITE, progress, cancel, |report, task| {
            pipeline::write(shards, settings, &destination, report, task)
        })
    }

    /// Makes a folder ready for the parts of a run: checks everything that ``write`` would check before it reads a shard,
    /// with the same arguments, and removes what an earlier run has not finished.
    ///
    /// Raises ``ValueError`` and ``OSError`` as ``write`` does.
    #[pyo3(
        signature = (folder, *, output, eos = None, eos_token = "<|endoftext|>".to_owned(), resume = false),
        text_signature = "($self, folder, *, output, eos=None, eos_token='<|endoftext|>', resume=False)"
    )]
    fn prepare(
        &self,
        py: Python<'_>,
        folder: &Bound<'_, PyAny>,
        output: &str,
        eos: Option<&str>,
        eos_token: String,
        resume: bool,
    ) -> PyResult<()> {
        let destination = destination(folder, output, eos, eos_token, resume)?;
        Region::new(&PIPELINE_PREPARE, 0)
            .run(py, |_| pipeline::prepare(&self.0.shards, &self.0.settings, &destination))
    }

    /// Starts threads that encode the documents, and returns an iterator over batches of them, in order.
    ///
    /// The threads work ahead by a few batches of about 1 MB of records, and wait while nobody takes one.
    fn batches(&self, py: Python<'_>) -> PyResult<Batches> {
        let batches = pipeline::Batches::start(self.0.shards.to_vec(), Arc::clone(&self.0.settings));
        batches.map(Batches).map_err(|error| error.into_exception(py))
    }
}

impl Source {
    fn size(&self) -> usize {
        self.shards.iter().map(|shard| shard.size).sum::<u64>() as usize
    }

    /// Runs `work` without the lock; its argument takes the errors of records that it leaves out.
    fn run(
        &self,
        py: Python<'_>,
        operation: &'static Operation,
        progress: Option<Py<PyAny>>,
        cancel: Option<&Bound<'_, Cancel>>,
        work: impl FnOnce(&(dyn Fn(&Error) + Sync), &Task<'_>) -> Result<pipeline::Summary, Error> + Send,
    ) -> PyResult<Summary> {
        let tell = progress.map(|progress| {
            let total = self.size();
            move |py: Python<'_>, done: u64| progress.call1(py, (Int(done as usize), Int(total))).map(drop)
        });
        let region = Region::new(operation, self.size())
            .progress(tell.as_ref().map(|tell| tell as &Progress<'_>))
            .cancel(cancel.map(Bound::get));
        let (summary, errors) = region.run(py, |task| {
            let reports = Reports::default();
            let summary = work(&|error| reports.add(error), task)?;
            Ok::<_, Error>((summary, reports.into_errors()))
        })?;
        tell.map_or(Ok(()), |tell| tell(py, self.size() as u64))?;
        Ok(Summary::new(summary, errors))
    }
}

/// Where all shards are written.
fn destination(
    folder: &Bound<'_, PyAny>,
    output: &str,
    eos: Option<&str>,
    eos_token: String,
    resume: bool,
) -> PyResult<Destination> {
    let output = named("output", output, &Output::NAMES)?;
    let eos = eos.map(|name| named("eos", name, &Eos::NAMES)).transpose()?;
    Ok(Destination { folder: file_path(folder)?, output, eos, eos_token, resume, part: None })
}

/// The part of this index of so many.
fn part_of(index: i64, count: i64) -> PyResult<Part> {
    let numbers = usize::try_from(index).ok().zip(usize::try_from(count).ok());
    numbers.and_then(|(index, count)| Part::new(index, count)).ok_or_else(|| {
        let message = format!("part must be an index and a greater count, not ({index}, {count})");
        PyValueError::with_message(message)
    })
}

/// The value that is called `name`.
fn named<T: Copy>(argument: &str, name: &str, names: &[(&str, T)]) -> PyResult<T> {
    let found = names.iter().find(|(known, _)| *known == name);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<String> = names.iter().map(|(name, _)| format!("'{name}'")).collect();
        PyValueError::with_message(format!("{argument} must be {}, not '{name}'", names.join(", ")))
    })
}
