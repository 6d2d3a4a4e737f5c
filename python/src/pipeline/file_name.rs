//! Names of files as Python has them.

#[cfg(unix)]
use std::ffi::OsStr;
#[cfg(unix)]
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyBytes;

use crate::bytes;
use crate::cpython::object;
use crate::objects::imported;

/// The name of a file as a `str`, as an argument or a result. Names that are not UTF-8 are as `os.fsdecode` makes them.
pub(super) struct FileName<'a>(pub(super) &'a Path);

impl<'py> IntoPyObject<'py> for FileName<'_> {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        static DECODE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        match self.0.to_str() {
            Some(text) => object::text(py, text).map(Bound::into_any),
            None => {
                let bytes = bytes::copied(py, self.0.as_os_str().as_encoded_bytes())?;
                imported(&DECODE, py, "os", "fsdecode")?.call1((bytes,))
            }
        }
    }
}

/// The file that an argument names: a `str`, `bytes`, or an object with `__fspath__`. Called with the argument as it is:
/// PyO3's extraction of arguments panics when there is no memory for the exception.
pub(super) fn file_path(name: &Bound<'_, PyAny>) -> PyResult<PathBuf> {
    static ENCODE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let encoded = imported(&ENCODE, name.py(), "os", "fsencode")?.call1((name,))?;
    let bytes = encoded.cast::<PyBytes>()?.as_bytes();
    #[cfg(unix)]
    return Ok(OsStr::from_bytes(bytes).into());
    #[cfg(not(unix))]
    return Ok(std::str::from_utf8(bytes)?.into());
}
