//! Compression and decompression in one call.

use offlock_core::Task;
use offlock_core::zstd::{self, Error, Output};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::arguments;
use crate::borrow::Bytes;
use crate::bytes;
use crate::operations::{ZSTD_COMPRESS, ZSTD_DECOMPRESS};
use crate::region::{Cancel, Region, Release};

/// The weight of work at settings that can make any input slow.
const SLOW: usize = 1 << 20;

/// Compresses `data` to one frame.
#[pyfunction]
#[pyo3(
    signature = (data, level=None, options=None, zstd_dict=None, *, release=Release::AUTO, cancel=None),
    text_signature = "(data, level=None, options=None, zstd_dict=None, *, release='auto', cancel=None)"
)]
pub(super) fn compress<'py>(
    py: Python<'py>,
    data: &Bound<'py, PyAny>,
    level: Option<&Bound<'py, PyAny>>,
    options: Option<&Bound<'py, PyAny>>,
    zstd_dict: Option<&Bound<'py, PyAny>>,
    release: Release,
    cancel: Option<&Cancel>,
) -> PyResult<Bound<'py, PyBytes>> {
    let settings = arguments::settings(py, level, options, zstd_dict)?;
    let data = Bytes::borrow(data)?;
    let data = data.as_slice();
    let is_plain = options.is_none() && zstd_dict.is_none() && settings.level() <= 9;
    let weight = if is_plain { data.len() } else { data.len().saturating_add(SLOW) };
    let packed = Region::new(&ZSTD_COMPRESS, weight).release(release).cancel(cancel).run(py, |task| {
        let mut out = Output::new();
        zstd::compress(data, &settings, &mut out, task)?;
        Ok::<_, Error>(out.into_bytes())
    })?;
    bytes::from_memory(py, packed)
}

/// Decompresses all frames of `data`.
#[pyfunction]
#[pyo3(
    signature = (data, zstd_dict=None, options=None, *, max_output=None, release=Release::AUTO, cancel=None),
    text_signature = "(data, zstd_dict=None, options=None, *, max_output=None, release='auto', cancel=None)"
)]
pub(super) fn decompress<'py>(
    py: Python<'py>,
    data: &Bound<'py, PyAny>,
    zstd_dict: Option<&Bound<'py, PyAny>>,
    options: Option<&Bound<'py, PyAny>>,
    max_output: Option<usize>,
    release: Release,
    cancel: Option<&Cancel>,
) -> PyResult<Bound<'py, PyBytes>> {
    let settings = arguments::decoder_settings(py, zstd_dict, options)?;
    let data = Bytes::borrow(data)?;
    let data = data.as_slice();
    let weight = decompression_weight(data);
    let plain = Region::new(&ZSTD_DECOMPRESS, weight).release(release).cancel(cancel).run(py, |task| {
        let mut out = Output::new();
        zstd::decompress(data, &settings, max_output, &mut out, task)?;
        Ok::<_, Error>(out.into_bytes())
    })?;
    bytes::from_memory(py, plain)
}

/// The weight of decompressing `data`: a few bytes can stand for any number, unless they are one frame that says its size.
fn decompression_weight(data: &[u8]) -> usize {
    let is_long = data.len() >= ZSTD_DECOMPRESS.break_even;
    let is_one = is_long || zstd::frame_size(data, &Task::new()) == Ok(data.len());
    let content = zstd::Header::read(data).filter(|_| is_one).and_then(|header| header.content);
    let content = content.map_or(SLOW, |length| usize::try_from(length).unwrap_or(usize::MAX));
    data.len().saturating_add(content / 4)
}
