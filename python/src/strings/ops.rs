//! The operations: each cuts a text in its own way, and makes strings of the pieces.

use offlock_core::Operation;
use offlock_core::text::{self, Arena, LineEnds, Pieces, Span, Spans};
use offlock_core::{Task, memory};
use pyo3::buffer::Element;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString, PyTuple};

use super::adjacent::adjacent;
use super::arrow;
use super::batch::{Built, StrBuilder, StrClass};
use super::error::StringsError;
use super::places::{Batch, Places};
use super::source::StrSource;
use crate::borrow::{self, Bytes};
use crate::cpython::object;
use crate::cpython::sequence::{Container, SequenceBuilder};
use crate::error::{WithMessage, no_memory};
use crate::gil_yield::Yielder;
use crate::large::Refs;
use crate::objects::{Int, tuple};
use crate::operations::{
    STRINGS_BUILD, STRINGS_COLUMNS, STRINGS_DECODE_MANY, STRINGS_FROM_ARROW, STRINGS_FROM_OFFSETS,
    STRINGS_LINES, STRINGS_SPLIT,
};
use crate::region::{Cancel, Region, Release};

/// The container of the strings: `into=tuple`, `into=list` or `into=Arena`.
#[derive(Debug, Clone, Copy)]
pub(super) enum Into {
    Container(Container),
    Arena,
}

impl<'py> FromPyObject<'_, 'py> for Into {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if value.is(value.py().get_type::<PyArena>()) {
            return Ok(Self::Arena);
        }
        match value.extract() {
            Ok(container) => Ok(Self::Container(container)),
            Err(_) => Err(PyTypeError::with_message(format!(
                "into must be tuple, list or Arena, not {}",
                value.repr()?
            ))),
        }
    }
}

/// The keywords of all operations.
pub(super) struct CallOptions(StrClass, Into, Release, Option<Py<Cancel>>);

impl CallOptions {
    fn yielder(&self) -> Yielder<'_> {
        Yielder::of(self.2).cancel(self.3.as_ref().map(Py::get))
    }
}

impl<'py> FromPyObject<'_, 'py> for CallOptions {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let options = value.cast::<PyTuple>()?;
        Ok(Self(
            options.get_item(0)?.extract()?,
            options.get_item(1)?.extract()?,
            options.get_item(2)?.extract()?,
            options.get_item(3)?.extract()?,
        ))
    }
}

/// One call of an operation.
struct Run<'a, 'py> {
    py: Python<'py>,
    options: &'a CallOptions,
    region: Region<'a>,
}

impl<'a, 'py> Run<'a, 'py> {
    fn new(py: Python<'py>, operation: &'static Operation, bytes: usize, options: &'a CallOptions) -> Self {
        let CallOptions(_, _, release, cancel) = options;
        let region = Region::new(operation, bytes).release(*release).cancel(cancel.as_ref().map(Py::get));
        Self { py, options, region }
    }

    /// One tuple, list or arena of everything that `cut` returns.
    fn join<S: StrSource + Send>(
        &self,
        cut: impl FnOnce(&Task<'_>) -> Result<Vec<Batch<S>>, StringsError> + Send,
    ) -> PyResult<Bound<'py, PyAny>> {
        match self.options.1 {
            Into::Arena => PyArena(self.store(cut)?).into_object(self.py),
            Into::Container(container) => {
                joined(self.py, container, self.make(cut)?, &mut Yielder::around(&self.region))
            }
        }
    }

    /// A tuple of tuples, lists or arenas: one for each batch that `cut` returns.
    fn each<S: StrSource + Send>(
        &self,
        cut: impl FnOnce(&Task<'_>) -> Result<Vec<Batch<S>>, StringsError> + Send,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = self.py;
        let all: Vec<_> = match self.options.1 {
            Into::Arena => {
                let stored = self.store(cut)?.into_iter();
                stored.map(|batch| PyArena(vec![batch]).into_object(py)).collect::<PyResult<_>>()?
            }
            Into::Container(container) => {
                let (made, mut yielder) = (self.make(cut)?.into_iter(), Yielder::around(&self.region));
                made.map(|batch| joined(py, container, vec![batch], &mut yielder)).collect::<PyResult<_>>()?
            }
        };
        tuple(py, all)
    }

    fn make<S: StrSource + Send>(
        &self,
        cut: impl FnOnce(&Task<'_>) -> Result<Vec<Batch<S>>, StringsError> + Send,
    ) -> PyResult<Vec<(Built<S>, Places)>> {
        let maker = StrBuilder::new(self.py, self.options.0)?;
        self.region.run(self.py, |task| -> Result<_, StringsError> {
            let make = |batch: Batch<S>| Ok((maker.make(batch.source, task)?, batch.places));
            memory::collected(cut(task)?.into_iter().map(make))
        })
    }

    fn store<S: StrSource + Send>(
        &self,
        cut: impl FnOnce(&Task<'_>) -> Result<Vec<Batch<S>>, StringsError> + Send,
    ) -> PyResult<Vec<Stored>> {
        self.region.run(self.py, |task| -> Result<_, StringsError> {
            let store = |batch: Batch<S>| Ok((batch.source.stored(task)?.into_owned(), batch.places));
            cut(task)?.into_iter().map(store).collect()
        })
    }
}

fn joined<'py, S: StrSource + Send>(
    py: Python<'py>,
    container: Container,
    all: Vec<(Built<S>, Places)>,
    yielder: &mut Yielder,
) -> PyResult<Bound<'py, PyAny>> {
    let counts = all.iter().map(|(made, places)| places.count(made.len()));
    let len = counts.fold(0, usize::saturating_add);
    let mut filling = SequenceBuilder::new(py, container, len)?;
    for (made, places) in all {
        made.fill(py, &mut filling, &places, yielder)?;
    }
    Ok(filling.finish())
}

/// `newline=None | "\n"`
pub(super) struct Newline(LineEnds);

impl<'py> FromPyObject<'_, 'py> for Newline {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if value.is_none() {
            return Ok(Self(LineEnds::Any));
        }
        match value.extract::<&str>() {
            Ok("\n") => Ok(Self(LineEnds::Newline)),
            _ => Err(PyValueError::with_message(format!(
                "newline must be None or '\\n', not {}",
                value.repr()?
            ))),
        }
    }
}

/// A `str`, or bytes.
pub(super) struct Separator(Vec<u8>);

impl Separator {
    /// Not an extraction of PyO3's, which panics over an exception when there is no memory for the note that
    /// it adds.
    fn read(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        let bytes = match value.cast::<PyString>() {
            Ok(text) => text.to_str()?.as_bytes().to_vec(),
            Err(_) => Bytes::borrow(value)?.as_slice().to_vec(),
        };
        if bytes.is_empty() {
            return Err(PyValueError::with_message("empty separator"));
        }
        std::str::from_utf8(&bytes).map_err(|_| PyValueError::with_message("separator is not UTF-8"))?;
        Ok(Self(bytes))
    }
}

#[pyfunction]
pub(super) fn lines<'py>(
    py: Python<'py>,
    buffer: &Bound<'py, PyAny>,
    newline: Newline,
    keepends: bool,
    options: CallOptions,
) -> PyResult<Bound<'py, PyAny>> {
    let bytes = Bytes::borrow(buffer)?;
    let text = bytes.as_slice();
    Run::new(py, &STRINGS_LINES, text.len(), &options)
        .join(|task| whole(text, text::lines(text, newline.0, keepends, task)?, task))
}

#[pyfunction]
pub(super) fn split<'py>(
    py: Python<'py>,
    buffer: &Bound<'py, PyAny>,
    separator: &Bound<'py, PyAny>,
    options: CallOptions,
) -> PyResult<Bound<'py, PyAny>> {
    let separator = Separator::read(separator)?;
    let bytes = Bytes::borrow(buffer)?;
    let text = bytes.as_slice();
    Run::new(py, &STRINGS_SPLIT, text.len(), &options)
        .join(|task| whole(text, text::split(text, &separator.0, task)?, task))
}

/// The pieces of a text that could as well be decoded before it is cut.
fn whole<'a>(
    text: &'a [u8],
    spans: Vec<Span>,
    task: &Task<'_>,
) -> Result<Vec<Batch<Pieces<'a>>>, StringsError> {
    let pieces = Pieces::new(text, spans, task).map_err(|error| StringsError::whole(text, error))?;
    Ok(vec![Batch::of(pieces, task)?])
}

#[pyfunction]
pub(super) fn columns<'py>(
    py: Python<'py>,
    buffer: &Bound<'py, PyAny>,
    separator: &Bound<'py, PyAny>,
    options: CallOptions,
) -> PyResult<Bound<'py, PyAny>> {
    let [separator] = *Separator::read(separator)?.0 else {
        return Err(PyValueError::with_message("the separator of columns must be one ASCII character"));
    };
    let bytes = Bytes::borrow(buffer)?;
    let text = bytes.as_slice();
    Run::new(py, &STRINGS_COLUMNS, text.len(), &options).each(|task| {
        let columns = text::columns(text, separator, task)?;
        let columns =
            Pieces::interleaved(text, columns, task).map_err(|error| StringsError::whole(text, error))?;
        columns.into_iter().map(|column| Batch::of(column, task)).collect()
    })
}

#[pyfunction]
pub(super) fn from_offsets<'py>(
    py: Python<'py>,
    buffer: &Bound<'py, PyAny>,
    offsets: &Bound<'py, PyAny>,
    options: CallOptions,
) -> PyResult<Bound<'py, PyAny>> {
    let offsets = read_offsets(offsets)?;
    let bytes = Bytes::borrow(buffer)?;
    let text = bytes.as_slice();
    Run::new(py, &STRINGS_FROM_OFFSETS, text.len() + size_of_val(&*offsets), &options).join(|task| {
        let spans = Spans::between(text, offsets, task)?;
        let pieces = Pieces::new(text, spans, task).map_err(|error| StringsError::piece(error, in_string))?;
        Ok(vec![Batch::of(pieces, task)?])
    })
}

/// Offsets in a buffer of integers, such as a numpy array, or in a sequence.
fn read_offsets(offsets: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
    let buffer = read_buffer::<i64>(offsets)
        .or_else(|| read_buffer::<i32>(offsets))
        .or_else(|| read_buffer::<u32>(offsets))
        .or_else(|| read_buffer::<u64>(offsets));
    buffer.unwrap_or_else(|| read_sequence(offsets))
}

/// `None` when `offsets` is not a buffer of integers of this type.
fn read_buffer<T: Element + TryInto<i64>>(offsets: &Bound<'_, PyAny>) -> Option<PyResult<Vec<i64>>> {
    // A number that does not fit is larger than any text.
    borrow::numbers::<T, _>(offsets, |_, value| Ok(value.try_into().unwrap_or(i64::MAX)))
}

fn read_sequence(offsets: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
    if !object::is_sequence(offsets) || offsets.is_instance_of::<PyString>() {
        return offsets.extract(); // raises the error
    }
    let offsets = Refs::collect(offsets, &mut Yielder::yielding(), |_, offset| offset.extract())?;
    Ok(offsets.into_values())
}

fn in_string(number: usize, start: usize) -> String {
    format!("in string {number}, which begins at offset {start}")
}

#[pyfunction]
pub(super) fn decode_many<'py>(
    py: Python<'py>,
    items: &Bound<'py, PyAny>,
    options: CallOptions,
) -> PyResult<Bound<'py, PyAny>> {
    let mut yielder = options.yielder();
    let items = Refs::collect(items, &mut yielder, |_, item| Item::borrow(item))?;
    let (texts, bytes) = items.slices(py, &mut yielder, Item::contents)?;
    let (texts, length) = (&**texts, bytes);
    let work = bytes + texts.len() * size_of::<Span>();
    Run::new(py, &STRINGS_DECODE_MANY, work, &options).join(|task| {
        let (text, spans) = adjacent(texts.iter().map(|text| Ok(*text)), texts.len(), length, task)?;
        let pieces = Pieces::new(text, spans, task)
            .map_err(|error| StringsError::piece(error, |item, _| format!("in item {item}")))?;
        Ok(vec![Batch::of(pieces, task)?])
    })
}

/// One item of many. A `bytes` needs no export, which would take most of the time for many items.
enum Item<'py> {
    Exact(Bound<'py, PyBytes>),
    /// One item, boxed, so that `Item` is small.
    Other(Box<[Bytes]>),
}

impl<'py> Item<'py> {
    #[inline]
    fn borrow(item: Bound<'py, PyAny>) -> PyResult<Self> {
        let item = match item.cast_into_exact::<PyBytes>() {
            Ok(bytes) => return Ok(Self::Exact(bytes)),
            Err(other) => other.into_inner(),
        };
        let mut one = memory::with_capacity(1).map_err(no_memory)?;
        one.push(Bytes::borrow(&item)?);
        Ok(Self::Other(one.into_boxed_slice()))
    }

    #[inline]
    fn contents(&self) -> &[u8] {
        match self {
            Self::Exact(bytes) => bytes.as_bytes(),
            Self::Other(one) => one[0].as_slice(),
        }
    }
}

#[pyfunction]
pub(super) fn from_arrow<'py>(
    py: Python<'py>,
    array: &Bound<'py, PyAny>,
    options: CallOptions,
) -> PyResult<Bound<'py, PyAny>> {
    let chunks = arrow::Chunks::import(array)?;
    Run::new(py, &STRINGS_FROM_ARROW, chunks.bytes(), &options).join(|task| chunks.batches(task))
}

/// The strings of an arena, and their places.
type Stored = (Vec<Arena>, Places);

/// Strings that are found, checked and stored, but not made yet.
#[pyclass(frozen, module = "offlock.strings", name = "Arena")]
pub(super) struct PyArena(Vec<Stored>);

#[pymethods]
impl PyArena {
    fn __len__(&self) -> usize {
        self.batches().iter().map(|batch| batch.places.count(batch.source.count())).sum()
    }

    #[getter]
    fn nbytes(&self) -> Int {
        Int(self.bytes())
    }

    #[pyo3(
        signature = (kind=StrClass::View, *, release=Release::AUTO, cancel=None),
        text_signature = "($self, kind='view', *, release='auto', cancel=None)"
    )]
    fn tuple<'py>(
        &self,
        py: Python<'py>,
        kind: StrClass,
        release: Release,
        cancel: Option<Py<Cancel>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.build(py, CallOptions(kind, Into::Container(Container::Tuple), release, cancel))
    }

    #[pyo3(
        signature = (kind=StrClass::View, *, release=Release::AUTO, cancel=None),
        text_signature = "($self, kind='view', *, release='auto', cancel=None)"
    )]
    fn list<'py>(
        &self,
        py: Python<'py>,
        kind: StrClass,
        release: Release,
        cancel: Option<Py<Cancel>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.build(py, CallOptions(kind, Into::Container(Container::List), release, cancel))
    }
}

impl PyArena {
    fn into_object(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        Ok(Bound::new(py, self)?.into_any())
    }

    fn bytes(&self) -> usize {
        self.0.iter().flat_map(|(arenas, _)| arenas).map(Arena::bytes).sum()
    }

    fn batches(&self) -> Vec<Batch<&[Arena]>> {
        self.0
            .iter()
            .map(|(arenas, places)| Batch { source: arenas.as_slice(), places: places.clone() })
            .collect()
    }

    fn build<'py>(&self, py: Python<'py>, options: CallOptions) -> PyResult<Bound<'py, PyAny>> {
        Run::new(py, &STRINGS_BUILD, self.bytes(), &options).join(|_| Ok(self.batches()))
    }
}
