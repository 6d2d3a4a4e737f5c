//! The options of encoding, with msgpack's names and defaults.

use std::ffi::CString;

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::msgpack::conversions;
use crate::msgpack::options::{callable, error_handler, unexpected_keyword};
use crate::region::Release;

/// The encoding options of `packb` and `Packer`.
pub(in crate::msgpack) struct PackOptions {
    pub(in crate::msgpack) default: Option<Py<PyAny>>,
    /// No option for str is set.
    pub(super) plain_str: bool,
    pub(in crate::msgpack) use_single_float: bool,
    /// The format's first version: neither bin nor str 8.
    pub(in crate::msgpack) old_raw: bool,
    pub(in crate::msgpack) strict_types: bool,
    pub(in crate::msgpack) datetime: conversions::Datetime,
    pub(in crate::msgpack) unicode_errors: Option<CString>,
    pub(in crate::msgpack) extra: conversions::Extra,
    /// `Never`: other threads have to wait until everything is packed.
    pub(in crate::msgpack) release: Release,
}

impl Default for PackOptions {
    fn default() -> Self {
        Self {
            default: None,
            plain_str: true,
            use_single_float: false,
            old_raw: false,
            strict_types: false,
            datetime: conversions::Datetime::default(),
            unicode_errors: None,
            extra: conversions::Extra::default(),
            release: Release::AUTO,
        }
    }
}

impl PackOptions {
    /// Reads keyword arguments; passes unknown ones to `other`, which returns whether it accepts them.
    pub(in crate::msgpack) fn from_keywords(
        keywords: &Bound<'_, PyDict>,
        mut other: impl FnMut(&str, &Bound<'_, PyAny>) -> PyResult<bool>,
    ) -> PyResult<Self> {
        let mut options = Self::default();
        for (name, value) in keywords {
            let name = name.extract::<&str>()?;
            if !options.set(name, &value)? && !other(name, &value)? {
                return Err(unexpected_keyword(name));
            }
        }
        options.plain_str = !options.old_raw && options.unicode_errors.is_none();
        Ok(options)
    }

    /// Whether packing runs no code of the program, as long as it meets only the commonest types.
    pub(in crate::msgpack) const fn is_plain(&self) -> bool {
        self.default.is_none()
    }

    fn set(&mut self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        match name {
            "default" => self.default = callable("default", value)?,
            "use_single_float" => self.use_single_float = value.is_truthy()?,
            "use_bin_type" => self.old_raw = !value.is_truthy()?,
            "strict_types" => self.strict_types = value.is_truthy()?,
            "datetime" => self.datetime = conversions::Datetime::from_option(value)?,
            "unicode_errors" => self.unicode_errors = error_handler(value)?,
            "release" => self.release = value.extract()?,
            name => return self.extra.set(name, value),
        }
        Ok(true)
    }
}
