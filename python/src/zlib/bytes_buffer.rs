//! A `bytes` object that is made before its size is known.

use std::mem::MaybeUninit;

use offlock_core::deflate::Bytes as Rest;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::bytes;
use crate::cpython::new_bytes::{NewBytes, too_large};
use crate::large::Large;

/// Memory inside a new `bytes`, for a result whose size is not known yet.
pub(super) struct BytesBuffer<'py> {
    py: Python<'py>,
    new: NewBytes<'py>,
}

impl<'py> BytesBuffer<'py> {
    /// `MemoryError` when there is not that much contiguous memory.
    pub(super) fn new(py: Python<'py>, size: usize) -> PyResult<Self> {
        NewBytes::new(py, size).map(|new| Self { py, new })
    }

    /// The memory; empty where the size is 0 or 1.
    pub(super) fn memory(&mut self) -> &mut [MaybeUninit<u8>] {
        self.new.memory()
    }

    /// The object, cut to its first `used` bytes, all of which must be written, followed by `rest`.
    pub(super) fn finish(mut self, used: usize, rest: Rest) -> PyResult<Bound<'py, PyBytes>> {
        let rest = Large::new(rest);
        let mut length = used;
        if !rest.is_empty() {
            length = used.checked_add(rest.len()).ok_or_else(too_large)?;
            if self.new.size() < 2 {
                return bytes::copied(self.py, &rest);
            }
            // Freeing large memory would take long with the lock held: the object grows instead.
            self.new.resize(length)?;
            bytes::fill(self.py, &mut self.memory()[used..], &[&rest])?;
        }
        // SAFETY: the caller has written `used` bytes, and the others are those of `rest`.
        unsafe { self.new.finish(length) }
    }
}
