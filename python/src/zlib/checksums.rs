//! Checksums of a few bytes, for which going through the arguments takes longer than the sum.
//!
//! These functions look for the usual call themselves, and pass every other one on to their namesakes in `one_shot.rs`.

use std::ffi::c_ulong;

use offlock_core::deflate;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::fastcall::Definition;
use crate::region::yield_between_calls;

/// Up to this size nobody notices how long a checksum takes: below a microsecond.
const SMALL: usize = 8 << 10;

static CRC32: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
static ADLER32: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

static QUICK_CRC32: Definition = Definition::new(
    c"crc32",
    c"crc32(data, value=0, /, *, release='auto')\n--\n\nCRC-32 of `data`, continued from `value`.",
    crc32,
);
static QUICK_ADLER32: Definition = Definition::new(
    c"adler32",
    c"adler32(data, value=1, /, *, release='auto')\n--\n\nAdler-32 of `data`, continued from `value`.",
    adler32,
);

/// Puts the quick functions in the place of those that take any arguments.
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

unsafe extern "C" fn crc32(
    _: *mut ffi::PyObject,
    arguments: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    keywords: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: CPython calls this with the lock held and with as many arguments as it says.
    unsafe { of_small(arguments, count, keywords, 0, deflate::crc32_of_small, &CRC32) }
}

unsafe extern "C" fn adler32(
    _: *mut ffi::PyObject,
    arguments: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    keywords: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: CPython calls this with the lock held and with as many arguments as it says.
    unsafe { of_small(arguments, count, keywords, 1, deflate::adler32_of_small, &ADLER32) }
}

/// The sum of a small `bytes`, continued from an `int`; with any other arguments what `otherwise` makes of them.
///
/// # Safety
///
/// To be called with the lock held; there are `count` `arguments`, and one more for each of the `keywords`.
#[inline]
unsafe fn of_small(
    arguments: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    keywords: *mut ffi::PyObject,
    initial: u32,
    sum: fn(u32, &[u8]) -> u32,
    otherwise: &PyOnceLock<Py<PyAny>>,
) -> *mut ffi::PyObject {
    // SAFETY: the arguments are live objects, as the caller says, and what is read of them is of their exact type. A `bytes`
    // does not change, and the caller's reference keeps it.
    unsafe {
        if keywords.is_null() && (count == 1 || count == 2) && ffi::PyBytes_CheckExact(*arguments) != 0 {
            let size = ffi::PyBytes_Size(*arguments) as usize;
            let value = match count {
                1 => Some(initial),
                _ if ffi::PyLong_CheckExact(*arguments.add(1)) != 0 => {
                    Some(ffi::PyLong_AsUnsignedLongMask(*arguments.add(1)) as u32)
                }
                _ => None,
            };
            if let (Some(value), true) = (value, size <= SMALL) {
                let py = Python::assume_attached();
                if let Err(raised) = yield_between_calls(py, size) {
                    raised.restore(py);
                    return std::ptr::null_mut();
                }
                let start = ffi::PyBytes_AsString(*arguments).cast_const().cast();
                let sum = sum(value, std::slice::from_raw_parts(start, size));
                return ffi::PyLong_FromUnsignedLong(c_ulong::from(sum));
            }
        }
        match otherwise.get(Python::assume_attached()) {
            Some(function) => {
                ffi::PyObject_Vectorcall(function.as_ptr(), arguments, count as usize, keywords)
            }
            None => std::ptr::null_mut(),
        }
    }
}
