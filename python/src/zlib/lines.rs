//! `readline` of a gzip file, without a Python frame for each line, which would take longer than the line.
//! Iteration calls it, too.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

use crate::cpython::fastcall::{Call, Definition, Function};
use crate::error::WithMessage;
use crate::objects::{kept, name};

static READLINE: Definition = Definition::new::<Readline>(
    c"readline",
    c"readline($self, /, size=-1)\n--\n\n\
Read up to and with the next line feed, at most `size` bytes if that is not negative; b\"\" at the end.",
);

/// The methods that a call needs, the same for all files.
struct Methods {
    /// `io.BufferedReader`, and its method `readline`.
    reader: Py<PyType>,
    of_reader: Py<PyAny>,
    /// `GzipFile.readline` as it is written in Python.
    otherwise: Py<PyAny>,
}

static METHODS: PyOnceLock<Methods> = PyOnceLock::new();

/// Makes a method `readline` for the class `GzipFile`, which does the same as `otherwise`, without calling it
/// in the usual case.
#[pyfunction]
#[pyo3(signature = (class, otherwise, /))]
pub(super) fn quick_readline<'py>(
    class: &Bound<'py, PyType>,
    otherwise: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = class.py();
    kept(&METHODS, py, || {
        let reader = py.import("io")?.getattr("BufferedReader")?.cast_into::<PyType>()?;
        let of_reader = reader.getattr("readline")?.unbind();
        Ok::<_, PyErr>(Methods { reader: reader.unbind(), of_reader, otherwise: otherwise.clone().unbind() })
    })?;
    READLINE.of_class(class)
}

struct Readline;

impl Function for Readline {
    #[inline(always)]
    fn call<'py>(call: Call<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
        let (py, file) = (call.py(), call.receiver());
        let Some(methods) = METHODS.get(py) else {
            return Err(PyRuntimeError::with_message("the module gzip is not complete yet"));
        };
        if !call.has_keywords() && call.count() <= 1 {
            let lines = file.getattr(name!("_lines"))?;
            if lines.get_type_ptr() == methods.reader.as_ptr().cast() {
                return call.pass_behind(&lines, methods.of_reader.bind(py));
            }
        }
        call.pass_behind(&file, methods.otherwise.bind(py))
    }
}
