//! `bytes` and `str` objects that nobody has seen yet.

use std::mem::MaybeUninit;

use offlock_core::{Stopped, memory, spare_capacity};
use pyo3::exceptions::PyOverflowError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::bulk::{Bulk, LARGE, Weigh};
use crate::errors::{WithMessage, no_memory};
use crate::region::{Operation, Region};

/// Large results, and what is kept of large inputs, are copied without the lock.
static COPY: Operation = Operation { name: "bytes.copy", break_even: LARGE };

/// Bytes between two looks at whether to stop.
const STRETCH: usize = 1 << 20;

/// A `bytes` of `content`, which is dropped. What is large is copied, and freed, without the lock.
pub(crate) fn from_memory<C>(py: Python<'_>, content: C) -> PyResult<Bound<'_, PyBytes>>
where
    C: std::ops::Deref<Target = [u8]> + Weigh + Send,
{
    copied(py, &Bulk::new(content))
}

/// A `bytes` of a part of something larger.
pub(crate) fn copied<'py>(py: Python<'py>, content: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    if content.len() >= LARGE {
        return joined(py, &[content]);
    }
    // SAFETY: the lock is held; the pointer and the length are those of a slice. Returns a new `bytes`, or null with an
    // exception set.
    unsafe {
        let object = ffi::PyBytes_FromStringAndSize(content.as_ptr().cast(), content.len().cast_signed());
        Ok(Bound::from_owned_ptr_or_err(py, object)?.cast_into_unchecked())
    }
}

/// A `bytes` of all `parts`, one behind the other.
pub(crate) fn joined<'py>(py: Python<'py>, parts: &[&[u8]]) -> PyResult<Bound<'py, PyBytes>> {
    let length = parts.iter().try_fold(0_usize, |sum, part| sum.checked_add(part.len()));
    let length = length.ok_or_else(too_large)?;
    if length < LARGE {
        return copied(py, &memory::joined(parts).map_err(no_memory)?);
    }
    let size = ffi::Py_ssize_t::try_from(length).map_err(|_| too_large())?;
    // SAFETY: the lock is held; without a source the content is left as it is. Nobody else knows the object yet, which
    // has so many bytes.
    let (object, memory) = unsafe {
        let object = ffi::PyBytes_FromStringAndSize(std::ptr::null(), size);
        let object = Bound::from_owned_ptr_or_err(py, object)?.cast_into_unchecked::<PyBytes>();
        let start = ffi::PyBytes_AsString(object.as_ptr()).cast::<MaybeUninit<u8>>();
        (object, std::slice::from_raw_parts_mut(start, length))
    };
    fill(py, memory, parts)?;
    Ok(object)
}

pub(crate) fn too_large() -> PyErr {
    PyOverflowError::with_message("result too large")
}

/// Copies `parts` to memory that has as many bytes.
pub(crate) fn fill(py: Python<'_>, mut memory: &mut [MaybeUninit<u8>], parts: &[&[u8]]) -> PyResult<()> {
    Region::new(&COPY, memory.len()).run(py, |task| {
        for stretch in parts.iter().flat_map(|part| part.chunks(STRETCH)) {
            task.check()?;
            let (here, rest) = std::mem::take(&mut memory).split_at_mut(stretch.len());
            // SAFETY: as many bytes, of which nobody else knows.
            unsafe {
                here.as_mut_ptr().cast::<u8>().copy_from_nonoverlapping(stretch.as_ptr(), stretch.len())
            };
            memory = rest;
        }
        Ok::<_, Stopped>(())
    })
}

unsafe extern "C" {
    /// Part of the C interface and its stable ABI, underscore and all; missing in `pyo3::ffi`.
    fn _PyBytes_Resize(bytes: *mut *mut ffi::PyObject, size: ffi::Py_ssize_t) -> std::ffi::c_int;
}

/// A `str` of these characters. `MemoryError` when there is no memory for it.
pub(crate) fn text<'py>(py: Python<'py>, content: &str) -> PyResult<Bound<'py, PyString>> {
    // SAFETY: the lock is held; the pointer and the length are those of a slice, which is UTF-8. Returns a new `str`, or null
    // with an exception set.
    unsafe {
        let bytes = content.as_bytes();
        let object =
            ffi::PyUnicode_DecodeUTF8(bytes.as_ptr().cast(), bytes.len().cast_signed(), std::ptr::null());
        Ok(Bound::from_owned_ptr_or_err(py, object)?.cast_into_unchecked())
    }
}

/// Changes the room for the content, of which as much is kept as fits. Null, with an exception set, when there is no memory.
///
/// # Safety
/// The lock is held, and the object is a `bytes` with a single reference, which is given up.
pub(crate) unsafe fn resize(mut object: *mut ffi::PyObject, room: usize) -> *mut ffi::PyObject {
    // SAFETY: the contract of this function; on failure the object is gone and the pointer null.
    unsafe { _PyBytes_Resize(&raw mut object, room.cast_signed()) };
    object
}

/// The finished object: the first `length` of the `room` bytes that there is room for.
///
/// # Safety
/// As for [`resize`]; those bytes were written.
pub(crate) unsafe fn finish(
    py: Python<'_>,
    mut object: *mut ffi::PyObject,
    length: usize,
    room: usize,
) -> PyResult<Bound<'_, PyAny>> {
    // SAFETY: the contract of this function. CPython puts a zero behind the content, for which it has made room.
    unsafe {
        if spare_capacity::is_kept(length, room) {
            ffi::PyBytes_AS_STRING(object).cast_mut().add(length).write(0);
            (*object.cast::<ffi::PyVarObject>()).ob_size = length.cast_signed();
        } else {
            object = resize(object, length);
        }
        Bound::from_owned_ptr_or_err(py, object)
    }
}
