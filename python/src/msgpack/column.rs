//! A column: one field of every record of some data, and the list of its values.

use offlock_core::memory::{self, OutOfMemory};
use offlock_core::msgpack::is_ascii;
use offlock_core::text::{self, Pieces, Repeats, Span, Spans};
use offlock_core::{Field, Stopped, Task};
use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;
use pyo3::types::PyBool;

use super::long_strings;
use super::prebuilt_strings::{self, PrebuiltStrings};
use crate::cpython::sequence::{Container, SequenceBuilder};
use crate::cpython::{object, str_header};
use crate::error::WithMessage;
use crate::gil_yield::Yielder;
use crate::large::Large;
use crate::region::Release;
use crate::strings::batch::Built;

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
    fn make(&mut self, span: Span, yielder: &mut Yielder) -> PyResult<Bound<'py, PyAny>> {
        let bytes = span.of(self.bytes);
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

/// A column, and its distinct strings if they repeat often: each of those is made once then.
pub(crate) struct Column {
    fields: Large<Vec<Option<Field>>>,
    repeats: Option<Repeating>,
}

struct Repeating {
    /// Each string once.
    strings: Large<Vec<Span>>,
    /// For each string of the column the index of its equal in `strings`.
    numbers: Large<Vec<u32>>,
}

impl Column {
    /// The column of these fields, whose strings are in `bytes`.
    pub(crate) fn new<E: From<Stopped> + From<OutOfMemory>>(
        bytes: &[u8],
        fields: Vec<Option<Field>>,
        task: &Task<'_>,
    ) -> Result<Self, E> {
        let mut found = Self { fields: Large::new(fields), repeats: None };
        let all = Spans::from(found.spans()?);
        let repeats = Repeats::find(bytes, &all, task).map_err(|error| match error {
            text::Error::Stopped => E::from(Stopped),
            _ => E::from(OutOfMemory),
        })?;
        if let Some(repeats) = repeats {
            let strings = repeats.once(|number| all.get(number))?;
            let (strings, numbers) = (Large::new(strings), Large::new(repeats.numbers));
            found.repeats = Some(Repeating { strings, numbers });
        }
        Ok(found)
    }

    /// The spans of the strings that are to be made.
    fn spans(&self) -> Result<Vec<Span>, OutOfMemory> {
        if let Some(repeats) = &self.repeats {
            return memory::copied(&repeats.strings);
        }
        let mut all = memory::with_capacity(self.fields.len())?;
        all.extend(self.fields.iter().flatten().filter_map(|field| match field {
            Field::Str(span) => Some(*span),
            _ => None,
        }));
        Ok(all)
    }

    /// Lays out the strings without the lock, if that is possible.
    pub(crate) fn lay_out<'a>(
        &self,
        bytes: &'a [u8],
        texts: &PrebuiltStrings,
        task: &Task<'_>,
    ) -> Option<Built<Pieces<'a>>> {
        texts.lay_out(bytes, || self.spans().ok(), task)
    }

    /// The list of each record's value. `made` are the strings that were laid out.
    pub(crate) fn list<'py>(
        &self,
        py: Python<'py>,
        bytes: &[u8],
        made: Option<Built<Pieces<'_>>>,
        release: Release,
        yielder: &mut Yielder,
    ) -> PyResult<Bound<'py, PyAny>> {
        let ready = prebuilt_strings::publish(py, made, yielder)?;
        let mut maker = Strings { py, bytes, ready, release };
        let Some(repeats) = &self.repeats else {
            return self.list_of(py, yielder, |_, span, yielder| maker.make(span, yielder));
        };
        let no_memory = |_| PyMemoryError::with_message("no memory for so many strings");
        let mut strings = memory::with_capacity(repeats.strings.len()).map_err(no_memory)?;
        for &span in repeats.strings.iter() {
            strings.push(maker.make(span, yielder)?);
        }
        let known = |number: usize| strings[repeats.numbers[number] as usize].clone();
        self.list_of(py, yielder, |number, _, _| Ok(known(number)))
    }

    /// The list of each record's value; `string` returns a string, given its number in the column and its
    /// span.
    fn list_of<'py>(
        &self,
        py: Python<'py>,
        yielder: &mut Yielder,
        mut string: impl FnMut(usize, Span, &mut Yielder) -> PyResult<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut list = SequenceBuilder::new(py, Container::List, self.fields.len())?;
        let mut number = 0;
        for field in self.fields.iter() {
            yielder.tick(py)?;
            list.push(match field {
                None => py.None().into_bound(py),
                Some(Field::Str(span)) => {
                    number += 1;
                    string(number - 1, *span, yielder)?
                }
                Some(Field::UInt(value)) => object::uint(py, *value)?,
                Some(Field::Int(value)) => object::int(py, *value)?,
                Some(Field::Float(value)) => object::float(py, *value)?,
                Some(Field::Bool(value)) => PyBool::new(py, *value).to_owned().into_any(),
            });
        }
        Ok(list.finish())
    }
}
