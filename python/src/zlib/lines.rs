//! `readline` of a gzip file, without a Python frame for each line: it would take longer than the line.

use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

use crate::fastcall::Definition;

static READLINE: Definition = Definition::new(
    c"readline",
    c"readline($self, /, size=-1)\n--\n\n\
Read up to and with the next line feed, at most `size` bytes if that is not negative; b\"\" at the end.",
    readline,
);

/// What a call needs, the same for all files.
struct Methods {
    /// `io.BufferedReader`, and its method `readline`.
    reader: Py<PyAny>,
    of_reader: Py<PyAny>,
    /// `GzipFile.readline` as it is written in Python.
    otherwise: Py<PyAny>,
}

static METHODS: PyOnceLock<Methods> = PyOnceLock::new();

/// A method `readline` for the class `GzipFile`, which does what `otherwise` does: for the usual call by itself.
#[pyfunction]
#[pyo3(signature = (class, otherwise, /))]
pub(super) fn quick_readline<'py>(
    class: &Bound<'py, PyType>,
    otherwise: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = class.py();
    METHODS.get_or_try_init(py, || {
        let reader = py.import("io")?.getattr("BufferedReader")?;
        let of_reader = reader.getattr("readline")?.unbind();
        Ok::<_, PyErr>(Methods { reader: reader.unbind(), of_reader, otherwise: otherwise.clone().unbind() })
    })?;
    READLINE.of_class(class)
}

unsafe extern "C" fn readline(
    file: *mut ffi::PyObject,
    arguments: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    keywords: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: CPython calls this with the lock held and with as many arguments as it says, which are live objects; `file` is
    // one, too. The reader is kept by a reference of our own.
    unsafe {
        let py = Python::assume_attached();
        let Some(methods) = METHODS.get(py) else { return std::ptr::null_mut() };
        if keywords.is_null() && count <= 1 {
            let lines = ffi::PyObject_GetAttr(file, intern!(py, "_lines").as_ptr());
            let Some(lines) = Bound::from_owned_ptr_or_opt(py, lines) else { return std::ptr::null_mut() };
            if ffi::Py_TYPE(lines.as_ptr()).cast() == methods.reader.as_ptr() {
                let size = if count == 0 { std::ptr::null_mut() } else { *arguments };
                let passed = [lines.as_ptr(), size];
                let of_reader = methods.of_reader.as_ptr();
                return ffi::PyObject_Vectorcall(of_reader, passed.as_ptr(), 1 + count as usize, keywords);
            }
        }
        let named = if keywords.is_null() { 0 } else { ffi::PyTuple_Size(keywords) };
        let mut passed = vec![file];
        passed.extend((0..count + named).map(|index| *arguments.offset(index)));
        ffi::PyObject_Vectorcall(methods.otherwise.as_ptr(), passed.as_ptr(), 1 + count as usize, keywords)
    }
}
