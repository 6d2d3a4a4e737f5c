//! The arguments that compressors and decompressors have in common: level, options and dictionary.

use offlock_core::zstd::{
    DecoderSettings, Loading, Parameter, Settings, WINDOW_LOG_MAX, window_log_max_bounds,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt};

use super::dictionary::ZstdDict;
use crate::error::WithMessage;

/// The settings of a compressor.
pub(super) fn settings(
    py: Python<'_>,
    level: Option<&Bound<'_, PyAny>>,
    options: Option<&Bound<'_, PyAny>>,
    zstd_dict: Option<&Bound<'_, PyAny>>,
) -> PyResult<Settings> {
    if level.is_some() && options.is_some() {
        return Err(PyTypeError::with_message("Only one of level or options should be used."));
    }
    let mut settings = Settings::default();
    if let Some(level) = level {
        if !level.is_instance_of::<PyInt>() {
            return Err(PyTypeError::with_message("invalid type for level, expected int"));
        }
        settings.parameters.push((Parameter::LEVEL, checked_level(level.extract().ok())?));
    }
    for (key, value) in pairs("ZstdCompressor", options)? {
        if is_of(py, &key, "DecompressionParameter")? {
            return Err(PyTypeError::with_message(
                "compression options dictionary key must not be a DecompressionParameter attribute",
            ));
        }
        let (key, value) = (key.extract::<i32>()?, value.extract::<i32>()?);
        let Some(parameter) = Parameter::of(key) else { return Err(unknown("compression", key)) };
        let value = if parameter == Parameter::LEVEL { checked_level(Some(value))? } else { value };
        let bounds = parameter.bounds();
        // 0 stands for the level's own value.
        if value != 0 && !bounds.contains(&value) {
            return Err(illegal("compression", parameter.name(), value, *bounds.start(), *bounds.end()));
        }
        settings.parameters.push((parameter, value));
    }
    settings.dictionary =
        zstd_dict.map(|zstd_dict| ZstdDict::loaded(zstd_dict, Loading::Undigested)).transpose()?;
    Ok(settings)
}

/// The settings of a decompressor.
pub(super) fn decoder_settings(
    py: Python<'_>,
    zstd_dict: Option<&Bound<'_, PyAny>>,
    options: Option<&Bound<'_, PyAny>>,
) -> PyResult<DecoderSettings> {
    let mut settings = DecoderSettings::default();
    for (key, value) in pairs("ZstdDecompressor", options)? {
        if is_of(py, &key, "CompressionParameter")? {
            return Err(PyTypeError::with_message(
                "decompression options dictionary key must not be a CompressionParameter attribute",
            ));
        }
        let (key, value) = (key.extract::<i32>()?, value.extract::<i32>()?);
        if key != WINDOW_LOG_MAX {
            return Err(unknown("decompression", key));
        }
        let bounds = window_log_max_bounds();
        if value != 0 && !bounds.contains(&value) {
            return Err(illegal("decompression", "window_log_max", value, *bounds.start(), *bounds.end()));
        }
        settings.window_log_max = Some(value);
    }
    settings.dictionary =
        zstd_dict.map(|zstd_dict| ZstdDict::loaded(zstd_dict, Loading::Digested)).transpose()?;
    Ok(settings)
}

type Pairs<'py> = Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)>;

fn pairs<'py>(of: &str, options: Option<&Bound<'py, PyAny>>) -> PyResult<Pairs<'py>> {
    let Some(options) = options else { return Ok(Vec::new()) };
    match options.cast::<PyDict>() {
        Ok(options) => Ok(options.iter().collect()),
        Err(_) => Err(PyTypeError::with_message(format!(
            "{of}() argument 'options' must be dict, not {}",
            options.get_type().name()?
        ))),
    }
}

fn is_of(py: Python<'_>, key: &Bound<'_, PyAny>, class: &'static str) -> PyResult<bool> {
    key.is_instance(&py.import("offlock.zstd")?.getattr(class)?)
}

fn checked_level(level: Option<i32>) -> PyResult<i32> {
    let bounds = Parameter::LEVEL.bounds();
    level.filter(|level| bounds.contains(level)).ok_or_else(|| {
        let given = level.map_or(String::new(), |level| format!(" {level}"));
        PyValueError::with_message(format!(
            "illegal compression level{given}; the valid range is [{}, {}]",
            bounds.start(),
            bounds.end()
        ))
    })
}

fn unknown(kind: &str, key: i32) -> PyErr {
    PyValueError::with_message(format!("invalid {kind} parameter 'unknown parameter (key {key})'"))
}

fn illegal(kind: &str, name: &str, value: i32, least: i32, most: i32) -> PyErr {
    PyValueError::with_message(format!(
        "{kind} parameter '{name}' received an illegal value {value}; the valid range is [{least}, {most}]"
    ))
}
