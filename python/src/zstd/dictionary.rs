//! Dictionaries, and making them from samples.

use std::sync::Arc;

use offlock_core::memory;
use offlock_core::zstd::{self, Dictionary, Error, Loading, Samples};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::borrow::Bytes;
use crate::bytes;
use crate::error::{WithMessage, no_memory};
use crate::gil_yield::Yielder;
use crate::large::{LARGE, Large, MemorySize, Refs};
use crate::operations::ZSTD_TRAIN;
use crate::region::{Cancel, Region, Release, aside};

/// A dictionary.
#[pyclass(frozen, module = "offlock.zstd")]
pub(super) struct ZstdDict(Large<Arc<Dictionary>>);

impl MemorySize for Arc<Dictionary> {
    fn memory_size(&self) -> usize {
        self.content().len()
    }
}

impl ZstdDict {
    /// The dictionary in an argument, and how it is used.
    pub(super) fn loaded(
        zstd_dict: &Bound<'_, PyAny>,
        usual: Loading,
    ) -> PyResult<(Arc<Dictionary>, Loading)> {
        let (dict, loading) = dictionary(zstd_dict, usual)?;
        Ok(((*dict.get().0).clone(), loading))
    }
}

#[pymethods]
impl ZstdDict {
    #[new]
    #[pyo3(signature = (dict_content, /, *, is_raw=false))]
    fn new(py: Python<'_>, dict_content: &Bound<'_, PyAny>, is_raw: bool) -> PyResult<Self> {
        let content = Bytes::borrow(dict_content)?;
        let content = content.as_slice();
        if content.len() < 8 {
            return Err(PyValueError::with_message(
                "Zstandard dictionary content too short (must have at least eight bytes)",
            ));
        }
        let copy = || memory::copied(content);
        let content = if content.len() < LARGE { copy() } else { aside(py, copy) };
        let dictionary = Dictionary::new(content.map_err(no_memory)?);
        if !is_raw && dictionary.id() == 0 {
            return Err(PyValueError::with_message("invalid Zstandard dictionary"));
        }
        Ok(Self(Large::new(Arc::new(dictionary))))
    }

    /// The content.
    #[getter]
    fn dict_content<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        bytes::copied(py, self.0.content())
    }

    /// The number; 0 for raw content.
    #[getter]
    fn dict_id(&self) -> u32 {
        self.0.id()
    }

    /// The dictionary, prepared once for each level.
    #[getter]
    fn as_digested_dict(this: Bound<'_, Self>) -> (Bound<'_, Self>, i32) {
        (this, 0)
    }

    /// The dictionary, loaded for each stream.
    #[getter]
    fn as_undigested_dict(this: Bound<'_, Self>) -> (Bound<'_, Self>, i32) {
        (this, 1)
    }

    /// The content as what precedes the first frame.
    #[getter]
    fn as_prefix(this: Bound<'_, Self>) -> (Bound<'_, Self>, i32) {
        (this, 2)
    }

    fn __len__(&self) -> usize {
        self.0.content().len()
    }

    fn __repr__(&self) -> String {
        format!("<ZstdDict dict_id={} dict_size={}>", self.0.id(), self.0.content().len())
    }
}

/// The content of a dictionary of at most `dict_size` bytes for content like `samples`.
#[pyfunction]
#[pyo3(signature = (samples, dict_size, *, cancel=None))]
pub(super) fn train_dict<'py>(
    py: Python<'py>,
    samples: &Bound<'py, PyAny>,
    dict_size: isize,
    cancel: Option<&Cancel>,
) -> PyResult<Bound<'py, PyBytes>> {
    made(py, samples, dict_size, "samples contained no data; can't train dictionary.", cancel, zstd::train)
}

/// The content of a dictionary that ends with that of `zstd_dict`.
#[pyfunction]
#[pyo3(signature = (zstd_dict, samples, dict_size, level, *, cancel=None))]
pub(super) fn finalize_dict<'py>(
    py: Python<'py>,
    zstd_dict: &Bound<'py, ZstdDict>,
    samples: &Bound<'py, PyAny>,
    dict_size: isize,
    level: i32,
    cancel: Option<&Cancel>,
) -> PyResult<Bound<'py, PyBytes>> {
    let content = (*zstd_dict.get().0).clone();
    made(
        py,
        samples,
        dict_size,
        "The samples are empty content, can't finalize the dictionary.",
        cancel,
        |samples, size, task| zstd::finalize(memory::copied(content.content())?, samples, size, level, task),
    )
}

fn made<'py>(
    py: Python<'py>,
    samples: &Bound<'py, PyAny>,
    dict_size: isize,
    nothing: &'static str,
    cancel: Option<&Cancel>,
    make: impl FnOnce(Samples, usize, &offlock_core::Task<'_>) -> Result<Vec<u8>, Error> + Send,
) -> PyResult<Bound<'py, PyBytes>> {
    let mut yielder = Yielder::of(Release::AUTO).cancel(cancel);
    let samples = Refs::collect(samples, &mut yielder, |_, sample| Bytes::borrow(&sample))?;
    let (views, total) = samples.slices(py, &mut yielder, Bytes::as_slice)?;
    if total == 0 {
        return Err(PyValueError::with_message(nothing));
    }
    let size = usize::try_from(dict_size)
        .ok()
        .filter(|&size| size > 0)
        .ok_or_else(|| PyValueError::with_message("dict_size argument should be positive number."))?;
    let made = Region::new(&ZSTD_TRAIN, total)
        .cancel(cancel)
        .run(py, |task| make(Samples::copied(&views, task)?, size, task))?;
    bytes::from_memory(py, Large::new(made).into_inner())
}

/// The dictionary and how it is to be used: `ZstdDict`, or a tuple of one and a number.
fn dictionary<'py>(
    zstd_dict: &Bound<'py, PyAny>,
    usual: Loading,
) -> PyResult<(Bound<'py, ZstdDict>, Loading)> {
    if let Ok(dict) = zstd_dict.cast::<ZstdDict>() {
        return Ok((dict.clone(), usual));
    }
    let parsed = zstd_dict.cast::<PyTuple>().ok().filter(|pair| pair.len() == 2).and_then(|pair| {
        let dict = pair.get_item(0).ok()?.cast_into::<ZstdDict>().ok()?;
        let loading = match pair.get_item(1).ok()?.extract::<i32>().ok()? {
            0 => Loading::Digested,
            1 => Loading::Undigested,
            2 => Loading::Prefix,
            _ => return None,
        };
        Some((dict, loading))
    });
    parsed.ok_or_else(|| PyTypeError::with_message("zstd_dict argument should be a ZstdDict object."))
}
