//! `extract`: one field of every record of a large message, without building the records.

use offlock_core::Task;
use offlock_core::memory::{self, OutOfMemory};
use offlock_core::msgpack::extract::{Field, fields};
use offlock_core::msgpack::{Error, Text};
use offlock_core::text::{self, Repeats, Spans};
use pyo3::exceptions::{PyMemoryError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyString};

use super::errors::Whole;
use super::ffi::{self, Sequence};
use super::input::Input;
use super::long;
use super::options::MAX_DEPTH;
use super::texts::{self, Texts};
use super::unpack::whole;
use crate::pace::Pace;
use crate::region::{Operation, Region, Release};

static EXTRACT: Operation = Operation { name: "msgpack.extract", break_even: 32 * 1024 };

/// The strings, numbers or booleans under `path` (a key, or keys of maps inside maps) in every record of a message: an
/// array of maps.
///
/// `None` where a record has none. No record is built, and a large message is searched off the lock. `TypeError` when
/// a record is no map, or its field something else.
#[pyfunction]
#[pyo3(signature = (packed, *path, release = Release::Auto), text_signature = "(packed, *path, release='auto')")]
pub(super) fn extract<'py>(
    packed: &Bound<'py, PyAny>,
    path: Vec<Bound<'py, PyString>>,
    release: Release,
) -> PyResult<Bound<'py, PyAny>> {
    let py = packed.py();
    if path.len() > MAX_DEPTH {
        return Err(PyValueError::new_err(format!("a path of more than {MAX_DEPTH} keys")));
    }
    let path = path.iter().map(|key| Ok(key.to_str()?.as_bytes())).collect::<PyResult<Vec<_>>>()?;
    let input = Input::borrow(packed)?;
    let bytes = input.as_slice();
    let texts = Texts::new(py);
    let (found, made, end) = Region::new(&EXTRACT, bytes.len()).release(release).run(py, |task| {
        let (column, end) = fields(bytes, &path, task)?;
        let found = Found::new(bytes, column, task)?;
        let made = texts.lay_out(bytes, || found.spans().ok(), task);
        Ok::<_, Whole>((found, made, end))
    })?;
    let mut pace = Pace::from_first_look(release != Release::Never);
    let ready = texts::publish(py, made)?;
    let mut maker = Strings { py, bytes, ready, release };
    let list = if let Some(numbers) = &found.numbers {
        let strings = found.strings(maker, &mut pace)?;
        found.list(py, &mut pace, |number, _| Ok(strings[numbers[number] as usize].clone()))?
    } else {
        found.list(py, &mut pace, |number, pace| maker.make(&found.strings[number], pace))?
    };
    whole(list, bytes, end)
}

const LONG: usize = 64 << 10;

/// Makes strings, one after the other.
struct Strings<'a, 'py> {
    py: Python<'py>,
    bytes: &'a [u8],
    /// Those that were made before, if there are such.
    ready: std::vec::IntoIter<Bound<'py, PyAny>>,
    release: Release,
}

impl<'py> Strings<'_, 'py> {
    fn make(&mut self, (span, known): &(text::Span, Text), pace: &mut Pace) -> PyResult<Bound<'py, PyAny>> {
        let bytes = &self.bytes[span.start..span.end];
        pace.weigh(bytes.len());
        pace.keep(self.py)?;
        match (self.ready.next(), known) {
            (Some(string), _) => Ok(string),
            (None, _) if bytes.len() >= LONG => self.long(bytes),
            (None, Text::Ascii) => ffi::ascii(self.py, bytes),
            (None, _) => ffi::utf8(self.py, bytes, None),
        }
    }

    #[cold]
    fn long(&self, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        match long::text(self.py, bytes, self.release)? {
            Some(text) => Ok(text),
            None => ffi::utf8(self.py, bytes, None),
        }
    }
}

/// A column, and its strings, those that repeat often only once.
struct Found {
    column: Vec<Option<Field>>,
    strings: Vec<(text::Span, Text)>,
    /// For each string of the column the number of the one that is made for it; without, they are made in its order.
    numbers: Option<Vec<u32>>,
}

impl Found {
    fn new(bytes: &[u8], column: Vec<Option<Field>>, task: &Task<'_>) -> Result<Self, Error> {
        let mut all = memory::with_room(column.len())?;
        all.extend(column.iter().flatten().filter_map(|field| match field {
            Field::Str(span) => Some(text::Span::from(*span)),
            _ => None,
        }));
        let all = Spans::from(all);
        let (strings, numbers) = match Repeats::find(bytes, &all, task)? {
            Some(repeats) => (repeats.once(|number| all.get(number)), Some(repeats.numbers)),
            None => (Vec::new(), None),
        };
        let length = if numbers.is_some() { strings.len() } else { all.len() };
        let mut known = memory::with_room(length)?;
        known.extend((0..length).map(|number| {
            let span = if numbers.is_some() { strings[number] } else { all.get(number) };
            (span, Text::of(&bytes[span.start..span.end]))
        }));
        Ok(Self { column, strings: known, numbers })
    }

    /// Where the strings lie.
    fn spans(&self) -> Result<Vec<text::Span>, OutOfMemory> {
        memory::collected(self.strings.iter().map(|(span, _)| Ok(*span)))
    }

    /// All strings.
    fn strings<'py>(&self, mut maker: Strings<'_, 'py>, pace: &mut Pace) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let no_memory = |_| PyMemoryError::new_err("no memory for so many strings");
        let mut strings = memory::with_room(self.strings.len()).map_err(no_memory)?;
        for string in &self.strings {
            strings.push(maker.make(string, pace)?);
        }
        Ok(strings)
    }

    /// The list of what each record has; `string` makes the next string.
    fn list<'py>(
        &self,
        py: Python<'py>,
        pace: &mut Pace,
        mut string: impl FnMut(usize, &mut Pace) -> PyResult<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut list = Sequence::new(py, self.column.len(), self.column.len(), true)?;
        let mut number = 0;
        for field in &self.column {
            pace.keep(py)?;
            list.push(match field {
                None => py.None().into_bound(py),
                Some(Field::Str(_)) => {
                    number += 1;
                    string(number - 1, pace)?
                }
                Some(Field::UInt(value)) => ffi::uint(py, *value)?,
                Some(Field::Int(value)) => ffi::int(py, *value)?,
                Some(Field::Float(value)) => ffi::float(py, *value)?,
                Some(Field::Bool(value)) => PyBool::new(py, *value).to_owned().into_any(),
            })?;
        }
        list.finish(py)
    }
}
