//! `extract`: fields of every record, without building the records.

use offlock_core::Task;
use offlock_core::jsonl::{self, Columns, Error};
use offlock_core::memory;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::error::InLines;
use super::paths::Wanted;
use crate::borrow::Bytes;
use crate::error::WithMessage;
use crate::gil_yield::Yielder;
use crate::large::Large;
use crate::msgpack::column::Column;
use crate::msgpack::prebuilt_strings::PrebuiltStrings;
use crate::objects::tuple;
use crate::operations::JSONL_EXTRACT;
use crate::region::{Cancel, Region, Release};
use crate::utf8;

/// The greatest length of a line by default.
const MAX_DOC_BYTES: usize = 64 << 20;

/// The strings, numbers and booleans in fields of every record of JSON lines.
///
/// `fields` is a key, and the result a list with the value of each record; or a list of which each item is a key
/// or a tuple of the keys that lead to a field of nested objects, and the result a tuple of such lists. A value
/// is None where a record has no such field, or null. Blank lines are skipped. Of equal keys the last one
/// counts.
///
/// No record is built, and large data is searched without the lock. `DecodeError` for a line that is not JSON or
/// longer than `max_doc_bytes`; `TypeError` for one that is neither an object nor null, and for a field of another
/// type; `OverflowError` for a wanted integer of more than 64 bits.
#[pyfunction]
#[pyo3(
    signature = (data, fields, *, max_doc_bytes=MAX_DOC_BYTES, release=Release::AUTO, cancel=None),
    text_signature = "(data, fields, *, max_doc_bytes=67108864, release='auto', cancel=None)"
)]
pub(super) fn extract<'py>(
    data: &Bound<'py, PyAny>,
    fields: &Bound<'py, PyAny>,
    max_doc_bytes: usize,
    release: Release,
    cancel: Option<&Cancel>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = data.py();
    let wanted = Wanted::new(fields)?;
    if max_doc_bytes == 0 {
        return Err(PyValueError::with_message("max_doc_bytes must be at least 1, it is 0"));
    }
    let lines = Lines::borrow(data, release)?;
    let lines = lines.as_slice()?;
    let region = || Region::new(&JSONL_EXTRACT, lines.len()).release(release).cancel(cancel);
    let (strings, columns) = region().run(py, |task| {
        columns(lines, &wanted, max_doc_bytes, task).map_err(|error| InLines(error, lines))
    })?;
    let texts = PrebuiltStrings::new(py);
    let lists = columns.iter().map(|column| {
        let made = if texts.is_empty() {
            None
        } else {
            region().run(py, |task| Ok::<_, InLines<'_>>(column.lay_out(&strings, &texts, task)))?
        };
        column.list(py, &strings, made, release, &mut Yielder::around(&region()))
    });
    let mut lists = lists.collect::<PyResult<Vec<_>>>()?;
    if wanted.is_single { Ok(lists.remove(0)) } else { tuple(py, lists) }
}

/// The strings of the lines, and a column for each field.
fn columns(
    lines: &[u8],
    wanted: &Wanted,
    limit: usize,
    task: &Task<'_>,
) -> Result<(Large<Vec<u8>>, Vec<Column>), Error> {
    let Columns { strings, columns } = jsonl::extract(lines, &wanted.paths, limit, task)?;
    let columns =
        memory::collected(columns.into_iter().map(|fields| Column::new::<Error>(&strings, fields, task)))?;
    Ok((Large::new(strings), columns))
}

/// JSON lines, as text or as bytes.
enum Lines<'py> {
    Text(Bound<'py, PyString>),
    /// The UTF-8 of a long text, which CPython would make with the lock held.
    Long(Large<String>),
    Bytes(Bytes),
}

impl<'py> Lines<'py> {
    fn borrow(data: &Bound<'py, PyAny>, release: Release) -> PyResult<Self> {
        let Ok(text) = data.cast::<PyString>() else { return Bytes::borrow(data).map(Self::Bytes) };
        let long = utf8::of_long(text, release)?;
        Ok(long.map_or_else(|| Self::Text(text.clone()), Self::Long))
    }

    fn as_slice(&self) -> PyResult<&[u8]> {
        match self {
            Self::Text(text) => Ok(text.to_str()?.as_bytes()),
            Self::Long(text) => Ok(text.as_bytes()),
            Self::Bytes(bytes) => Ok(bytes.as_slice()),
        }
    }
}
