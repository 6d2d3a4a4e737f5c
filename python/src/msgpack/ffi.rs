//! The few calls of CPython's C API that the hot paths make themselves, wrapped so that the rest is safe code.

use std::ffi::{CStr, c_int};
use std::ptr;

use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi as c;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::WithMessage;

unsafe extern "C" {
    /// Exported by every CPython for the extensions that Cython writes.
    fn _PyDict_NewPresized(entries: c::Py_ssize_t) -> *mut c::PyObject;

    /// How many bits the absolute value of an int takes. A `size_t`, or an `int64_t` from CPython 3.14 on.
    fn _PyLong_NumBits(int: *mut c::PyObject) -> usize;

    /// What `PyDict_Next` calls, which has a call less to make.
    #[cfg(not(Py_3_13))]
    fn _PyDict_Next(
        dict: *mut c::PyObject,
        at: *mut c::Py_ssize_t,
        key: *mut *mut c::PyObject,
        value: *mut *mut c::PyObject,
        hash: *mut c::Py_hash_t,
    ) -> c_int;
}

/// Takes over a new reference that a call of the C API returned, or the exception that it raised.
///
/// # Safety
/// `object` is a new reference, or null with an exception set.
#[inline]
pub(super) unsafe fn owned(py: Python<'_>, object: *mut c::PyObject) -> PyResult<Bound<'_, PyAny>> {
    // SAFETY: exactly the contract of this function.
    unsafe { Bound::from_owned_ptr_or_err(py, object) }
}

/// An int.
#[inline]
pub(super) fn int(py: Python<'_>, value: i64) -> PyResult<Bound<'_, PyAny>> {
    // SAFETY: returns a new reference, or null with an exception set.
    unsafe { owned(py, c::PyLong_FromLongLong(value)) }
}

/// An int.
#[inline]
pub(super) fn uint(py: Python<'_>, value: u64) -> PyResult<Bound<'_, PyAny>> {
    match i64::try_from(value) {
        Ok(value) => int(py, value),
        // SAFETY: returns a new reference, or null with an exception set.
        Err(_) => unsafe { owned(py, c::PyLong_FromUnsignedLongLong(value)) },
    }
}

/// A float.
#[inline]
pub(super) fn float(py: Python<'_>, value: f64) -> PyResult<Bound<'_, PyAny>> {
    // SAFETY: returns a new reference, or null with an exception set.
    unsafe { owned(py, c::PyFloat_FromDouble(value)) }
}

/// A bytes.
#[inline]
pub(super) fn bytes<'py>(py: Python<'py>, value: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: copies `len` bytes from the pointer; returns a new reference, or null with an exception set.
    unsafe { owned(py, c::PyBytes_FromStringAndSize(value.as_ptr().cast(), value.len().cast_signed())) }
}

/// A str of ASCII characters; `value` holds nothing else.
#[inline(always)]
pub(super) fn ascii<'py>(py: Python<'py>, value: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    debug_assert!(value.is_ascii());
    if value.len() < 2 {
        return utf8(py, value, None); // CPython keeps one object for each of these
    }
    // SAFETY: a new str for that many characters below 0x80 has that many bytes right behind its header;
    // nobody else has seen it yet, and the source is ASCII.
    unsafe {
        let object = c::PyUnicode_New(value.len().cast_signed(), 127);
        if !object.is_null() {
            let characters = object.cast::<c::PyASCIIObject>().add(1).cast::<u8>();
            copy_short(value, characters);
        }
        owned(py, object)
    }
}

/// A str decoded from UTF-8; invalid bytes are for `errors` to handle ("strict" when `None`).
#[inline]
pub(super) fn utf8<'py>(py: Python<'py>, value: &[u8], errors: Option<&CStr>) -> PyResult<Bound<'py, PyAny>> {
    let errors = errors.map_or(ptr::null(), CStr::as_ptr);
    // SAFETY: reads `len` bytes from the pointer; `errors` is null or a C string that lives through the call.
    unsafe { owned(py, c::PyUnicode_DecodeUTF8(value.as_ptr().cast(), value.len().cast_signed(), errors)) }
}

/// The UTF-8 of an exact str of ASCII characters in CPython's usual form.
///
/// # Safety
/// `text` is a live object that is exactly a str; the result is valid for as long as it lives.
#[inline]
pub(super) unsafe fn ascii_of<'a>(text: *mut c::PyObject) -> Option<&'a [u8]> {
    #[cfg(not(Py_3_14))]
    // SAFETY: reads the header of a str. The compact form has its characters right behind the header.
    unsafe {
        if c::PyUnicode_IS_COMPACT_ASCII(text) == 0 {
            return None;
        }
        let header = text.cast::<c::PyASCIIObject>();
        let characters = header.add(1).cast::<u8>();
        Some(std::slice::from_raw_parts(characters, (*header).length.cast_unsigned()))
    }
    #[cfg(Py_3_14)]
    {
        let _ = text; // the header's layout is no longer known
        None
    }
}

/// The UTF-8 of a str, as CPython keeps it beside the characters: valid for as long as the object.
#[inline]
pub(super) fn utf8_of<'a>(text: &'a Bound<'_, PyAny>) -> PyResult<&'a [u8]> {
    let mut length = 0;
    // SAFETY: takes any object (a TypeError for all but str); the bytes it returns live as long as the object,
    // which the caller's borrow keeps alive.
    unsafe {
        let start = c::PyUnicode_AsUTF8AndSize(text.as_ptr(), &raw mut length);
        if start.is_null() {
            return Err(PyErr::fetch(text.py()));
        }
        Ok(std::slice::from_raw_parts(start.cast(), length.cast_unsigned()))
    }
}

/// How many characters an exact str has.
#[inline]
pub(super) fn characters(text: &Bound<'_, PyAny>) -> usize {
    // SAFETY: takes any object; of a str the length is what its header says.
    unsafe { c::PyUnicode_GetLength(text.as_ptr()).cast_unsigned() }
}

/// Whether `object` is of exactly this type.
#[inline]
pub(super) fn is_exactly(object: &Bound<'_, PyAny>, kind: *mut c::PyTypeObject) -> bool {
    // SAFETY: only reads the type of a live object.
    unsafe { c::Py_TYPE(object.as_ptr()) == kind }
}

/// An empty dict with room for `entries`.
#[inline]
pub(super) fn dict(py: Python<'_>, entries: usize) -> PyResult<Bound<'_, PyDict>> {
    // Room for 11 to 29 would not fit in what CPython's own allocator serves, and costs more than it saves.
    let presized = matches!(entries, 6..=10 | 30..);
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
pub(super) fn set_item(
    dict: &Bound<'_, PyDict>,
    key: &Bound<'_, PyAny>,
    value: &Bound<'_, PyAny>,
) -> PyResult<()> {
    // SAFETY: three live objects, the first of them a dict.
    let result = unsafe { c::PyDict_SetItem(dict.as_ptr(), key.as_ptr(), value.as_ptr()) };
    if result < 0 { Err(PyErr::fetch(dict.py())) } else { Ok(()) }
}

/// As `PyDict_Next`.
///
/// # Safety
/// The lock is held; an exact dict, and places for what is found.
#[inline(always)]
pub(super) unsafe fn dict_next(
    dict: *mut c::PyObject,
    at: *mut c::Py_ssize_t,
    key: *mut *mut c::PyObject,
    value: *mut *mut c::PyObject,
) -> c_int {
    // SAFETY: exactly the contract of this function; nobody needs to be told the hash.
    #[cfg(not(Py_3_13))]
    unsafe {
        _PyDict_Next(dict, at, key, value, ptr::null_mut())
    }
    // SAFETY: exactly the contract of this function.
    #[cfg(Py_3_13)]
    unsafe {
        c::PyDict_Next(dict, at, key, value)
    }
}

/// A list or tuple while it is filled from the front.
pub(super) struct Sequence {
    object: Py<PyAny>,
    filled: usize,
    length: usize,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    List,
    Tuple,
    /// A list that grows with its items, because more were declared than the input can hold yet.
    Growing {
        /// It becomes a tuple in the end.
        tuple: bool,
    },
}

impl Sequence {
    /// An empty list, or tuple, for `length` items, of which the input can hold `room` at most.
    #[inline]
    pub(super) fn new(py: Python<'_>, length: usize, room: usize, list: bool) -> PyResult<Self> {
        let kind = match list {
            _ if length > room => Kind::Growing { tuple: !list },
            true => Kind::List,
            false => Kind::Tuple,
        };
        // SAFETY: both return a new reference, or null with an exception set.
        let object = unsafe {
            owned(
                py,
                match kind {
                    Kind::List => c::PyList_New(length.cast_signed()),
                    Kind::Tuple => c::PyTuple_New(length.cast_signed()),
                    Kind::Growing { .. } => c::PyList_New(0),
                },
            )?
        };
        Ok(Self { object: object.unbind(), filled: 0, length, kind })
    }

    /// Puts the next item in; whether it was the last one.
    #[inline]
    pub(super) fn push(&mut self, item: Bound<'_, PyAny>) -> PyResult<bool> {
        let (object, place) = (self.object.as_ptr(), self.filled.cast_signed());
        // SAFETY: `kind` says what the object is. The place is checked to exist, and is empty: only this method
        // fills it. The reference goes over to the list or tuple; `PyList_Append` takes its own.
        unsafe {
            match self.kind {
                Kind::List if c::PyList_GET_SIZE(object) > place => {
                    c::PyList_SET_ITEM(object, place, item.into_ptr());
                }
                Kind::Tuple if c::PyTuple_GET_SIZE(object) > place => {
                    c::PyTuple_SET_ITEM(object, place, item.into_ptr());
                }
                Kind::Growing { .. } => {
                    if c::PyList_Append(object, item.as_ptr()) < 0 {
                        return Err(PyErr::fetch(item.py()));
                    }
                }
                // Somebody found the unfinished list, through the garbage collector, while a hook ran.
                _ => return Err(PyRuntimeError::with_message("the list changed size while it was filled")),
            }
        }
        self.filled += 1;
        Ok(self.filled == self.length)
    }

    /// The items that are still missing.
    pub(super) const fn missing(&self) -> usize {
        self.length - self.filled
    }

    /// The unfinished object.
    pub(super) const fn object(&self) -> &Py<PyAny> {
        &self.object
    }

    /// The object, once all items are in.
    #[inline]
    pub(super) fn finish(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        debug_assert_eq!(self.filled, self.length);
        let object = self.object.into_bound(py);
        match self.kind {
            // SAFETY: a list; returns a new reference, or null with an exception set.
            Kind::Growing { tuple: true } => unsafe { owned(py, c::PyList_AsTuple(object.as_ptr())) },
            _ => Ok(object),
        }
    }
}

/// Copies a few bytes, in words that may overlap: a call of `memcpy` would cost more than the copy.
///
/// # Safety
/// There is room for the bytes at `to`, and the two places do not overlap.
#[inline(always)]
pub(super) unsafe fn copy_short(from: &[u8], to: *mut u8) {
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
/// `length` bytes can be read at `from` and written at `to`, and a word is not longer.
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
pub(super) enum Wide {
    /// With a sign.
    Signed(i64),
    /// Too large for that.
    Unsigned(u64),
    /// Too large, or too small, for either.
    Neither,
}

/// The value of an int; `object` is one, or of a subclass. For one that is too wide no exception is made: before CPython 3.12
/// that may collect garbage, whose finalizers may free what the caller has only borrowed.
#[inline]
pub(super) fn int_value(object: &Bound<'_, PyAny>) -> PyResult<Wide> {
    let mut overflow: c_int = 0;
    // SAFETY: takes any object; reports what does not fit through `overflow`, other errors as an exception.
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
fn wide_value(object: &Bound<'_, PyAny>) -> Wide {
    // SAFETY: an int, so that neither call runs code of the program or raises; 64 bits are all that the second one gives.
    unsafe {
        if _PyLong_NumBits(object.as_ptr()) > u64::BITS as usize {
            return Wide::Neither;
        }
        Wide::Unsigned(c::PyLong_AsUnsignedLongLongMask(object.as_ptr()))
    }
}

/// The value of a float; `object` is one, or of a subclass.
#[inline]
pub(super) fn float_value(object: &Bound<'_, PyAny>) -> f64 {
    // SAFETY: reads the value of a float; the caller checked the type.
    unsafe { c::PyFloat_AS_DOUBLE(object.as_ptr()) }
}

/// Whether a bool is `True`.
#[inline]
pub(super) fn is_true(object: &Bound<'_, PyAny>) -> bool {
    // SAFETY: compares a pointer with that of an object that lives for ever.
    unsafe { object.as_ptr() == c::Py_True() }
}

/// The length of a list.
#[inline]
pub(super) fn list_length(list: &Bound<'_, PyAny>) -> usize {
    // SAFETY: the caller checked the type.
    unsafe { c::PyList_GET_SIZE(list.as_ptr()).cast_unsigned() }
}
