//! The usual ways to make many `str` objects in native code, as the baselines of the benchmark.
//!
//! The positions of the lines, their widest characters, and their characters in the stored width are computed
//! beforehand. The remaining work is the minimum that every extension has for each string.

use std::ptr;

use pyo3::ffi;
use pyo3::prelude::*;

/// One line, as UTF-8 and as CPython stores it.
struct Line {
    utf8: Box<[u8]>,
    /// The characters as CPython stores them.
    stored: Box<[u8]>,
    chars: usize,
    widest: char,
}

impl Line {
    fn new(text: &str) -> Self {
        let widest = text.chars().max().unwrap_or('\0');
        let width = match u32::from(widest) {
            ..0x100 => 1,
            0x100..0x1_0000 => 2,
            _ => 4,
        };
        let stored = text.chars().flat_map(|c| u32::from(c).to_le_bytes()[..width].to_vec()).collect();
        Self { utf8: text.as_bytes().into(), stored, chars: text.chars().count(), widest }
    }
}

/// Prepared lines.
#[pyclass(frozen)]
struct Lines(Vec<Line>);

#[pymethods]
impl Lines {
    #[new]
    fn new(lines: Vec<String>) -> Self {
        Self(lines.iter().map(|line| Line::new(line)).collect())
    }

    /// Makes each line with `PyUnicode_New` and a copy.
    fn copied<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        // SAFETY: the lock is held; a new object has space for these characters, and no other code has a
        // reference to it.
        self.tuple(py, |line| unsafe {
            let object = ffi::PyUnicode_New(line.chars.cast_signed(), line.widest.into());
            if !object.is_null() {
                ptr::copy_nonoverlapping(line.stored.as_ptr(), ffi::PyUnicode_DATA(object).cast(), line.stored.len());
            }
            object
        })
    }

    /// Makes each line with `PyUnicode_DecodeUTF8`.
    fn decoded<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        // SAFETY: the lock is held; CPython copies that many bytes.
        self.tuple(py, |line| unsafe {
            ffi::PyUnicode_DecodeUTF8(line.utf8.as_ptr().cast(), line.utf8.len().cast_signed(), ptr::null())
        })
    }
}

impl Lines {
    fn tuple<'py>(
        &self,
        py: Python<'py>,
        make: impl Fn(&Line) -> *mut ffi::PyObject,
    ) -> PyResult<Bound<'py, PyAny>> {
        // SAFETY: the lock is held; the new tuple has this many empty slots, and each gets its own reference.
        unsafe {
            let tuple = Bound::from_owned_ptr_or_err(py, ffi::PyTuple_New(self.0.len().cast_signed()))?;
            for (index, line) in self.0.iter().enumerate() {
                let object = make(line);
                if object.is_null() {
                    return Err(PyErr::fetch(py));
                }
                ffi::PyTuple_SET_ITEM(tuple.as_ptr(), index.cast_signed(), object);
            }
            Ok(tuple)
        }
    }
}

#[pymodule]
mod offlock_strings_baseline {
    #[pymodule_export]
    use super::Lines;
}
