//! Memory that objects export, and memory of ours that is exported.

use std::ffi::c_int;
use std::ptr::NonNull;

use pyo3::buffer::{Element, PyUntypedBuffer};
use pyo3::ffi;
use pyo3::prelude::*;

/// The exported memory.
///
/// # Safety
///
/// The export is C-contiguous, and nobody writes to its memory while the slice lives: the exporter is a `bytes`, or the slice
/// is used up before the lock is given away.
pub(crate) unsafe fn contents(buffer: &PyUntypedBuffer) -> &[u8] {
    if buffer.len_bytes() == 0 {
        return &[]; // the pointer of an empty export may be null
    }
    // SAFETY: so many bytes follow the pointer of a C-contiguous export, which `buffer` holds.
    unsafe { std::slice::from_raw_parts(buffer.buf_ptr().cast(), buffer.len_bytes()) }
}

/// Copies the bytes from `at` on, if the C-contiguous export has so many.
pub(crate) fn copy(_: Python<'_>, buffer: &PyUntypedBuffer, at: usize, to: &mut [u8]) {
    assert!(buffer.is_c_contiguous());
    if at + to.len() <= buffer.len_bytes() {
        // SAFETY: the export is C-contiguous and is held, so that `len_bytes` bytes follow its pointer. This thread is attached.
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
/// The export, which is held, has more numbers than that.
#[inline(always)]
pub(crate) unsafe fn number<T: Element>(_: Python<'_>, memory: NonNull<[T]>, index: usize) -> T {
    // SAFETY: the numbers of an export are aligned and do not move. With the lock held, nobody writes to the one that is read.
    unsafe { memory.cast::<T>().add(index).read() }
}

/// Exports `bytes`, read-only, as memory of `owner`.
///
/// # Safety
///
/// `view` is CPython's to be filled. The bytes neither move nor change while `owner`, to which the view takes a reference, has
/// exports.
pub(crate) unsafe fn export(
    owner: &Bound<'_, PyAny>,
    bytes: &[u8],
    view: *mut ffi::Py_buffer,
    flags: c_int,
) -> PyResult<()> {
    let (start, length) = (bytes.as_ptr().cast_mut().cast(), bytes.len().cast_signed());
    // SAFETY: the contract of this function.
    let done = unsafe { ffi::PyBuffer_FillInfo(view, owner.as_ptr(), start, length, 1, flags) };
    if done == 0 { Ok(()) } else { Err(PyErr::fetch(owner.py())) }
}
