//! A message in native memory, for a `Packer` that keeps it.

use offlock_core::msgpack::write::Sink;
use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;

use crate::error::WithMessage;
use crate::large::Large;

/// A growing message in native memory.
pub(super) struct Buffer {
    bytes: Large<Vec<u8>>,
    /// Memory ran out: everything written since is missing.
    failed: bool,
}

impl Default for Buffer {
    fn default() -> Self {
        Self { bytes: Large::new(Vec::new()), failed: false }
    }
}

impl Buffer {
    /// An empty message with capacity for `bytes` bytes. `MemoryError` when there is not that much memory.
    pub(super) fn with_capacity(room: usize) -> PyResult<Self> {
        let mut buffer = Self::default();
        buffer.reserve(room);
        buffer.check()?;
        Ok(buffer)
    }

    /// The bytes written so far.
    pub(super) fn as_slice(&self) -> &[u8] {
        &self.bytes
    }

    /// Discards the bytes written so far.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.failed = false;
    }

    /// `MemoryError` unless everything was written.
    pub(super) fn check(&self) -> PyResult<()> {
        if self.failed { Err(PyMemoryError::with_message("no memory for the message")) } else { Ok(()) }
    }

    #[cold]
    fn reserve(&mut self, more: usize) {
        self.failed |= self.bytes.try_reserve(more).is_err();
    }
}

impl Sink for Buffer {
    fn expect(&mut self, bytes: usize) {
        self.reserve(bytes);
    }

    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        if self.bytes.capacity() - self.bytes.len() < bytes.len() {
            self.reserve(bytes.len());
        }
        if !self.failed {
            self.bytes.extend_from_slice(bytes);
        }
    }
}
