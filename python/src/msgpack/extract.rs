//! `extract`: one field of every record of a large message, without building the records.

use offlock_core::msgpack::Error;
use offlock_core::msgpack::extract::fields;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use super::column::Column;
use super::error::DecodeError;
use super::input::Input;
use super::options::MAX_DEPTH;
use super::prebuilt_strings::PrebuiltStrings;
use super::unpack::whole;
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
        let found = Column::new::<Error>(bytes, column, task)?;
        let made = found.lay_out(bytes, &texts, task);
        Ok::<_, DecodeError>((found, made, end))
    })?;
    whole(found.list(py, bytes, made, release, &mut Yielder::of(release))?, bytes, end)
}
