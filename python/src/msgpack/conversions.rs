//! The format of each Python object, apart from the commonest ones.

use offlock_core::msgpack::Timestamp;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{
    PyByteArray, PyBytes, PyDate, PyDateTime, PyDelta, PyDeltaAccess, PyDict, PyFloat, PyInt, PyList,
    PyMemoryView, PyString, PyTime, PyTuple, PyType, PyTzInfoAccess,
};

use super::classes;
use super::numpy;
use crate::borrow::Bytes;
use crate::error::WithMessage;
use crate::objects::{dict, name};

/// The msgpack type in which an object is written.
pub(super) enum Family {
    Int,
    Float,
    Bytes,
    Str,
    Dict,
    Ext,
    Timestamp,
    List,
    Tuple,
    Other,
}

/// The family of an object, in the order in which msgpack checks them. With `strict`, subclasses and tuples
/// belong to none.
pub(super) fn family(object: &Bound<'_, PyAny>, strict: bool) -> PyResult<Family> {
    Ok(if is::<PyInt>(object, strict) {
        Family::Int
    } else if is::<PyFloat>(object, strict) {
        Family::Float
    } else if is::<PyBytes>(object, strict) || is::<PyByteArray>(object, strict) {
        Family::Bytes
    } else if is::<PyString>(object, strict) {
        Family::Str
    } else if is::<PyDict>(object, strict) {
        Family::Dict
    } else if is_class(object, classes::ext_type(object.py())?, strict)? {
        Family::Ext
    } else if object.get_type().is(classes::timestamp(object.py())?) {
        Family::Timestamp
    } else if is::<PyList>(object, strict) {
        Family::List
    } else if !strict && object.is_instance_of::<PyTuple>() {
        Family::Tuple
    } else if object.is_instance_of::<PyMemoryView>() {
        Family::Bytes
    } else {
        Family::Other
    })
}

fn is<T: pyo3::type_object::PyTypeInfo>(object: &Bound<'_, PyAny>, strict: bool) -> bool {
    if strict { object.is_exact_instance_of::<T>() } else { object.is_instance_of::<T>() }
}

fn is_class(object: &Bound<'_, PyAny>, class: &Bound<'_, PyType>, strict: bool) -> PyResult<bool> {
    if strict { Ok(object.get_type().is(class)) } else { object.is_instance(class) }
}

/// The bytes of a bytes, a bytearray or a contiguous memoryview.
pub(super) fn bytes_of(object: &Bound<'_, PyAny>) -> PyResult<Bytes> {
    Bytes::borrow(object)
}

/// An object, or another value, that is written in place of an object.
pub(super) enum Replacement<'py> {
    Object(Bound<'py, PyAny>),
    Timestamp(Timestamp),
    Memory(numpy::Memory<'py>),
    Pieces(numpy::Pieces<'py>),
}

/// The conversion of dates and times: the option `datetime`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Datetime {
    /// None: they are unknown objects.
    #[default]
    No,
    /// A datetime with a time zone becomes a timestamp.
    Timestamp,
    /// Datetimes, dates and times become text as in RFC 3339.
    Iso,
}

impl Datetime {
    /// Reads the option: `False`, `True` or `"iso"`.
    pub(super) fn from_option(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        match value.extract::<&str>() {
            Ok("iso") => Ok(Self::Iso),
            Ok(other) => Err(PyValueError::with_message(format!(
                "datetime must be False, True or 'iso', not '{other}'"
            ))),
            Err(_) => Ok(if value.is_truthy()? { Self::Timestamp } else { Self::No }),
        }
    }

    /// The value to write for `object`, if this option covers it.
    pub(super) fn replacement<'py>(self, object: &Bound<'py, PyAny>) -> PyResult<Option<Replacement<'py>>> {
        match self {
            Self::No => Ok(None),
            Self::Timestamp => match object.cast_exact::<PyDateTime>() {
                Ok(datetime) => Ok(timestamp_of(datetime)?.map(Replacement::Timestamp)),
                Err(_) => Ok(None),
            },
            Self::Iso if object.is_instance_of::<PyDate>() || object.is_instance_of::<PyTime>() => {
                Ok(Some(Replacement::Object(object.call_method0(name!("isoformat"))?)))
            }
            Self::Iso => Ok(None),
        }
    }
}

/// The options for the objects of other libraries: `dataclasses`, `numpy`, `uuid`, `enum`.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Extra {
    dataclasses: bool,
    numpy: bool,
    uuid: bool,
    enumeration: bool,
}

impl Extra {
    /// Sets the option of that name, if it exists.
    pub(super) fn set(&mut self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        let option = match name {
            "dataclasses" => &mut self.dataclasses,
            "numpy" => &mut self.numpy,
            "uuid" => &mut self.uuid,
            "enum" => &mut self.enumeration,
            _ => return Ok(false),
        };
        *option = value.is_truthy()?;
        Ok(true)
    }

    /// The value to write for `object`, if one of the options covers it.
    pub(super) fn replacement<'py>(self, object: &Bound<'py, PyAny>) -> PyResult<Option<Replacement<'py>>> {
        let py = object.py();
        if self.dataclasses
            && let Some(fields) = dataclass_fields(object)?
        {
            return Ok(Some(Replacement::Object(fields.into_any())));
        }
        if self.enumeration && object.is_instance(classes::enumeration(py)?)? {
            return Ok(Some(Replacement::Object(object.getattr(name!("value"))?)));
        }
        if self.uuid && object.is_instance(classes::uuid(py)?)? {
            return Ok(Some(Replacement::Object(object.str()?.into_any())));
        }
        let of_numpy = if self.numpy { numpy::replacement(object)? } else { None };
        Ok(of_numpy.map(|replacement| match replacement {
            numpy::NumpyReplacement::Memory(memory) => Replacement::Memory(memory),
            numpy::NumpyReplacement::Pieces(pieces) => Replacement::Pieces(pieces),
            numpy::NumpyReplacement::Object(object) => Replacement::Object(object),
        }))
    }
}

/// The fields of a dataclass object, in the order of their definition.
fn dataclass_fields<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyDict>>> {
    let py = object.py();
    if object.is_instance_of::<PyType>() || !object.get_type().hasattr(name!("__dataclass_fields__"))? {
        return Ok(None);
    }
    let fields = dict(py)?;
    for field in classes::dataclass_fields(py)?.call1((object,))?.try_iter()? {
        let name = field?.getattr(name!("name"))?.cast_into::<PyString>()?;
        fields.set_item(&name, object.getattr(&name)?)?;
    }
    Ok(Some(fields))
}

/// The time since the epoch of a datetime with a time zone.
fn timestamp_of(datetime: &Bound<'_, PyDateTime>) -> PyResult<Option<Timestamp>> {
    if datetime.get_tzinfo().is_none() {
        return Ok(None);
    }
    let delta = datetime.sub(classes::epoch(datetime.py())?)?.cast_into::<PyDelta>()?;
    Ok(Some(Timestamp {
        seconds: i64::from(delta.get_days()) * 86400 + i64::from(delta.get_seconds()),
        nanoseconds: delta.get_microseconds().cast_unsigned() * 1000,
    }))
}
