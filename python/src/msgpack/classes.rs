//! The Python classes that native code needs: looked up once, never changed.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

use crate::objects::imported;

macro_rules! classes {
    ($($(#[$doc:meta])* $name:ident = $module:literal, $class:literal;)*) => {$(
        $(#[$doc])*
        pub(super) fn $name(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
            static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
            imported(&CLASS, py, $module, $class)
        }
    )*};
}

classes! {
    ext_type = "offlock.msgpack.ext", "ExtType";
    timestamp = "offlock.msgpack.ext", "Timestamp";
    buffer_full = "offlock.msgpack.exceptions", "BufferFull";
    out_of_data = "offlock.msgpack.exceptions", "OutOfData";
    format_error = "offlock.msgpack.exceptions", "FormatError";
    stack_error = "offlock.msgpack.exceptions", "StackError";
    extra_data = "offlock.msgpack.exceptions", "ExtraData";
    uuid = "uuid", "UUID";
    enumeration = "enum", "Enum";
    /// Numpy's arrays.
    ndarray = "numpy", "ndarray";
    /// Numpy's numbers, and the other types of an array's items.
    numpy_generic = "numpy", "generic";
}

/// 1970-01-01 UTC, as a `datetime`.
pub(super) fn epoch(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static EPOCH: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    imported(&EPOCH, py, "offlock.msgpack.ext", "EPOCH")
}

/// The function `dataclasses.fields`.
pub(super) fn dataclass_fields(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static FIELDS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    imported(&FIELDS, py, "dataclasses", "fields")
}
