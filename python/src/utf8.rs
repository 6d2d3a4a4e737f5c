//! The UTF-8 of the callers' text arguments.

use std::ops::Deref;

use offlock_core::text::to_utf8;
use pyo3::exceptions::PyUnicodeEncodeError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::PyString;
use pyo3::types::string::PyStringData;

use crate::cpython::{object, str_header};
use crate::large::{LARGE, Large};
use crate::objects::name;
use crate::operations::TOKENS_TO_UTF8;
use crate::region::{Region, Release};
use crate::strings::error::StringsError;

/// Text as UTF-8, which does not change while other threads run.
pub(crate) enum Utf8 {
    /// The UTF-8 that CPython keeps beside the characters of the `str`.
    Kept(PyBackedStr),
    Own(Large<String>),
}

impl Deref for Utf8 {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Kept(text) => text,
            Self::Own(text) => text,
        }
    }
}

/// The UTF-8 of a `str`. Text with lone surrogates, which has none, is repaired as tiktoken does: pairs of
/// surrogates become the character they mean, others U+FFFD.
///
/// CPython makes the UTF-8 at the first request, with the lock held. For long text it is made here.
pub(crate) fn utf8(text: &Bound<'_, PyString>) -> PyResult<Utf8> {
    if let Some(data) = long_without_utf8(text) {
        return of_characters(text.py(), data, Release::AUTO).map(|(text, _)| Utf8::Own(text));
    }
    match PyBackedStr::try_from(text.clone()) {
        Err(error) if error.is_instance_of::<PyUnicodeEncodeError>(text.py()) => {
            let pairs = text.call_method1(name!("encode"), (name!("utf-16"), name!("surrogatepass")))?;
            Ok(Utf8::Kept(
                pairs.call_method1(name!("decode"), (name!("utf-16"), name!("replace")))?.extract()?,
            ))
        }
        borrowed => borrowed.map(Utf8::Kept),
    }
}

/// The same for a long text whose UTF-8 CPython does not have yet; `None` for other texts, and for one with
/// surrogates.
pub(crate) fn of_long(text: &Bound<'_, PyString>, release: Release) -> PyResult<Option<Large<String>>> {
    let Some(data) = long_without_utf8(text) else { return Ok(None) };
    let (text, is_as_it_was) = of_characters(text.py(), data, release)?;
    Ok(is_as_it_was.then_some(text))
}

/// The characters of a long text whose UTF-8 CPython does not have yet.
fn long_without_utf8<'a>(text: &'a Bound<'_, PyString>) -> Option<PyStringData<'a>> {
    if object::characters(text) < LARGE / 2 || str_header::has_utf8(text) {
        return None;
    }
    // SAFETY: the characters of a `str` do not change, and `text` keeps it alive.
    unsafe { text.data() }.ok()
}

/// The text of these characters, and whether it is free of surrogates.
fn of_characters(
    py: Python<'_>,
    data: PyStringData<'_>,
    release: Release,
) -> PyResult<(Large<String>, bool)> {
    let run = Region::new(&TOKENS_TO_UTF8, LARGE).release(release);
    let converted = run.run(py, |task| {
        let converted = match data {
            PyStringData::Ucs1(characters) => to_utf8(characters, task),
            PyStringData::Ucs2(characters) => to_utf8(characters, task),
            PyStringData::Ucs4(characters) => to_utf8(characters, task),
        };
        converted.map_err(StringsError::from)
    })?;
    Ok((Large::new(converted.text), !converted.had_surrogates))
}

/// Whether a text ends in a surrogate that means a character together with the one that may follow.
pub(crate) fn ends_in_leading_surrogate(text: &Bound<'_, PyString>) -> bool {
    // SAFETY: the characters of a `str` do not change, and `text` keeps it alive.
    let last = match unsafe { text.data() } {
        Ok(PyStringData::Ucs2(characters)) => characters.last().map(|&last| last.into()),
        Ok(PyStringData::Ucs4(characters)) => characters.last().copied(),
        Ok(PyStringData::Ucs1(_)) | Err(_) => None,
    };
    last.is_some_and(|last| last & !0x3FF == 0xD800)
}
