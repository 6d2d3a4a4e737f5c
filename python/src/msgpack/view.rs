//! `view`: values of a large message, without building the rest; `extract`: one field of every record.

use std::sync::{Arc, OnceLock};

use offlock_core::Stopped;
use offlock_core::Task;
use offlock_core::memory::{self, OutOfMemory};
use offlock_core::msgpack::extract::{Span, column};
use offlock_core::msgpack::{Error, Indexed, Node, Tape, Text};
use offlock_core::text::{self, Repeats, Spans};
use pyo3::exceptions::{PyIndexError, PyKeyError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};

use super::build::Builder;
use super::errors::Whole;
use super::ffi::{self, Sequence};
use super::input::Input;
use super::options::UnpackOptions;
use super::texts::{self, Texts};
use super::unpack::{DECODE, index, options_from, whole};
use crate::region::{Operation, Region, Release};

static EXTRACT: Operation = Operation { name: "msgpack.extract", break_even: 32 * 1024 };

/// A message and its index.
struct Message {
    bytes: Py<PyBytes>,
    tape: Tape,
    options: UnpackOptions,
}

/// A container of a message that is built only as far as it is asked for.
#[pyclass(frozen, module = "offlock.msgpack")]
pub(super) struct View {
    message: Arc<Message>,
    place: usize,
    length: usize,
    is_map: bool,
    /// The places of the values inside, found once: to find one, all before it have to be passed.
    places: OnceLock<Vec<u32>>,
}

/// The value of a message: a `View` if it is an array or a map, of which nothing is built yet.
///
/// The message is indexed, off the lock if it is large. The options are those of `unpackb`.
#[pyfunction]
#[pyo3(signature = (packed, **options))]
pub(super) fn view<'py>(
    packed: &Bound<'py, PyAny>,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = packed.py();
    let options = options_from(options)?;
    let bytes = Input::borrow(packed)?.into_bytes(py)?;
    let message = bytes.as_bytes();
    let (tape, end) = Region::new(&DECODE, message.len())
        .release(options.release)
        .run(py, |task| index(message, &options, task))?;
    if end < message.len() {
        let object = Builder::new(py, &options, None).build(&mut Indexed::at(&tape, message, 0))?;
        return whole(object, message, end);
    }
    View::at(py, &Arc::new(Message { bytes: bytes.unbind(), tape, options }), 0)
}

#[pymethods]
impl View {
    /// The item at a position of an array, or the value under a key of a map.
    fn __getitem__<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let place = if self.is_map { self.entry(key)? } else { self.item(key)? };
        match place {
            Some(place) => Self::at(key.py(), &self.message, place),
            None if self.is_map => Err(PyKeyError::new_err(key.clone().unbind())),
            None => {
                Err(PyIndexError::new_err(format!("index {key} is outside of an array of {}", self.length)))
            }
        }
    }

    /// The value under a key of a map, or `default`.
    #[pyo3(signature = (key, default = None))]
    fn get<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = key.py();
        match self.entry(key)? {
            Some(place) => Self::at(py, &self.message, place),
            None => Ok(default.unwrap_or_else(|| py.None().into_bound(py))),
        }
    }

    fn __len__(&self) -> usize {
        self.length
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        if self.is_map {
            return Ok(self.entry(key)?.is_some());
        }
        for item in self.values(key.py())? {
            if item.eq(key)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The items of an array, or the keys of a map.
    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let list = if self.is_map { self.keys(py)? } else { self.values(py)? };
        Ok(list.as_any().try_iter()?.into_any())
    }

    /// The keys of a map.
    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        if !self.is_map {
            return Err(PyTypeError::new_err("an array has no keys"));
        }
        let keys = self.places(py).chunks(2).map(|pair| self.message.build(py, pair[0] as usize));
        PyList::new(py, keys.collect::<PyResult<Vec<_>>>()?)
    }

    /// The items of an array, or the values of a map, as views if they are containers.
    fn values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let (first, step) = if self.is_map { (1, 2) } else { (0, 1) };
        let places = self.places(py).iter().skip(first).step_by(step);
        let values = places.map(|&place| Self::at(py, &self.message, place as usize));
        PyList::new(py, values.collect::<PyResult<Vec<_>>>()?)
    }

    /// The pairs of key and value of a map.
    fn items<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let pairs = self.keys(py)?.into_iter().zip(self.values(py)?);
        PyList::new(
            py,
            pairs.map(|(key, value)| PyTuple::new(py, [key, value])).collect::<PyResult<Vec<_>>>()?,
        )
    }

    /// Builds the whole object.
    fn build<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.message.build(py, self.place)
    }

    fn __repr__(&self) -> String {
        format!("<View of {} of {}>", if self.is_map { "a map" } else { "an array" }, self.length)
    }

    fn __traverse__(&self, visit: pyo3::gc::PyVisit<'_>) -> Result<(), pyo3::gc::PyTraverseError> {
        // Hooks that several views share are not this view's alone, so they cannot be shown as its own.
        if Arc::strong_count(&self.message) == 1 { self.message.options.traverse(&visit) } else { Ok(()) }
    }
}

impl View {
    /// The value at a place: a view if it is a container.
    fn at<'py>(py: Python<'py>, message: &Arc<Message>, place: usize) -> PyResult<Bound<'py, PyAny>> {
        let (length, is_map) = match message.tape.node(message.bytes.as_bytes(py), place).0 {
            Node::Array(items) => (items, false),
            Node::Map(entries) => (entries, true),
            _ => return message.build(py, place),
        };
        let message = Arc::clone(message);
        let view = Self { message, place, length: length as usize, is_map, places: OnceLock::new() };
        Ok(Bound::new(py, view)?.into_any())
    }

    /// The places of the values inside: of a map, those of keys and values.
    fn places(&self, py: Python<'_>) -> &[u32] {
        self.places.get_or_init(|| {
            let tape = &self.message.tape;
            let values = self.length * if self.is_map { 2 } else { 1 };
            let mut place = tape.node(self.message.bytes.as_bytes(py), self.place).1;
            let step = |_| {
                let this = place;
                place = tape.after(place);
                this as u32
            };
            (0..values).map(step).collect()
        })
    }

    fn item(&self, key: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
        let position: isize = key.extract()?;
        let position = if position < 0 { position + self.length as isize } else { position };
        let place = usize::try_from(position).ok().and_then(|position| self.places(key.py()).get(position));
        Ok(place.map(|&place| place as usize))
    }

    fn entry(&self, key: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
        let py = key.py();
        let bytes = self.message.bytes.as_bytes(py);
        if let Ok(text) = key.cast::<PyString>()
            && !self.message.options.raw
        {
            return Ok(self.message.tape.lookup(bytes, self.place, text.to_str()?.as_bytes()));
        }
        let mut found = None;
        for pair in self.places(py).chunks(2) {
            if self.message.build(py, pair[0] as usize)?.eq(key)? {
                found = Some(pair[1] as usize);
            }
        }
        Ok(found)
    }
}

impl Message {
    fn build<'py>(&self, py: Python<'py>, place: usize) -> PyResult<Bound<'py, PyAny>> {
        let mut source = Indexed::at(&self.tape, self.bytes.as_bytes(py), place);
        Builder::new(py, &self.options, None).giving_way().build(&mut source)
    }
}

/// The strings under `path` (a key, or keys of maps inside maps) in every record of a message: an array of maps.
///
/// `None` where a record has none. No record is built, and a large message is searched off the lock. `TypeError` when
/// a record is no map, or its field no string.
#[pyfunction]
#[pyo3(signature = (packed, *path, release = Release::Auto), text_signature = "(packed, *path, release='auto')")]
pub(super) fn extract<'py>(
    packed: &Bound<'py, PyAny>,
    path: Vec<String>,
    release: Release,
) -> PyResult<Bound<'py, PyAny>> {
    let py = packed.py();
    let input = Input::borrow(packed)?;
    let bytes = input.as_slice();
    let path: Vec<&[u8]> = path.iter().map(String::as_bytes).collect();
    let texts = Texts::new(py);
    let (found, made, end) = Region::new(&EXTRACT, bytes.len()).release(release).run(py, |task| {
        let (spans, end) = column(bytes, &path, task)?;
        let found = Found::new(bytes, &spans, task)?;
        let spans = || memory::collected(found.strings.iter().map(|(span, _)| Ok(*span)));
        let made = texts.lay_out(bytes, spans, task);
        Ok::<_, Whole>((found, made, end))
    })?;
    let mut made = texts::publish(py, made)?;
    let make = |(span, known): &(text::Span, Text)| match (made.next(), known) {
        (Some(string), _) => Ok(string),
        (None, Text::Ascii) => ffi::ascii(py, &bytes[span.start..span.end]),
        (None, _) => ffi::utf8(py, &bytes[span.start..span.end], None),
    };
    let strings = found.strings.iter().map(make).collect::<PyResult<Vec<_>>>()?;
    let mut list = Sequence::new(py, found.places.len(), found.places.len(), true)?;
    for place in found.places {
        let string = place.and_then(|number| strings.get(number));
        list.push(string.map_or_else(|| py.None().into_bound(py), Bound::clone))?;
    }
    whole(list.finish(py)?, bytes, end)
}

/// Looking for strings that repeat can fail in two ways.
fn in_column(error: text::Error) -> Error {
    match error {
        text::Error::Stopped => Stopped.into(),
        _ => OutOfMemory.into(),
    }
}

/// The strings of a column, those that repeat often only once, and which of them, if any, each record has.
struct Found {
    strings: Vec<(text::Span, Text)>,
    places: Vec<Option<usize>>,
}

impl Found {
    fn new(bytes: &[u8], column: &[Option<Span>], task: &Task<'_>) -> Result<Self, Error> {
        let all = column.iter().flatten().map(|span| Ok::<_, Error>(text::Span::from(*span)));
        let all = memory::collected(all)?;
        let all = Spans::from(all);
        let (strings, numbers): (Vec<_>, Vec<_>) =
            match Repeats::find(bytes, &all, task).map_err(in_column)? {
                Some(repeats) => {
                    let strings = repeats.once(|number| all.get(number))?;
                    let numbers = repeats.numbers.iter().map(|&number| Ok::<_, Error>(number as usize));
                    (strings, memory::collected(numbers)?)
                }
                None => (
                    memory::collected::<_, Error>((0..all.len()).map(|number| Ok(all.get(number))))?,
                    memory::collected::<_, Error>((0..all.len()).map(Ok))?,
                ),
            };
        let mut numbers = numbers.into_iter();
        let place = |span: &Option<Span>| Ok::<_, Error>(span.and_then(|_| numbers.next()));
        let places = memory::collected(column.iter().map(place))?;
        let known = |span: text::Span| Ok::<_, Error>((span, Text::of(&bytes[span.start..span.end])));
        Ok(Self { strings: memory::collected(strings.into_iter().map(known))?, places })
    }
}
