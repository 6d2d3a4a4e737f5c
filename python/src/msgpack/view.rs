//! `view`: values of a large message, without building the rest.

use std::sync::{Arc, OnceLock};

use offlock_core::msgpack::{Error, Indexed, Node, Tape};
use offlock_core::{Task, memory};
use pyo3::exceptions::{PyIndexError, PyKeyError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyList, PySlice, PyString, PyTuple};

use super::build::Builder;
use super::error::DecodeError;
use super::input::Input;
use super::options::UnpackOptions;
use super::unpack::{index, options_from, whole};
use crate::cpython::partial_sequence::PartialSequence;
use crate::error::WithMessage;
use crate::gil_yield::Yielder;
use crate::large::Large;
use crate::objects::{Int, Text, name, tuple};
use crate::operations::{MSGPACK_DECODE, MSGPACK_FIND};
use crate::region::Region;

/// How many values are passed between two checks of the task.
const CHECK_EVERY: usize = 1 << 16;

/// A message and its index.
struct IndexedMessage {
    bytes: Py<PyBytes>,
    tape: Large<Tape>,
    options: UnpackOptions,
}

/// A container of a message whose values are built only when they are requested.
#[pyclass(frozen, module = "offlock.msgpack")]
pub(super) struct View {
    message: Arc<IndexedMessage>,
    place: usize,
    length: usize,
    is_map: bool,
    /// The places of the values inside, computed once: to find one, all before it have to be passed.
    places: OnceLock<Large<Vec<u32>>>,
}

/// `view`: the value of a message, with the options in the keywords.
pub(super) fn view<'py>(
    packed: &Bound<'py, PyAny>,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = packed.py();
    let options = options_from(options)?;
    let bytes = Input::borrow(packed)?.into_bytes(py, options.release)?;
    let message = bytes.as_bytes();
    let (tape, end) = Region::new(&MSGPACK_DECODE, message.len())
        .release(options.release)
        .run(py, |task| index(message, &options, task))?;
    if end < message.len() {
        let object = Builder::new(py, &options, None).build(&mut Indexed::at(&tape, message, 0))?;
        return whole(object, message, end);
    }
    View::of(py, &Arc::new(IndexedMessage { bytes: bytes.unbind(), tape: Large::new(tape), options }), 0)
}

#[pymethods]
impl View {
    /// The item at an index of an array, a list of the items in a slice, or the value under a key of a map.
    fn __getitem__<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        if let Ok(slice) = key.cast::<PySlice>()
            && !self.is_map
        {
            return self.slice(slice);
        }
        let place = if self.is_map { self.entry(key)? } else { self.item(key)? };
        match place {
            Some(place) => self.at(key.py(), place),
            None if self.is_map => Err(PyKeyError::new_err(key.clone().unbind())),
            None => Err(PyIndexError::with_message(format!(
                "index {key} is outside of an array of {}",
                self.length
            ))),
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
        self.check_map()?;
        match self.entry(key)? {
            Some(place) => self.at(py, place),
            None => Ok(default.unwrap_or_else(|| py.None().into_bound(py))),
        }
    }

    fn __len__(&self) -> usize {
        self.length
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let py = key.py();
        if self.is_map {
            return Ok(self.entry(key)?.is_some());
        }
        let mut yielder = self.yielder();
        for &place in self.places(py)? {
            yielder.tick(py)?;
            if self.at(py, place as usize)?.eq(key)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether the other object is a view of an equal value, or equal to what this one builds.
    fn __eq__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = other.py();
        let is_equal = if let Ok(other) = other.cast::<Self>().map(Bound::get) {
            std::ptr::eq(self, other) || self.is_map == other.is_map && self.equals_view(py, other)?
        } else if self.is_map && other.is_instance_of::<PyDict>() || !self.is_map && is_sequence(other) {
            self.equals(other)?
        } else {
            return Ok(py.NotImplemented().into_bound(py));
        };
        Ok(PyBool::new(py, is_equal).to_owned().into_any())
    }

    /// The items of an array, or the keys of a map.
    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let list = if self.is_map { self.keys(py)? } else { self.values(py)? };
        Ok(list.try_iter()?.into_any())
    }

    /// The keys of a map.
    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.check_map()?;
        self.list(py, self.places(py)?.chunks(2), |pair| self.message.build(py, pair[0] as usize))
    }

    /// The items of an array, or the values of a map, as views if they are containers.
    fn values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let step = if self.is_map { 2 } else { 1 };
        self.list(py, self.places(py)?.chunks(step), |pair| self.at(py, pair[step - 1] as usize))
    }

    /// The pairs of key and value of a map.
    fn items<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.check_map()?;
        self.list(py, self.places(py)?.chunks(2), |pair| {
            let (key, value) = (self.message.build(py, pair[0] as usize)?, self.at(py, pair[1] as usize)?);
            tuple(py, [key, value])
        })
    }

    /// Builds the whole object.
    fn build<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.message.build(py, self.place)
    }

    /// The first values in the container, each shown up to a length.
    fn __repr__(&self, py: Python<'_>) -> PyResult<Text<String>> {
        let step = if self.is_map { 2 } else { 1 };
        let mut shown = Vec::new();
        for pair in self.places(py)?.chunks(step).take(SHOWN) {
            let parts = pair.iter().map(|&place| self.shown(py, place as usize));
            shown.push(parts.collect::<PyResult<Vec<_>>>()?.join(": "));
        }
        if self.length > SHOWN {
            shown.push(String::from("..."));
        }
        let shown = shown.join(", ");
        Ok(Text(if self.is_map { format!("View({{{shown}}})") } else { format!("View([{shown}])") }))
    }

    fn __traverse__(&self, visit: pyo3::gc::PyVisit<'_>) -> Result<(), pyo3::gc::PyTraverseError> {
        // Hooks that several views share do not belong to this view alone, so they cannot be reported as its
        // own.
        if Arc::strong_count(&self.message) == 1 { self.message.options.traverse(&visit) } else { Ok(()) }
    }
}

/// How many entries of a container, and how many characters of a value, are shown.
const SHOWN: usize = 8;
const CHARACTERS: usize = 40;

impl View {
    /// The value at a place: a view if it is a container.
    fn at<'py>(&self, py: Python<'py>, place: usize) -> PyResult<Bound<'py, PyAny>> {
        Self::of(py, &self.message, place)
    }

    fn of<'py>(py: Python<'py>, message: &Arc<IndexedMessage>, place: usize) -> PyResult<Bound<'py, PyAny>> {
        let (length, is_map) = match message.tape.node(message.bytes.as_bytes(py), place).0 {
            Node::Array(items) => (items, false),
            Node::Map(entries) => (entries, true),
            _ => return message.build(py, place),
        };
        let message = Arc::clone(message);
        let view = Self { message, place, length: length as usize, is_map, places: OnceLock::new() };
        Ok(Bound::new(py, view)?.into_any())
    }

    /// Whether a view of the same kind has an equal value. Arrays are built an item at a time, because
    /// freeing a large one would take long.
    fn equals_view(&self, py: Python<'_>, other: &Self) -> PyResult<bool> {
        if self.is_map {
            return self.equals(&other.build(py)?);
        }
        if self.length != other.length {
            return Ok(false);
        }
        let mut yielder = self.yielder();
        for (&mine, &others) in self.places(py)?.iter().zip(other.places(py)?) {
            let (mine, others) = (mine as usize, others as usize);
            yielder.tick_many(py, self.message.values(mine) + other.message.values(others))?;
            if !self.message.build(py, mine)?.eq(other.message.build(py, others)?)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether a container of the same kind is equal to the one that this view would build.
    fn equals(&self, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        let py = other.py();
        let mut yielder = self.yielder();
        if !self.is_map {
            return self.equals_sequence(other, &mut yielder);
        }
        // Of equal keys in one map the last one counts, so that the whole map has to be built.
        let built = self.build(py)?;
        if !built.is_instance_of::<PyDict>() {
            return built.eq(other); // a hook made it
        }
        if built.len()? != other.len()? {
            return Ok(false);
        }
        for entry in built.call_method0(name!("items"))?.try_iter()? {
            yielder.tick(py)?;
            let (key, value) = entry?.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>()?;
            if !other.contains(&key)? || !value.eq(other.get_item(&key)?)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether a sequence has exactly the items of this array.
    fn equals_sequence(&self, sequence: &Bound<'_, PyAny>, yielder: &mut Yielder) -> PyResult<bool> {
        let py = sequence.py();
        for (number, &place) in self.places(py)?.iter().enumerate() {
            yielder.tick_many(py, self.message.values(place as usize))?;
            if sequence.len()? != self.length
                || !self.message.build(py, place as usize)?.eq(sequence.get_item(Int(number))?)?
            {
                return Ok(false);
            }
        }
        Ok(sequence.len()? == self.length)
    }

    fn check_map(&self) -> PyResult<()> {
        if self.is_map { Ok(()) } else { Err(PyTypeError::with_message("an array has no keys")) }
    }

    fn yielder(&self) -> Yielder<'static> {
        Yielder::of(self.message.options.release)
    }

    /// A list of the results of `make` for each place.
    fn list<'py, T>(
        &self,
        py: Python<'py>,
        places: impl ExactSizeIterator<Item = T>,
        make: impl Fn(T) -> PyResult<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut yielder = self.yielder();
        yielder.check_now(py)?; // starts the clock: making a long list takes a while
        let mut list = PartialSequence::new(py, places.len(), places.len(), true)?;
        for place in places {
            // Building one value by itself takes longer than building several in a row.
            yielder.tick_many(py, 8)?;
            list.push(make(place)?)?;
        }
        list.finish(py)
    }

    /// The places of the values inside: for a map, those of keys and values.
    fn places(&self, py: Python<'_>) -> PyResult<&[u32]> {
        if let Some(places) = self.places.get() {
            return Ok(places);
        }
        let tape = &self.message.tape;
        let values = self.length * if self.is_map { 2 } else { 1 };
        let mut place = tape.node(self.message.bytes.as_bytes(py), self.place).1;
        let found = self.search(py, |task| {
            let mut places = memory::with_capacity(values)?;
            for number in 0..values {
                places.push(place as u32);
                place = tape.after(place);
                if number % CHECK_EVERY == 0 {
                    task.check()?;
                }
            }
            Ok(places)
        })?;
        // A thread that finished earlier has found the same places.
        Ok(self.places.get_or_init(|| Large::new(found)))
    }

    /// Runs a search in the index, without the lock if that takes long.
    fn search<T: Send>(
        &self,
        py: Python<'_>,
        body: impl FnOnce(&Task<'_>) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        let run = Region::new(&MSGPACK_FIND, self.length * 16).release(self.message.options.release);
        run.run(py, |task| body(task).map_err(DecodeError))
    }

    fn item(&self, key: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
        let position: isize = key.extract()?;
        let position = if position < 0 { position + self.length.cast_signed() } else { position };
        let Ok(position) = usize::try_from(position) else { return Ok(None) };
        Ok(self.places(key.py())?.get(position).map(|&place| place as usize))
    }

    fn slice<'py>(&self, slice: &Bound<'py, PySlice>) -> PyResult<Bound<'py, PyAny>> {
        let py = slice.py();
        let range = slice.indices(self.length.cast_signed())?;
        let places = self.places(py)?;
        self.list(py, 0..range.slicelength, |number| {
            let position = range.start + number.cast_signed() * range.step;
            self.at(py, places[position.cast_unsigned()] as usize)
        })
    }

    fn entry(&self, key: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
        let py = key.py();
        if let Ok(text) = key.cast::<PyString>()
            && !self.message.options.raw
        {
            let (bytes, text) = (self.message.bytes.as_bytes(py), text.to_str()?.as_bytes());
            return self.search(py, |_| Ok(self.message.tape.lookup(bytes, self.place, text)));
        }
        let (mut found, mut yielder) = (None, self.yielder());
        for pair in self.places(py)?.chunks(2) {
            yielder.tick(py)?;
            if self.message.build(py, pair[0] as usize)?.eq(key)? {
                found = Some(pair[1] as usize);
            }
        }
        Ok(found)
    }

    fn shown(&self, py: Python<'_>, place: usize) -> PyResult<String> {
        Ok(match self.message.tape.node(self.message.bytes.as_bytes(py), place).0 {
            Node::Array(0) => String::from("[]"),
            Node::Array(_) => String::from("[...]"),
            Node::Map(0) => String::from("{}"),
            Node::Map(_) => String::from("{...}"),
            _ => {
                let shown = self.message.build(py, place)?.repr()?;
                let shown = shown.to_string_lossy();
                match shown.char_indices().nth(CHARACTERS) {
                    Some((end, _)) => format!("{}...", &shown[..end]),
                    None => shown.into_owned(),
                }
            }
        })
    }
}

fn is_sequence(object: &Bound<'_, PyAny>) -> bool {
    object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>()
}

impl IndexedMessage {
    /// About how many values there are at a place.
    fn values(&self, place: usize) -> usize {
        self.tape.after(place) - place
    }

    fn build<'py>(&self, py: Python<'py>, place: usize) -> PyResult<Bound<'py, PyAny>> {
        let mut source = Indexed::at(&self.tape, self.bytes.as_bytes(py), place);
        Builder::new(py, &self.options, None).build(&mut source)
    }
}
