//! Which Python objects are written as what, apart from the commonest ones.

use offlock_core::memory;
use offlock_core::msgpack::Timestamp;
use offlock_core::msgpack::write::{self, Sink};
use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyDate, PyDateTime, PyDict, PyFloat, PyInt, PyList, PyMemoryView, PyString,
    PyTime, PyTuple, PyType,
};

use super::classes;
use super::pack::timestamp_of;
use crate::borrow::Bytes;
use crate::errors::no_memory;

/// What msgpack writes an object as.
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

/// The family of an object, in the order in which msgpack looks. With `strict`, subclasses and tuples are of none.
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

/// Whether the object is of a type that needs no second look.
pub(super) fn is_common(object: &Bound<'_, PyAny>) -> bool {
    object.is_none()
        || object.is_exact_instance_of::<PyString>()
        || object.is_exact_instance_of::<PyInt>()
        || object.is_exact_instance_of::<PyFloat>()
        || object.is_exact_instance_of::<PyDict>()
        || object.is_exact_instance_of::<PyList>()
        || object.is_exact_instance_of::<PyBool>()
}

fn is<T: pyo3::type_object::PyTypeInfo>(object: &Bound<'_, PyAny>, strict: bool) -> bool {
    if strict { object.is_exact_instance_of::<T>() } else { object.is_instance_of::<T>() }
}

fn is_class(object: &Bound<'_, PyAny>, class: &Bound<'_, PyType>, strict: bool) -> PyResult<bool> {
    if strict { Ok(object.get_type().is(class)) } else { object.is_instance(class) }
}

/// The name of an object's type, with its module when that is not `builtins`.
pub(super) fn name_of(object: &Bound<'_, PyAny>) -> String {
    object.get_type().fully_qualified_name().map_or_else(|_| String::from("?"), |name| name.to_string())
}

/// The bytes of a bytes, a bytearray or a contiguous memoryview.
pub(super) fn bytes_of(object: &Bound<'_, PyAny>) -> PyResult<Bytes> {
    Bytes::borrow(object)
}

/// An object, or something else, that is written in an object's place.
pub(super) enum Stand<'py> {
    Object(Bound<'py, PyAny>),
    Timestamp(Timestamp),
    Array(Array<'py>),
}

/// What becomes of dates and times: the option `datetime`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Datetime {
    /// Nothing: they are unknown objects.
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
            Ok(other) => {
                Err(PyValueError::new_err(format!("datetime must be False, True or 'iso', not '{other}'")))
            }
            Err(_) => Ok(if value.is_truthy()? { Self::Timestamp } else { Self::No }),
        }
    }

    /// What is written for `object`, if this option is about it.
    pub(super) fn stand<'py>(self, object: &Bound<'py, PyAny>) -> PyResult<Option<Stand<'py>>> {
        match self {
            Self::No => Ok(None),
            Self::Timestamp => match object.cast_exact::<PyDateTime>() {
                Ok(datetime) => Ok(timestamp_of(datetime)?.map(Stand::Timestamp)),
                Err(_) => Ok(None),
            },
            Self::Iso if object.is_instance_of::<PyDate>() || object.is_instance_of::<PyTime>() => {
                Ok(Some(Stand::Object(object.call_method0("isoformat")?)))
            }
            Self::Iso => Ok(None),
        }
    }
}

/// The options for what users of other libraries write: `dataclasses`, `numpy`, `uuid`, `enum`.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Extra {
    dataclasses: bool,
    numpy: bool,
    uuid: bool,
    enumeration: bool,
}

impl Extra {
    /// Sets the option of that name, if there is one.
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

    /// What is written for `object`, if one of the options is about it.
    pub(super) fn stand<'py>(self, object: &Bound<'py, PyAny>) -> PyResult<Option<Stand<'py>>> {
        let py = object.py();
        if self.dataclasses
            && let Some(fields) = dataclass_fields(object)?
        {
            return Ok(Some(Stand::Object(fields.into_any())));
        }
        if self.enumeration && object.is_instance(classes::enumeration(py)?)? {
            return Ok(Some(Stand::Object(object.getattr("value")?)));
        }
        if self.uuid && object.is_instance(classes::uuid(py)?)? {
            return Ok(Some(Stand::Object(object.str()?.into_any())));
        }
        if self.numpy && is_numpy(object)? {
            return Array::stand(object).map(Some);
        }
        Ok(None)
    }
}

/// The fields of a dataclass object, in the order of their definition.
fn dataclass_fields<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyDict>>> {
    let py = object.py();
    if object.is_instance_of::<PyType>() || !object.get_type().hasattr("__dataclass_fields__")? {
        return Ok(None);
    }
    let fields = PyDict::new(py);
    for field in classes::dataclass_fields(py)?.call1((object,))?.try_iter()? {
        let name = field?.getattr("name")?.cast_into::<PyString>()?;
        fields.set_item(&name, object.getattr(&name)?)?;
    }
    Ok(Some(fields))
}

fn is_numpy(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let kind = object.get_type();
    let module = kind.module()?;
    Ok(module.to_str()? == "numpy" && (kind.hasattr("__array_interface__")? || kind.hasattr("dtype")?))
}

/// A numpy array of numbers whose memory can be read as it is.
pub(super) struct Array<'py> {
    buffer: PyUntypedBuffer,
    item: Number,
    _object: Bound<'py, PyAny>,
}

/// The types of items that are read from memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Number {
    Bool,
    Int(usize),
    UInt(usize),
    Float(usize),
}

impl<'py> Array<'py> {
    /// What is written for a numpy object: its memory when that is simple, else what numpy makes of it.
    fn stand(object: &Bound<'py, PyAny>) -> PyResult<Stand<'py>> {
        if let Ok(buffer) = PyUntypedBuffer::get(object)
            && buffer.is_c_contiguous()
            && buffer.dimensions() > 0
            && let Some(item) = Number::of(&buffer)
        {
            return Ok(Stand::Array(Self { buffer, item, _object: object.clone() }));
        }
        object.call_method0("tolist").map(Stand::Object)
    }

    /// Writes the array, as arrays of arrays when it has more dimensions than one.
    pub(super) fn write(&self, out: &mut impl Sink) -> PyResult<()> {
        for &length in self.buffer.shape() {
            super::pack::check_length(length, "array")?;
        }
        // A snapshot, because other threads may write to the memory of an array.
        let bytes = if self.buffer.len_bytes() == 0 { Vec::new() } else { self.copy()? };
        self.write_dimension(&mut bytes.as_slice(), 0, out);
        Ok(())
    }

    fn copy(&self) -> PyResult<Vec<u8>> {
        // SAFETY: the export is C-contiguous, so that many bytes follow the pointer; they are copied at once, with
        // the lock held.
        let bytes = unsafe {
            std::slice::from_raw_parts(self.buffer.buf_ptr().cast::<u8>(), self.buffer.len_bytes())
        };
        memory::copied(bytes).map_err(no_memory)
    }

    fn write_dimension(&self, rest: &mut &[u8], dimension: usize, out: &mut impl Sink) {
        let length = self.buffer.shape()[dimension];
        write::array_header(out, length);
        for _ in 0..length {
            if dimension + 1 < self.buffer.dimensions() {
                self.write_dimension(rest, dimension + 1, out);
            } else if let Some((item, after)) = rest.split_at_checked(self.buffer.item_size()) {
                self.item.write(item, out);
                *rest = after;
            }
        }
    }
}

impl Number {
    fn of(buffer: &PyUntypedBuffer) -> Option<Self> {
        let format = buffer.format().to_bytes();
        let code = match format {
            [code] | [b'@' | b'=', code] => *code,
            [b'<', code] if cfg!(target_endian = "little") => *code,
            [b'>', code] if cfg!(target_endian = "big") => *code,
            _ => return None,
        };
        let size = buffer.item_size();
        match code {
            b'?' => Some(Self::Bool),
            b'b' | b'h' | b'i' | b'l' | b'q' if size <= 8 => Some(Self::Int(size)),
            b'B' | b'H' | b'I' | b'L' | b'Q' if size <= 8 => Some(Self::UInt(size)),
            b'f' | b'd' => Some(Self::Float(size)),
            _ => None,
        }
    }

    #[inline]
    fn write(self, item: &[u8], out: &mut impl Sink) {
        let mut wide = [0; 8];
        wide[..item.len()].copy_from_slice(item);
        let bits = u64::from_le_bytes(wide);
        match self {
            Self::Bool => write::bool(out, bits != 0),
            Self::UInt(_) => write::uint(out, bits),
            Self::Int(size) => {
                let unused = 64 - 8 * size as u32;
                write::int(out, (bits << unused).cast_signed() >> unused);
            }
            Self::Float(4) => write::f32(out, f32::from_bits(bits as u32)),
            Self::Float(_) => write::f64(out, f64::from_bits(bits)),
        }
    }
}
