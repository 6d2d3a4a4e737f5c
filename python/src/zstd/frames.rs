//! What is known of frames without decompressing them, and the bounds of parameters.

use offlock_core::zstd::{Header, Parameter, WINDOW_LOG_MAX, frame_size, window_log_max_bounds};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::error::invalid;
use crate::borrow::Bytes;
use crate::error::WithMessage;
use crate::objects::Int;
use crate::operations::ZSTD_FRAMES;
use crate::region::Region;

/// The length of the first frame.
#[pyfunction]
#[pyo3(signature = (frame_buffer))]
pub(super) fn get_frame_size(py: Python<'_>, frame_buffer: &Bound<'_, PyAny>) -> PyResult<Int> {
    let data = Bytes::borrow(frame_buffer)?;
    let data = data.as_slice();
    Region::new(&ZSTD_FRAMES, data.len()).run(py, |task| frame_size(data, task)).map(Int)
}

/// The length of the first frame's content, or None, and the number of its dictionary.
#[pyfunction]
#[pyo3(signature = (frame_buffer))]
pub(super) fn frame_info(py: Python<'_>, frame_buffer: &Bound<'_, PyAny>) -> PyResult<(Option<u64>, u32)> {
    let data = Bytes::borrow(frame_buffer)?;
    let header = Header::read(data.as_slice()).ok_or_else(|| {
        invalid(
            py,
            "Error when getting information from the header of a Zstandard frame. Ensure the frame_buffer argument \
             starts from the beginning of a frame, and its length is not less than the frame header (6~18 bytes).",
        )
    })?;
    let content = if header.is_skippable { Some(0) } else { header.content };
    Ok((content, header.dictionary))
}

/// The least and the greatest value of a parameter.
#[pyfunction]
#[pyo3(signature = (parameter, is_compress))]
pub(super) fn bounds(parameter: i32, is_compress: bool) -> PyResult<(i32, i32)> {
    let bounds = if is_compress {
        Parameter::of(parameter).map(Parameter::bounds)
    } else {
        Some(window_log_max_bounds()).filter(|_| parameter == WINDOW_LOG_MAX)
    };
    let bounds = bounds.ok_or_else(|| PyValueError::with_message("invalid parameter"))?;
    Ok(bounds.into_inner())
}
