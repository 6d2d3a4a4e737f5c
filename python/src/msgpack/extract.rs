//! `extract`: one field of every record of a large message, without building the records.

use offlock_core::memory::{self, OutOfMemory};
use offlock_core::msgpack::extract::{Field, fields};
use offlock_core::msgpack::{Error, is_ascii};
use offlock_core::text::{self, Repeats, Spans};
use offlock_core::{Stopped, Task};
use pyo3::exceptions::{PyMemoryError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyString, PyTuple};

use super::error::DecodeError;
use super::input::Input;
use super::long_strings;
use super::options::MAX_DEPTH;
use super::prebuilt_strings::{self, PrebuiltStrings};
use super::unpack::whole;
use crate::cpython::partial_sequence::PartialSequence;
use crate::cpython::{object, str_header};
use crate::error::WithMessage;
use crate::gil_yield::Yielder;
use crate::operations::MSGPACK_EXTRACT;
use crate::region::{Region, Release};

/// The strings, numbers or booleans under `path` (a key, or keys of maps inside maps) in every record of a
/// message: an array of maps.
///
/// `None` where a record has none. No record is built, and a large message is searched without the lock.
/// `TypeError` when a record is not a map, or its field has another type.
#[pyfunction]
#[pyo3(signature = (packed, *path, release = Release::AUTO), text_signature = "(packed, *path, release='auto')")]
pub(super) fn extract<'py>(
    packed: &Bound<'py, PyAny>,
    path: &Bound<'py, PyTuple>,
    release: Release,
) -> PyResult<Bound<'py, PyAny>> {
    let py = packed.py();
    if path.len() > MAX_DEPTH {
        return Err(PyValueError::with_message(format!("a path of more than {MAX_DEPTH} keys")));
    }
    let path = path.iter().map(|key| Ok(key.cast_into::<PyString>()?)).collect::<PyResult<Vec<_>>>()?;
    let path = path.iter().map(|key| Ok(key.to_str()?.as_bytes())).collect::<PyResult<Vec<_>>>()?;
    let input = Input::borrow(packed)?;
    let bytes = input.as_slice();
    let texts = PrebuiltStrings::new(py);
    let (found, made, end) = Region::new(&MSGPACK_EXTRACT, bytes.len()).release(release).run(py, |task| {
        let (column, end) = fields(bytes, &path, task)?;
        let found = Column::new(bytes, column, task)?;
        let made = texts.lay_out(bytes, || found.spans().ok(), task);
        Ok::<_, DecodeError>((found, made, end))
    })?;
    let mut yielder = Yielder::of(release);
    let ready = prebuilt_strings::publish(py, made, &mut yielder)?;
    let list = found.list(&mut Strings { py, bytes, ready, release }, &mut yielder)?;
    whole(list, bytes, end)
}

/// Longer strings take as long as many short ones.
const LONG: usize = 8 << 10;

/// Makes strings, one after the other.
struct Strings<'a, 'py> {
    py: Python<'py>,
    bytes: &'a [u8],
    /// The strings that were made before, if any.
    ready: std::vec::IntoIter<Bound<'py, PyAny>>,
    release: Release,
}

impl<'py> Strings<'_, 'py> {
    fn make(&mut self, span: text::Span, yielder: &mut Yielder) -> PyResult<Bound<'py, PyAny>> {
        let bytes = &self.bytes[span.start..span.end];
        if let Some(string) = self.ready.next() {
            return Ok(string);
        }
        if bytes.len() >= LONG {
            yielder.charge(bytes.len());
            return self.long(bytes);
        }
        if is_ascii(bytes) { str_header::ascii(self.py, bytes) } else { object::utf8(self.py, bytes, None) }
    }

    #[cold]
    fn long(&self, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        match long_strings::text(self.py, bytes, self.release)? {
            Some(text) => Ok(text),
            None => object::utf8(self.py, bytes, None),
        }
    }
}

/// The search for repeated strings can fail in two ways.
fn in_column(error: text::Error) -> Error {
    match error {
        text::Error::Stopped => Stopped.into(),
        _ => OutOfMemory.into(),
    }
}

/// A column, and its distinct strings if they repeat often: each of those is made once then.
struct Column {
    column: Vec<Option<Field>>,
    repeats: Option<Repeating>,
}

struct Repeating {
    /// Each string once.
    strings: Vec<text::Span>,
    /// For each string of the column the index of its equal in `strings`.
    numbers: Vec<u32>,
}

impl Column {
    fn new(bytes: &[u8], column: Vec<Option<Field>>, task: &Task<'_>) -> Result<Self, Error> {
        let mut found = Self { column, repeats: None };
        let all = Spans::from(found.spans()?);
        if let Some(repeats) = Repeats::find(bytes, &all, task).map_err(in_column)? {
            let strings = repeats.once(|number| all.get(number))?;
            found.repeats = Some(Repeating { strings, numbers: repeats.numbers });
        }
        Ok(found)
    }

    /// The spans of the strings that are to be made.
    fn spans(&self) -> Result<Vec<text::Span>, OutOfMemory> {
        if let Some(repeats) = &self.repeats {
            return memory::copied(&repeats.strings);
        }
        let mut all = memory::with_capacity(self.column.len())?;
        all.extend(self.column.iter().flatten().filter_map(|field| match field {
            Field::Str(span) => Some(text::Span::from(*span)),
            _ => None,
        }));
        Ok(all)
    }

    /// The list of each record's value.
    fn list<'py>(&self, maker: &mut Strings<'_, 'py>, yielder: &mut Yielder) -> PyResult<Bound<'py, PyAny>> {
        let Some(repeats) = &self.repeats else {
            return self.list_of(maker.py, yielder, |_, span, yielder| maker.make(span, yielder));
        };
        let no_memory = |_| PyMemoryError::with_message("no memory for so many strings");
        let mut strings = memory::with_capacity(repeats.strings.len()).map_err(no_memory)?;
        for &span in &repeats.strings {
            strings.push(maker.make(span, yielder)?);
        }
        let known = |number: usize| strings[repeats.numbers[number] as usize].clone();
        self.list_of(maker.py, yielder, |number, _, _| Ok(known(number)))
    }

    /// The list of each record's value; `string` returns a string, given its number in the column and its
    /// span.
    fn list_of<'py>(
        &self,
        py: Python<'py>,
        yielder: &mut Yielder,
        mut string: impl FnMut(usize, text::Span, &mut Yielder) -> PyResult<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut list = PartialSequence::new(py, self.column.len(), self.column.len(), true)?;
        let mut number = 0;
        for field in &self.column {
            yielder.tick(py)?;
            list.push(match field {
                None => py.None().into_bound(py),
                Some(Field::Str(span)) => {
                    number += 1;
                    string(number - 1, (*span).into(), yielder)?
                }
                Some(Field::UInt(value)) => object::uint(py, *value)?,
                Some(Field::Int(value)) => object::int(py, *value)?,
                Some(Field::Float(value)) => object::float(py, *value)?,
                Some(Field::Bool(value)) => PyBool::new(py, *value).to_owned().into_any(),
            })?;
        }
        list.finish(py)
    }
}
