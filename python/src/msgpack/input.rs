//! The bytes of a message, from any object that holds them.

use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView};

use super::long_strings;
use crate::borrow::Bytes;
use crate::error::WithMessage;
use crate::objects::name;
use crate::region::Release;

/// Bytes that do not change while they are read.
pub(super) enum Input<'py> {
    /// A bytes, borrowed without a copy.
    Bytes(Bound<'py, PyBytes>),
    Other(Bytes),
}

impl<'py> Input<'py> {
    /// The bytes of `object`. `TypeError` when it is not bytes-like, `BufferError` when its items are not
    /// bytes.
    #[inline]
    pub(super) fn borrow(object: &Bound<'py, PyAny>) -> PyResult<Self> {
        match object.cast_exact::<PyBytes>() {
            Ok(bytes) => Ok(Self::Bytes(bytes.clone())),
            Err(_) => Self::borrow_other(object),
        }
    }

    #[cold]
    fn borrow_other(object: &Bound<'py, PyAny>) -> PyResult<Self> {
        let buffer = PyUntypedBuffer::get(object)?;
        if buffer.item_size() != 1 {
            return Err(PyBufferError::with_message("cannot unpack from multi-byte object"));
        }
        if buffer.is_c_contiguous() {
            return Bytes::borrow(object).map(Self::Other);
        }
        drop(buffer);
        let copy = PyMemoryView::from(object)?.call_method0(name!("tobytes"))?;
        Ok(Self::Bytes(copy.cast_into()?))
    }

    /// The bytes.
    #[inline]
    pub(super) fn as_slice(&self) -> &[u8] {
        match self {
            Self::Bytes(bytes) => bytes.as_bytes(),
            Self::Other(bytes) => bytes.as_slice(),
        }
    }

    /// The bytes as an object that can be kept.
    pub(super) fn into_bytes(self, py: Python<'py>, release: Release) -> PyResult<Bound<'py, PyBytes>> {
        Ok(match self {
            Self::Bytes(bytes) => bytes,
            Self::Other(bytes) => long_strings::bytes(py, bytes.as_slice(), release)?,
        })
    }
}
