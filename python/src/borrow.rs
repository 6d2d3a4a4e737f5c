//! Immutable views of Python objects that stay valid while other threads run.
//!
//! A `str` needs nothing from here: `PyStringMethods::to_str` gives its UTF-8, which CPython keeps beside the
//! characters (for ASCII it *is* the characters) for as long as the object lives, and the caller's
//! reference keeps it alive. Lone surrogates have no UTF-8: they raise `UnicodeEncodeError`.
//!
//! ```ignore
//! let input = Bytes::borrow(&object)?;
//! let bytes = input.as_slice();
//! Region::new(&DEFLATE, bytes.len()).run(py, |task| deflate::compress(bytes, task))
//! ```

use offlock_core::memory;
use pyo3::buffer::{Element, PyBuffer, PyUntypedBuffer};
use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView};

use crate::errors::no_memory;

/// The bytes of an object that has the buffer protocol: `bytes`, `bytearray`, `memoryview`, `mmap`, arrays.
///
/// What cannot change is borrowed: a `bytes`, and a `memoryview` of one. All else is copied, because an
/// export keeps its memory from moving but not from being written to by another thread while we read it.
pub(crate) enum Bytes {
    /// Held for as long as this lives; the exporter is a `bytes`.
    Immutable(PyUntypedBuffer),
    /// A copy taken under the lock.
    Snapshot(Vec<u8>),
}

impl Bytes {
    /// A view of `object`. `TypeError` when it is not bytes-like, `BufferError` when its memory has gaps, `MemoryError` when
    /// there is none for a copy.
    pub(crate) fn borrow(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let buffer = PyUntypedBuffer::get(object)?;
        if !buffer.is_c_contiguous() {
            return Err(PyBufferError::new_err("underlying buffer is not C-contiguous"));
        }
        if is_immutable(object)? {
            return Ok(Self::Immutable(buffer));
        }
        memory::copied(contents(&buffer)).map(Self::Snapshot).map_err(no_memory)
    }

    /// The bytes.
    pub(crate) fn as_slice(&self) -> &[u8] {
        match self {
            Self::Immutable(buffer) => contents(buffer),
            Self::Snapshot(copy) => copy,
        }
    }
}

/// The numbers in a one-dimensional buffer of exactly this type, such as a numpy array; `None` when `object` is none.
pub(crate) fn numbers<T: Element>(object: &Bound<'_, PyAny>) -> Option<PyResult<Vec<T>>> {
    let buffer = PyBuffer::<T>::get(object).ok()?;
    // Of numbers of four and eight bytes, pyo3 takes those in the other byte order, too.
    let foreign = if cfg!(target_endian = "little") { [b'>', b'!'] } else { [b'<'; 2] };
    let is_native = !buffer.format().to_bytes().first().is_some_and(|order| foreign.contains(order));
    (is_native && buffer.dimensions() == 1).then(|| buffer.to_vec(object.py()))
}

fn is_immutable(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    if object.is_instance_of::<PyMemoryView>() {
        return Ok(object.getattr("obj")?.is_exact_instance_of::<PyBytes>());
    }
    Ok(object.is_exact_instance_of::<PyBytes>())
}

/// The exported memory. Only for exporters whose memory nobody writes to while the slice lives.
fn contents(buffer: &PyUntypedBuffer) -> &[u8] {
    if buffer.len_bytes() == 0 {
        return &[]; // the pointer of an empty export may be null
    }
    // SAFETY: the export is C-contiguous (checked in `borrow`), so `len_bytes` bytes follow the pointer, and it is
    // held by `buffer`, which outlives the slice. Nobody writes meanwhile: the exporter is a `bytes`, or the
    // slice is copied at once under the lock.
    unsafe { std::slice::from_raw_parts(buffer.buf_ptr().cast(), buffer.len_bytes()) }
}
