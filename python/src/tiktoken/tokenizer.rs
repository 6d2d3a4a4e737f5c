//! The encodings behind Python's `Encoding`, and the vocabularies that programs pass.

use std::ops::Deref;
use std::sync::Arc;

use offlock_core::tokens::{Encoding, TokenId};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::cpython::late_init::Once;
use crate::error::WithMessage;
use crate::gil_yield::Yielder;
use crate::large::{Large, reserve};

/// Turns text into tokens and back. Initialized once, by the `Encoding` that inherits from it; immutable from
/// then on.
#[pyclass(frozen, subclass, module = "offlock._offlock")]
#[derive(Default)]
pub(crate) struct Tokenizer(pub(super) Once<AnyEncoding>);

impl Tokenizer {
    pub(super) fn fill(&self, source: Arc<AnyEncoding>) -> PyResult<()> {
        self.0.set(source).map_err(|_| PyRuntimeError::with_message("this Encoding is initialized already"))
    }

    pub(super) fn encoding(&self) -> PyResult<&Encoding> {
        self.0.get().map(AnyEncoding::encoding).ok_or_else(uninitialized)
    }
}

impl Tokenizer {
    /// The encoding, for an object that outlives this one.
    pub(super) fn share(&self) -> PyResult<Shared> {
        self.0.share().map(Shared).ok_or_else(uninitialized)
    }
}

/// A reference to the encoding of a [`Tokenizer`].
pub(super) struct Shared(Arc<AnyEncoding>);

impl Deref for Shared {
    type Target = Encoding;

    fn deref(&self) -> &Encoding {
        self.0.encoding()
    }
}

pub(super) enum AnyEncoding {
    Builtin(&'static Encoding),
    Custom(Box<Encoding>),
}

impl AnyEncoding {
    pub(super) fn encoding(&self) -> &Encoding {
        match self {
            Self::Builtin(encoding) => encoding,
            Self::Custom(encoding) => encoding,
        }
    }
}

/// A token's bytes and its id.
pub(super) type Rank = (Vec<u8>, TokenId);

/// The entries of a vocabulary. Read from a copy, which other threads cannot change while they hold the lock.
pub(super) fn read_ranks(ranks: &Bound<'_, PyDict>) -> PyResult<Large<Vec<Rank>>> {
    let (py, mut yielder) = (ranks.py(), Yielder::yielding());
    let mut read = Large::new(Vec::new());
    yielder.check_now(py)?; // starts the clock: the copy takes a while
    for (bytes, id) in ranks.copy()? {
        yielder.tick(py)?;
        reserve(&mut read, 1)?;
        read.push((bytes.extract()?, id.extract()?));
    }
    Ok(read)
}

pub(super) fn uninitialized() -> PyErr {
    PyRuntimeError::with_message("this Encoding's __init__ was not called")
}
