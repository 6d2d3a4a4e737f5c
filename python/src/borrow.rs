//! Immutable views of Python objects that stay valid while other threads run.
//!
//! A `str` does not need this module: `PyStringMethods::to_str` gives its UTF-8, which CPython keeps beside
//! the characters (for ASCII it *is* the characters) for as long as the object lives, and the caller's
//! reference keeps the object alive. Lone surrogates have no UTF-8: they raise `UnicodeEncodeError`.
//!
//! ```ignore
//! let input = Bytes::borrow(&object)?;
//! let bytes = input.as_slice();
//! Region::new(&DEFLATE, bytes.len()).run(py, |task| deflate::compress(bytes, task))
//! ```

use std::ptr::NonNull;

use pyo3::buffer::{Element, PyBuffer, PyUntypedBuffer};
use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView};

use crate::cpython::buffer;
use crate::error::WithMessage;
use crate::gil_yield::Yielder;
use crate::large::{Large, reserve};
use crate::objects::name;

/// The bytes of an object that has the buffer protocol: `bytes`, `bytearray`, `memoryview`, `mmap`, arrays.
///
/// Memory that cannot change is borrowed: a `bytes`, and a `memoryview` of one. Everything else is copied,
/// because an export keeps its memory from moving but not from being written to by another thread during the
/// read. Large memory is copied a piece at a time: if another thread writes meanwhile, some pieces are older
/// than others, as in any unsynchronized read.
pub(crate) enum Bytes {
    /// References memory that stays valid as long as this lives; the exporter is a `bytes`.
    Immutable(PyUntypedBuffer),
    /// A copy taken under the lock.
    Snapshot(Large<Vec<u8>>),
}

/// How many bytes are copied at once.
const PIECE: usize = 256 << 10;

impl Bytes {
    /// A view of `object`. `TypeError` when it is not bytes-like, `BufferError` when its memory has gaps.
    pub(crate) fn borrow(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let buffer = PyUntypedBuffer::get(object)?;
        if !buffer.is_c_contiguous() {
            return Err(PyBufferError::with_message("underlying buffer is not C-contiguous"));
        }
        if is_immutable(object)? {
            return Ok(Self::Immutable(buffer));
        }
        snapshot(object.py(), &buffer).map(Self::Snapshot)
    }

    /// The bytes.
    pub(crate) fn as_slice(&self) -> &[u8] {
        match self {
            // SAFETY: C-contiguous, as checked in `borrow`, and the exporter is a `bytes`.
            Self::Immutable(buffer) => unsafe { buffer::contents(buffer) },
            Self::Snapshot(copy) => copy,
        }
    }
}

/// A copy, taken with the lock held; other threads can hold the lock between two pieces.
fn snapshot(py: Python<'_>, buffer: &PyUntypedBuffer) -> PyResult<Large<Vec<u8>>> {
    let mut copy = Large::new(Vec::new());
    reserve(&mut copy, buffer.len_bytes())?;
    let mut yielder = Yielder::yielding();
    while copy.len() < buffer.len_bytes() {
        let start = copy.len();
        // The slice is made anew for each piece: no thread writes while it lives.
        // SAFETY: C-contiguous, as checked in `borrow`.
        let rest = &unsafe { buffer::contents(buffer) }[start..];
        copy.extend_from_slice(&rest[..rest.len().min(PIECE)]);
        yielder.tick_bytes(py, copy.len() - start)?;
    }
    Ok(copy)
}

/// The results of `convert` for each number and its index, in a one-dimensional buffer of exactly this type,
/// such as a numpy array; `None` for any other object.
pub(crate) fn numbers<T: Element, U>(
    object: &Bound<'_, PyAny>,
    mut convert: impl FnMut(usize, T) -> PyResult<U>,
) -> Option<PyResult<Vec<U>>> {
    let buffer = PyBuffer::<T>::get(object).ok()?;
    // For numbers of four and eight bytes, pyo3 also accepts the other byte order.
    let foreign = if cfg!(target_endian = "little") { [b'>', b'!'] } else { [b'<'; 2] };
    let is_native = !buffer.format().to_bytes().first().is_some_and(|order| foreign.contains(order));
    if !is_native || buffer.dimensions() != 1 {
        return None;
    }
    let py = object.py();
    Some(match buffer.as_slice_ptr() {
        Some(memory) => in_pieces(py, memory, convert),
        None => buffer.to_vec(py).and_then(|all| {
            all.into_iter().enumerate().map(|(index, number)| convert(index, number)).collect()
        }),
    })
}

/// Converts the numbers of an export with the lock held; other threads can hold the lock between two pieces.
fn in_pieces<T: Element, U>(
    py: Python<'_>,
    memory: NonNull<[T]>,
    mut convert: impl FnMut(usize, T) -> PyResult<U>,
) -> PyResult<Vec<U>> {
    let (mut yielder, mut numbers) = (Yielder::yielding(), Vec::new());
    reserve(&mut numbers, memory.len())?;
    for start in (0..memory.len()).step_by(PIECE / size_of::<T>()) {
        let piece = start..memory.len().min(start + PIECE / size_of::<T>());
        let work = piece.len() / 8;
        for index in piece {
            // SAFETY: `index` is within the export, which is held.
            numbers.push(convert(index, unsafe { buffer::number(py, memory, index) })?);
        }
        yielder.tick_many(py, work)?;
    }
    Ok(numbers)
}

fn is_immutable(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    if object.is_instance_of::<PyMemoryView>() {
        return Ok(object.getattr(name!("obj"))?.is_exact_instance_of::<PyBytes>());
    }
    Ok(object.is_exact_instance_of::<PyBytes>())
}
