//! The arguments `allowed_special=` and `disallowed_special=` of an encode call.

use std::sync::Arc;

use offlock_core::Task;
use offlock_core::tokens::{self, Encoding, Specials};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyFrozenSet, PySet, PyString, PyTuple};

use super::error::EncodeError;
use crate::error::WithMessage;
use crate::objects::imported;

/// The number of texts between two checks of the task.
const BETWEEN_CHECKS: usize = 1024;

/// The special tokens that become ids where they occur in a text, and those that may not occur in it.
#[derive(Default)]
pub(crate) struct Policy {
    allowed: Names,
    disallowed: Names,
}

/// Special tokens, by their texts.
#[derive(Default)]
pub(crate) enum Names {
    #[default]
    None,
    All,
    Only(Arc<[PyBackedStr]>),
    Except(Arc<[PyBackedStr]>),
}

/// The value of `disallowed_special=`.
pub(crate) enum Disallowed {
    /// All that are not allowed.
    All,
    Named(Names),
}

impl<'py> FromPyObject<'_, 'py> for Disallowed {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if is_all(&value) { Ok(Self::All) } else { disallowed_names(&value).map(Self::Named) }
    }
}

impl Policy {
    /// Ordinary text only: no special tokens are searched for.
    pub(crate) const ORDINARY: Self = Self { allowed: Names::None, disallowed: Names::None };

    /// The policy of the two arguments, whose defaults are `set()` and `"all"`.
    pub(crate) fn new(allowed: Option<&Bound<'_, PyAny>>, disallowed: Disallowed) -> PyResult<Self> {
        let allowed = allowed.map_or(Ok(Names::None), allowed_names)?;
        let disallowed = match disallowed {
            Disallowed::Named(names) => names,
            Disallowed::All => allowed.others(),
        };
        Ok(Self { allowed, disallowed })
    }

    /// Refuses `text` if it contains a disallowed token, otherwise encodes it with `encode`.
    pub(crate) fn apply<T>(
        &self,
        encoding: &Encoding,
        text: &str,
        task: &Task<'_>,
        encode: impl FnOnce(Specials<'_>) -> Result<T, tokens::Error>,
    ) -> Result<T, EncodeError> {
        self.check(encoding, text, None, task)?;
        self.with_allowed(encode)
    }

    /// Like `apply`, for many texts.
    pub(crate) fn apply_all<T>(
        &self,
        encoding: &Encoding,
        texts: &[&str],
        task: &Task<'_>,
        encode: impl FnOnce(Specials<'_>) -> Result<T, tokens::Error>,
    ) -> Result<T, EncodeError> {
        for (index, text) in texts.iter().enumerate() {
            if index % BETWEEN_CHECKS == 0 {
                task.check().map_err(tokens::Error::from).map_err(EncodeError::Core)?;
            }
            self.check(encoding, text, Some(index), task)?;
        }
        self.with_allowed(encode)
    }

    /// What `encode` makes of the allowed tokens.
    pub(crate) fn with_allowed<T>(
        &self,
        encode: impl FnOnce(Specials<'_>) -> Result<T, tokens::Error>,
    ) -> Result<T, EncodeError> {
        let texts = self.allowed.texts();
        encode(self.allowed.specials(&texts)).map_err(EncodeError::Core)
    }

    fn check(
        &self,
        encoding: &Encoding,
        text: &str,
        index: Option<usize>,
        task: &Task<'_>,
    ) -> Result<(), EncodeError> {
        let texts = self.disallowed.texts();
        match encoding.find_special(text, self.disallowed.specials(&texts), task) {
            Ok(None) => Ok(()),
            Err(stopped) => Err(EncodeError::Core(stopped.into())),
            Ok(Some((at, token))) => Err(EncodeError::Disallowed {
                token: token.to_owned(),
                at: text[..at].chars().count(),
                index,
            }),
        }
    }
}

impl Names {
    /// The complement of these names.
    fn others(&self) -> Self {
        match self {
            Self::None => Self::All,
            Self::All => Self::None,
            Self::Only(names) => Self::Except(names.clone()),
            Self::Except(names) => Self::Only(names.clone()),
        }
    }

    fn texts(&self) -> Vec<&str> {
        match self {
            Self::None | Self::All => Vec::new(),
            Self::Only(names) | Self::Except(names) => names.iter().map(PyBackedStr::as_str).collect(),
        }
    }

    fn specials<'a>(&self, texts: &'a [&'a str]) -> Specials<'a> {
        match self {
            Self::None => Specials::None,
            Self::All => Specials::All,
            Self::Only(_) => Specials::Only(texts),
            Self::Except(_) => Specials::Except(texts),
        }
    }
}

fn allowed_names(names: &Bound<'_, PyAny>) -> PyResult<Names> {
    if is_all(names) {
        return Ok(Names::All);
    }
    if names.cast::<PyTuple>().is_ok_and(|names| names.is_empty()) {
        return Ok(Names::None); // the default, as signatures show it
    }
    if !is_set(names)? {
        return Err(PyTypeError::with_message(format!(
            "allowed_special must be 'all' or a set of strings, not {}",
            names.repr()?
        )));
    }
    collect(names)
}

fn disallowed_names(names: &Bound<'_, PyAny>) -> PyResult<Names> {
    if names.is_truthy()? { collect(names) } else { Ok(Names::None) }
}

fn is_all(names: &Bound<'_, PyAny>) -> bool {
    names.cast::<PyString>().is_ok_and(|text| text == "all")
}

fn is_set(names: &Bound<'_, PyAny>) -> PyResult<bool> {
    static ABSTRACT_SET: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    if names.is_instance_of::<PySet>() || names.is_instance_of::<PyFrozenSet>() {
        return Ok(true);
    }
    names.is_instance(imported(&ABSTRACT_SET, names.py(), "collections.abc", "Set")?)
}

fn collect(names: &Bound<'_, PyAny>) -> PyResult<Names> {
    let texts: Arc<[_]> = names.try_iter()?.map(|name| name?.extract()).collect::<PyResult<_>>()?;
    Ok(if texts.is_empty() { Names::None } else { Names::Only(texts) })
}
