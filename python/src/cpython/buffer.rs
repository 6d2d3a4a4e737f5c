//! Memory that objects export, and memory of this extension that is exported.

use std::ffi::c_int;
use std::ptr::NonNull;

use pyo3::buffer::{Element, PyUntypedBuffer};
use pyo3::ffi;
use pyo3::prelude::*;

/// The exported memory.
///
/// # Safety
///
/// The export is C-contiguous, and no thread writes to its memory while the slice lives: the exporter is a
/// `bytes`, or the slice is last used before the lock is released.
pub(crate) unsafe fn contents(buffer: &PyUntypedBuffer) -> &[u8] {
    if buffer.len_bytes() == 0 {
        return &[]; // the pointer of an empty export may be null
    }
    // SAFETY: an export's C-contiguous memory has this many bytes, and `buffer` holds it.
    unsafe { std::slice::from_raw_parts(buffer.buf_ptr().cast(), buffer.len_bytes()) }
}

/// Copies the bytes from `at` on, if the C-contiguous export has enough.
pub(crate) fn copy(_: Python<'_>, buffer: &PyUntypedBuffer, at: usize, to: &mut [u8]) {
    assert!(buffer.is_c_contiguous());
    if at + to.len() <= buffer.len_bytes() {
        // SAFETY: the export is C-contiguous and is held, so that `len_bytes` bytes follow its pointer. This
        // thread is attached.
        unsafe {
            let from = buffer.buf_ptr().cast::<u8>().add(at);
            std::ptr::copy_nonoverlapping(from, to.as_mut_ptr(), to.len());
        }
    }
}

/// The number at `index` of an export.
///
/// # Safety
///
/// The export, which is held, has more than `index` numbers.
#[inline(always)]
pub(crate) unsafe fn number<T: Element>(_: Python<'_>, memory: NonNull<[T]>, index: usize) -> T {
    // SAFETY: the numbers of an export are aligned and do not move. With the lock held, no thread writes to
    // the one that is read.
    unsafe { memory.cast::<T>().add(index).read() }
}

/// Exports `bytes`, read-only, as memory of `owner`.
///
/// # Safety
///
/// `view` is for CPython to fill. The bytes neither move nor change while `owner`, to which the view takes a
/// reference, has exports.
pub(crate) unsafe fn export(
    owner: &Bound<'_, PyAny>,
    bytes: &[u8],
    view: *mut ffi::Py_buffer,
    flags: c_int,
) -> PyResult<()> {
    // SAFETY: the contract of this function.
    unsafe { fill(owner, std::ptr::from_ref(bytes).cast_mut(), view, flags, 1) }
}

/// Exports `bytes`, which may be written to, as memory of `owner`.
///
/// # Safety
///
/// `view` is for CPython to fill. The bytes do not move while `owner`, to which the view takes a reference, has exports, and
/// nothing in Rust reads or writes them.
pub(crate) unsafe fn export_writable(
    owner: &Bound<'_, PyAny>,
    bytes: *mut [u8],
    view: *mut ffi::Py_buffer,
    flags: c_int,
) -> PyResult<()> {
    // SAFETY: the contract of this function.
    unsafe { fill(owner, bytes, view, flags, 0) }
}

/// # Safety
///
/// As [`export`] and [`export_writable`].
unsafe fn fill(
    owner: &Bound<'_, PyAny>,
    bytes: *mut [u8],
    view: *mut ffi::Py_buffer,
    flags: c_int,
    read_only: c_int,
) -> PyResult<()> {
    let (start, length) = (bytes.cast(), bytes.len().cast_signed());
    // SAFETY: the contract of this function.
    let done = unsafe { ffi::PyBuffer_FillInfo(view, owner.as_ptr(), start, length, read_only, flags) };
    if done == 0 { Ok(()) } else { Err(PyErr::fetch(owner.py())) }
}
