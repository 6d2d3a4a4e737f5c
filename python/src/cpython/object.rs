//! Objects made and read by CPython's own functions, where PyO3 has no safe function, or one that costs more
//! or panics when there is no memory.

use std::ffi::{CStr, c_int, c_long};
use std::ptr;

use pyo3::ffi as c;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyInt, PySlice, PyString};

use super::assumptions::Assumption;

unsafe extern "C" {
    /// Exported by every CPython for the extensions that Cython compiles.
    fn _PyDict_NewPresized(entries: c::Py_ssize_t) -> *mut c::PyObject;

    /// The number of bits of an int's absolute value. A `size_t`, or an `int64_t` from CPython 3.14 on.
    fn _PyLong_NumBits(int: *mut c::PyObject) -> usize;
}

/// Takes over a new reference that a call of the C API returned, or the exception that it raised.
///
/// # Safety
/// `object` is a new reference, or null with an exception set.
#[inline]
pub(crate) unsafe fn owned(py: Python<'_>, object: *mut c::PyObject) -> PyResult<Bound<'_, PyAny>> {
    // SAFETY: exactly the contract of this function.
    unsafe { Bound::from_owned_ptr_or_err(py, object) }
}

/// An int.
#[inline]
pub(crate) fn int(py: Python<'_>, value: i64) -> PyResult<Bound<'_, PyAny>> {
    // SAFETY: returns a new reference, or null with an exception set.
    unsafe { owned(py, c::PyLong_FromLongLong(value)) }
}

/// An int.
#[inline]
pub(crate) fn size(py: Python<'_>, value: usize) -> PyResult<Bound<'_, PyInt>> {
    // SAFETY: both return a new int, or null with an exception set. (The first takes half of the other's
    // time.)
    unsafe {
        let object = match c_long::try_from(value) {
            Ok(value) => c::PyLong_FromLong(value),
            Err(_) => c::PyLong_FromSize_t(value),
        };
        owned(py, object).map(|int| int.cast_into_unchecked())
    }
}

/// An int.
#[inline]
pub(crate) fn uint(py: Python<'_>, value: u64) -> PyResult<Bound<'_, PyAny>> {
    match i64::try_from(value) {
        Ok(value) => int(py, value),
        // SAFETY: returns a new reference, or null with an exception set.
        Err(_) => unsafe { owned(py, c::PyLong_FromUnsignedLongLong(value)) },
    }
}

/// A float.
#[inline]
pub(crate) fn float(py: Python<'_>, value: f64) -> PyResult<Bound<'_, PyAny>> {
    // SAFETY: returns a new reference, or null with an exception set.
    unsafe { owned(py, c::PyFloat_FromDouble(value)) }
}

/// A bytes.
#[inline]
pub(crate) fn bytes<'py>(py: Python<'py>, value: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    // SAFETY: copies `len` bytes from the pointer; returns a new reference, or null with an exception set.
    unsafe {
        let object = c::PyBytes_FromStringAndSize(value.as_ptr().cast(), value.len().cast_signed());
        owned(py, object).map(|bytes| bytes.cast_into_unchecked())
    }
}

/// A str of these characters.
pub(crate) fn text<'py>(py: Python<'py>, content: &str) -> PyResult<Bound<'py, PyString>> {
    // SAFETY: decoding makes a str.
    utf8(py, content.as_bytes(), None).map(|text| unsafe { text.cast_into_unchecked() })
}

/// A str of characters that take `width` bytes each: 1, 2 or 4.
pub(crate) fn str_of_units<'py>(py: Python<'py>, units: &[u8], width: usize) -> PyResult<Bound<'py, PyAny>> {
    let kind = i32::try_from(width).expect("at most four");
    // SAFETY: the memory holds this many characters of this width; returns a new reference, or null with an
    // exception set.
    unsafe {
        let chars = (units.len() / width).cast_signed();
        owned(py, c::PyUnicode_FromKindAndData(kind, units.as_ptr().cast(), chars))
    }
}

/// `start:end`.
pub(crate) fn slice(py: Python<'_>, start: usize, end: usize) -> PyResult<Bound<'_, PySlice>> {
    let (start, end) = (size(py, start)?, size(py, end)?);
    // SAFETY: takes references of its own; returns a new slice, or null with an exception set.
    unsafe {
        let slice = c::PySlice_New(start.as_ptr(), end.as_ptr(), ptr::null_mut());
        owned(py, slice).map(|slice| slice.cast_into_unchecked())
    }
}

/// A tuple of the current items of a sequence or another iterable.
pub(crate) fn tuple_of<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: takes any object; returns a new reference, or null with an exception set.
    unsafe { owned(object.py(), c::PySequence_Tuple(object.as_ptr())) }
}

/// The result of `operator.index`.
pub(crate) fn index<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: takes any object; returns a new reference, or null with an exception set.
    unsafe { owned(object.py(), c::PyNumber_Index(object.as_ptr())) }
}

/// Whether the object's type is a sequence; `collections.abc` does not know them all.
pub(crate) fn is_sequence(object: &Bound<'_, PyAny>) -> bool {
    // SAFETY: only looks at the type of a live object.
    unsafe { c::PySequence_Check(object.as_ptr()) == 1 }
}

/// A str decoded from UTF-8; `errors` says how to handle invalid bytes ("strict" when `None`).
#[inline]
pub(crate) fn utf8<'py>(py: Python<'py>, value: &[u8], errors: Option<&CStr>) -> PyResult<Bound<'py, PyAny>> {
    let errors = errors.map_or(ptr::null(), CStr::as_ptr);
    // SAFETY: reads `len` bytes from the pointer; `errors` is null or a C string that lives through the call.
    unsafe { owned(py, c::PyUnicode_DecodeUTF8(value.as_ptr().cast(), value.len().cast_signed(), errors)) }
}

/// The UTF-8 of a str, which CPython keeps beside the characters: valid as long as the object lives.
#[inline]
pub(crate) fn utf8_of<'a>(text: &'a Bound<'_, PyAny>) -> PyResult<&'a [u8]> {
    let mut length = 0;
    // SAFETY: takes any object (a TypeError for all but str); the bytes it returns live as long as the
    // object, which the caller's borrow keeps alive.
    unsafe {
        let start = c::PyUnicode_AsUTF8AndSize(text.as_ptr(), &raw mut length);
        if start.is_null() {
            return Err(PyErr::fetch(text.py()));
        }
        Ok(std::slice::from_raw_parts(start.cast(), length.cast_unsigned()))
    }
}

/// The object, if it is exactly a str. (PyO3's own way makes an error otherwise, which takes longer than the
/// check.)
#[inline(always)]
pub(crate) fn exact_str<'a, 'py>(object: Borrowed<'a, 'py, PyAny>) -> Option<Borrowed<'a, 'py, PyString>> {
    // SAFETY: just checked.
    object.is_exact_instance_of::<PyString>().then(|| unsafe { object.cast_unchecked() })
}

/// How many characters an exact str has.
#[inline]
pub(crate) fn characters(text: &Bound<'_, PyAny>) -> usize {
    // SAFETY: takes any object; for a str it reads the length in the header.
    unsafe { c::PyUnicode_GetLength(text.as_ptr()).cast_unsigned() }
}

/// A part of a `str`, by the indices of characters; those beyond its end count as its end.
pub(crate) fn substring<'py>(
    text: &Bound<'py, PyString>,
    start: usize,
    end: usize,
) -> PyResult<Bound<'py, PyString>> {
    let index = |index: usize| index.try_into().unwrap_or(c::Py_ssize_t::MAX);
    // SAFETY: a live str; the function returns a new reference to a str, or null with an exception set.
    unsafe {
        let part = c::PyUnicode_Substring(text.as_ptr(), index(start), index(end));
        Bound::from_owned_ptr_or_err(text.py(), part).map(|part| part.cast_into_unchecked())
    }
}

/// An empty dict with capacity for `entries`.
#[inline]
pub(crate) fn dict(py: Python<'_>, entries: usize) -> PyResult<Bound<'_, PyDict>> {
    // Capacity for 11 to 29 would not fit in what CPython's own allocator serves, and costs more than it
    // saves.
    let presized = matches!(entries, 6..=10 | 30..) && Assumption::PrivateFunctions.holds();
    // SAFETY: returns a new reference to an exact dict, or null with an exception set.
    unsafe {
        let new = if presized {
            owned(py, _PyDict_NewPresized(entries.cast_signed()))
        } else {
            owned(py, c::PyDict_New())
        };
        new.map(|dict| dict.cast_into_unchecked())
    }
}

/// Puts an entry into an exact dict.
#[inline]
pub(crate) fn set_item(
    dict: &Bound<'_, PyDict>,
    key: &Bound<'_, PyAny>,
    value: &Bound<'_, PyAny>,
) -> PyResult<()> {
    // SAFETY: three live objects, the first of them a dict.
    let result = unsafe { c::PyDict_SetItem(dict.as_ptr(), key.as_ptr(), value.as_ptr()) };
    if result < 0 { Err(PyErr::fetch(dict.py())) } else { Ok(()) }
}

/// Copies a few bytes, in words that may overlap: a call of `memcpy` would cost more than the copy.
///
/// # Safety
/// There is memory for the bytes at `to`, and the two ranges do not overlap.
#[inline(always)]
pub(crate) unsafe fn copy_short(from: &[u8], to: *mut u8) {
    let (start, length) = (from.as_ptr(), from.len());
    // SAFETY: all reads are inside `from` and all writes inside as many bytes at `to`: each pair covers the
    // first and the last bytes of a length that is at least one word and at most two.
    unsafe {
        match length {
            16..=32 => copy_ends::<u128>(start, to, length),
            8..16 => copy_ends::<u64>(start, to, length),
            4..8 => copy_ends::<u32>(start, to, length),
            2..4 => copy_ends::<u16>(start, to, length),
            _ => ptr::copy_nonoverlapping(start, to, length),
        }
    }
}

/// Copies the first and the last word of `length` bytes.
///
/// # Safety
/// `length` bytes can be read at `from` and written at `to`, and a word is not longer than that.
#[inline(always)]
unsafe fn copy_ends<Word: Copy>(from: *const u8, to: *mut u8, length: usize) {
    let last = length - size_of::<Word>();
    // SAFETY: the contract of this function.
    unsafe {
        let first = from.cast::<Word>().read_unaligned();
        let end = from.add(last).cast::<Word>().read_unaligned();
        to.cast::<Word>().write_unaligned(first);
        to.add(last).cast::<Word>().write_unaligned(end);
    }
}

/// The value of an int, when 64 bits can hold it.
pub(crate) enum Wide {
    /// With a sign.
    Signed(i64),
    /// Positive and too large for that.
    Unsigned(u64),
    /// Too large, or too small, for either.
    Neither,
}

/// The value of an int; `object` is one, or of a subclass. A value that is too wide raises no exception:
/// before CPython 3.12 that could start a garbage collection, whose finalizers may free an object that the
/// caller has only borrowed.
#[inline]
pub(crate) fn int_value(object: &Bound<'_, PyAny>) -> PyResult<Wide> {
    let mut overflow: c_int = 0;
    // SAFETY: takes any object; reports a value that does not fit through `overflow`, other errors as an
    // exception.
    let value = unsafe { c::PyLong_AsLongLongAndOverflow(object.as_ptr(), &raw mut overflow) };
    match overflow {
        0 if value == -1 => match PyErr::take(object.py()) {
            Some(error) => Err(error),
            None => Ok(Wide::Signed(-1)),
        },
        0 => Ok(Wide::Signed(value)),
        1 => Ok(wide_value(object)),
        _ => Ok(Wide::Neither),
    }
}

/// The value of an int that is larger than 63 bits can express.
#[cold]
#[inline(never)]
fn wide_value(object: &Bound<'_, PyAny>) -> Wide {
    let bits = if Assumption::PrivateFunctions.holds() {
        // SAFETY: an int, so that the call runs no code of the program, and does not raise.
        unsafe { _PyLong_NumBits(object.as_ptr()) }
    } else {
        // The method of the class `int`, because a subclass may override it.
        let bits = object.py().get_type::<PyInt>().call_method1("bit_length", (object,));
        bits.and_then(|bits| bits.extract()).unwrap_or(usize::MAX)
    };
    if bits > u64::BITS as usize {
        return Wide::Neither;
    }
    // SAFETY: as above; reads no more than 64 bits.
    Wide::Unsigned(unsafe { c::PyLong_AsUnsignedLongLongMask(object.as_ptr()) })
}

/// The lowest 32 bits of an int; `object` is exactly one.
#[inline]
pub(crate) fn lowest_bits(object: Borrowed<'_, '_, PyAny>) -> u32 {
    debug_assert!(object.is_exact_instance_of::<PyInt>());
    // SAFETY: an int, so that the call runs no code of the program, and does not raise.
    unsafe { c::PyLong_AsUnsignedLongMask(object.as_ptr()) as u32 }
}

/// The value of a float; `object` is one, or of a subclass.
#[inline]
pub(crate) fn float_value(object: &Bound<'_, PyAny>) -> f64 {
    // SAFETY: reads the value of a float; the caller checked the type.
    unsafe { c::PyFloat_AS_DOUBLE(object.as_ptr()) }
}

/// Whether a bool is `True`.
#[inline]
pub(crate) fn is_true(object: &Bound<'_, PyAny>) -> bool {
    // SAFETY: compares a pointer with that of an object that lives forever.
    unsafe { object.as_ptr() == c::Py_True() }
}

/// Replaces a new `str` with the interned one of the same characters. Returns whether that is the new one
/// itself.
pub(crate) fn intern(text: &mut Bound<'_, PyAny>) -> bool {
    let new = text.as_ptr();
    let mut interned = new;
    // SAFETY: takes over the reference to an exact str, and replaces it with one to the interned equal.
    unsafe {
        c::PyUnicode_InternInPlace(&raw mut interned);
        let old = std::mem::replace(text, Bound::from_owned_ptr(text.py(), interned));
        std::mem::forget(old);
    }
    interned == new
}
