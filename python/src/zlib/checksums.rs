//! Checksums of a few bytes, for which parsing the arguments takes longer than the sum.
//!
//! These functions recognize the usual call themselves, and pass every other one to their namesakes in
//! `one_shot.rs`.

use offlock_core::deflate;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyInt};

use crate::cpython::fastcall::{Call, Definition, Function};
use crate::cpython::object;
use crate::error::WithMessage;
use crate::region::yield_between_calls;

/// Up to this size a checksum takes less than a microsecond.
const SMALL: usize = 8 << 10;

/// The functions that take any arguments.
static CRC32: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
static ADLER32: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

static QUICK_CRC32: Definition = Definition::new::<Crc32>(
    c"crc32",
    c"crc32(data, value=0, /, *, release='auto')\n--\n\nCRC-32 of `data`, continued from `value`.",
);
static QUICK_ADLER32: Definition = Definition::new::<Adler32>(
    c"adler32",
    c"adler32(data, value=1, /, *, release='auto')\n--\n\nAdler-32 of `data`, continued from `value`.",
);

struct Crc32;
struct Adler32;

impl Function for Crc32 {
    #[inline(always)]
    fn call<'py>(call: Call<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
        of_small(call, 0, deflate::crc32_of_small, &CRC32)
    }
}

impl Function for Adler32 {
    #[inline(always)]
    fn call<'py>(call: Call<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
        of_small(call, 1, deflate::adler32_of_small, &ADLER32)
    }
}

/// Replaces the functions that take any arguments with the quick ones.
pub(super) fn replace(module: &Bound<'_, PyModule>) -> PyResult<()> {
    put(module, "crc32", &QUICK_CRC32, &CRC32)?;
    put(module, "adler32", &QUICK_ADLER32, &ADLER32)
}

fn put(
    module: &Bound<'_, PyModule>,
    name: &str,
    quick: &'static Definition,
    otherwise: &PyOnceLock<Py<PyAny>>,
) -> PyResult<()> {
    let _ = otherwise.set(module.py(), module.getattr(name)?.unbind());
    // Not `add`, which would list the name in `__all__` once more.
    module.setattr(name, quick.of(module)?)
}

/// The sum of a small `bytes`, continued from an `int`; for any other arguments the result of `otherwise`.
#[inline(always)]
fn of_small<'py>(
    call: Call<'_, 'py>,
    initial: u32,
    sum: fn(u32, &[u8]) -> u32,
    otherwise: &PyOnceLock<Py<PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = call.py();
    if let Some(data) = call.argument(0)
        && let Ok(data) = data.cast_exact::<PyBytes>()
        && let Some(value) = value(call, initial)
        && data.as_bytes().len() <= SMALL
    {
        yield_between_calls(py, data.as_bytes().len())?;
        return object::uint(py, sum(value, data.as_bytes()).into());
    }
    match otherwise.get(py) {
        Some(function) => call.pass_to(function.bind(py)),
        None => Err(PyRuntimeError::with_message("the module zlib is not complete yet")),
    }
}

/// The value that the sum is continued from, if it is a simple one.
#[inline(always)]
fn value(call: Call<'_, '_>, initial: u32) -> Option<u32> {
    match (call.has_keywords(), call.count(), call.argument(1)) {
        (false, 1, _) => Some(initial),
        (false, 2, Some(value)) if value.is_exact_instance_of::<PyInt>() => Some(object::lowest_bits(value)),
        _ => None,
    }
}
