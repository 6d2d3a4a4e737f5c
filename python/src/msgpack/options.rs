//! The options of decoding, with msgpack's names and defaults.

use std::ffi::CString;

use offlock_core::msgpack::Limits;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::WithMessage;
use crate::region::Release;

/// The depth of nesting that msgpack allows.
pub(super) const MAX_DEPTH: usize = 1024;

/// How a timestamp is decoded: `timestamp=0..3`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TimestampAs {
    Timestamp,
    Float,
    Nanoseconds,
    Datetime,
}

/// The hook that is called for a map.
pub(super) enum MapHook {
    None,
    /// With the dict.
    Object(Py<PyAny>),
    /// With a list of pairs.
    Pairs(Py<PyAny>),
}

impl MapHook {
    /// The hook, if there is one.
    #[inline]
    pub(super) const fn callable(&self) -> Option<&Py<PyAny>> {
        match self {
            Self::None => None,
            Self::Object(hook) | Self::Pairs(hook) => Some(hook),
        }
    }
}

/// The decoding options of `unpackb` and `Unpacker`.
pub(super) struct UnpackOptions {
    pub(super) use_list: bool,
    pub(super) raw: bool,
    pub(super) timestamp: TimestampAs,
    pub(super) strict_map_key: bool,
    pub(super) map_hook: MapHook,
    pub(super) list_hook: Option<Py<PyAny>>,
    /// `None` is the default, `ExtType`.
    pub(super) ext_hook: Option<Py<PyAny>>,
    pub(super) unicode_errors: Option<CString>,
    pub(super) release: Release,
    /// -1: the size of the input, or of the buffer.
    max_lengths: [i64; 5],
}

impl Default for UnpackOptions {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl UnpackOptions {
    /// The default options.
    pub(super) const DEFAULT: Self = Self {
        use_list: true,
        raw: false,
        timestamp: TimestampAs::Timestamp,
        strict_map_key: true,
        map_hook: MapHook::None,
        list_hook: None,
        ext_hook: None,
        unicode_errors: None,
        release: Release::AUTO,
        max_lengths: [-1; 5],
    };

    /// Reads keyword arguments; passes unknown ones to `other`, which returns whether it accepts them.
    pub(super) fn from_keywords(
        keywords: &Bound<'_, PyDict>,
        mut other: impl FnMut(&str, &Bound<'_, PyAny>) -> PyResult<bool>,
    ) -> PyResult<Self> {
        let mut options = Self::default();
        let (mut object_hook, mut pairs_hook) = (None, None);
        for (name, value) in keywords {
            match name.extract::<&str>()? {
                "object_hook" => object_hook = callable("object_hook", &value)?,
                "object_pairs_hook" => pairs_hook = callable("object_pairs_hook", &value)?,
                name => {
                    if !options.set(name, &value)? && !other(name, &value)? {
                        return Err(unexpected_keyword(name));
                    }
                }
            }
        }
        options.map_hook = match (object_hook, pairs_hook) {
            (None, None) => MapHook::None,
            (Some(hook), None) => MapHook::Object(hook),
            (None, Some(hook)) => MapHook::Pairs(hook),
            _ => {
                return Err(PyTypeError::with_message(
                    "object_pairs_hook and object_hook are mutually exclusive.",
                ));
            }
        };
        Ok(options)
    }

    fn set(&mut self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        match name {
            "use_list" => self.use_list = value.is_truthy()?,
            "raw" => self.raw = value.is_truthy()?,
            "strict_map_key" => self.strict_map_key = value.is_truthy()?,
            "timestamp" => self.timestamp = timestamp(value)?,
            "list_hook" => self.list_hook = callable("list_hook", value)?,
            "ext_hook" => self.ext_hook = callable("ext_hook", value)?,
            "unicode_errors" => self.unicode_errors = error_handler(value)?,
            "release" => self.release = value.extract()?,
            "max_str_len" => self.max_lengths[0] = value.extract()?,
            "max_bin_len" => self.max_lengths[1] = value.extract()?,
            "max_array_len" => self.max_lengths[2] = value.extract()?,
            "max_map_len" => self.max_lengths[3] = value.extract()?,
            "max_ext_len" => self.max_lengths[4] = value.extract()?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The limits for an input, or a buffer, of `size` bytes.
    #[inline]
    pub(super) fn limits(&self, size: usize) -> Limits {
        let size = size as u64;
        if self.max_lengths == Self::DEFAULT.max_lengths {
            return Limits { depth: MAX_DEPTH, str: size, bin: size, array: size, map: size / 2, ext: size };
        }
        let [str, bin, array, map, ext] = self.max_lengths;
        let limit =
            |given: i64, default| if given == -1 { default } else { u64::try_from(given).unwrap_or(0) };
        Limits {
            depth: MAX_DEPTH,
            str: limit(str, size),
            bin: limit(bin, size),
            array: limit(array, size),
            map: limit(map, size / 2),
            ext: limit(ext, size),
        }
    }

    /// Whether building never runs code of the program.
    pub(super) const fn is_plain(&self) -> bool {
        self.strict_map_key
            && matches!(self.map_hook, MapHook::None)
            && self.list_hook.is_none()
            && self.ext_hook.is_none()
            && self.unicode_errors.is_none()
    }

    /// Shows the hooks to the garbage collector.
    pub(super) fn traverse(&self, visit: &pyo3::gc::PyVisit<'_>) -> Result<(), pyo3::gc::PyTraverseError> {
        visit.call(self.map_hook.callable())?;
        visit.call(&self.list_hook)?;
        visit.call(&self.ext_hook)
    }
}

/// The `TypeError` for an unknown keyword.
pub(super) fn unexpected_keyword(name: &str) -> PyErr {
    PyTypeError::with_message(format!("got an unexpected keyword argument '{name}'"))
}

/// A callable, or `None`.
pub(super) fn callable(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Option<Py<PyAny>>> {
    if value.is_none() {
        return Ok(None);
    }
    if !value.is_callable() {
        return Err(PyTypeError::with_message(format!("{name} must be a callable.")));
    }
    Ok(Some(value.clone().unbind()))
}

/// The name of a codec's error handler, or `None`.
pub(super) fn error_handler(value: &Bound<'_, PyAny>) -> PyResult<Option<CString>> {
    let name: Option<&str> = value.extract()?;
    Ok(name.map(CString::new).transpose()?)
}

fn timestamp(value: &Bound<'_, PyAny>) -> PyResult<TimestampAs> {
    Ok(match value.extract::<i64>()? {
        0 => TimestampAs::Timestamp,
        1 => TimestampAs::Float,
        2 => TimestampAs::Nanoseconds,
        3 => TimestampAs::Datetime,
        _ => return Err(PyValueError::with_message("timestamp must be 0..3")),
    })
}
