//! One long `str`, measured and written without the lock.

use offlock_core::memory::OutOfMemory;
use offlock_core::text::{Pieces, Span, StrKind};
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::error::StringsError;
use crate::bytes;
use crate::cpython::object;
use crate::cpython::str_header::{self, NewStr};
use crate::large::{LARGE, Large};
use crate::objects::{Text, name};
use crate::operations::STRINGS_LONG;
use crate::region::{Region, Release};

/// Bytes between two checks of the task.
const STRETCH: usize = 1 << 20;

/// A `str` of this text.
pub(crate) fn from_utf8<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyString>> {
    if text.len() < LARGE {
        return object::text(py, text);
    }
    match written(py, text.as_bytes(), Release::AUTO)? {
        Some(text) => Ok(text),
        None => object::text(py, text),
    }
}

/// As `bytes.decode("utf-8", errors)`. Long text that is not UTF-8 takes the time of CPython's own function,
/// with the lock held, unless the invalid parts are to be replaced or ignored.
pub(crate) fn decode<'py>(
    py: Python<'py>,
    bytes: Large<Vec<u8>>,
    errors: &str,
) -> PyResult<Bound<'py, PyString>> {
    if bytes.len() < LARGE {
        return decode_short(py, &bytes, errors);
    }
    if let Some(text) = written(py, &bytes, Release::AUTO)? {
        return Ok(text);
    }
    let stand_in = match errors {
        "replace" => "\u{FFFD}",
        "ignore" => "",
        _ => return decoded_by_python(py, &bytes, errors),
    };
    let repaired = repaired(py, &bytes, stand_in)?;
    drop(bytes);
    from_utf8(py, &repaired)
}

/// The same, for text that takes little time.
pub(crate) fn decode_short<'py>(
    py: Python<'py>,
    bytes: &[u8],
    errors: &str,
) -> PyResult<Bound<'py, PyString>> {
    match std::str::from_utf8(bytes) {
        Ok(text) => object::text(py, text),
        Err(_) => decoded_by_python(py, bytes, errors),
    }
}

fn decoded_by_python<'py>(py: Python<'py>, bytes: &[u8], errors: &str) -> PyResult<Bound<'py, PyString>> {
    Ok(bytes::copied(py, bytes)?
        .call_method1(name!("decode"), (name!("utf-8"), Text(errors)))?
        .cast_into()?)
}

/// The text with `stand_in` in place of each part that is not UTF-8, as the Unicode standard recommends it
/// and CPython does.
fn repaired(py: Python<'_>, bytes: &[u8], stand_in: &str) -> PyResult<Large<String>> {
    let text = Region::new(&STRINGS_LONG, bytes.len()).run(py, |task| {
        let mut text = String::new();
        for chunk in bytes.utf8_chunks() {
            task.check()?;
            let more = chunk.valid().len() + stand_in.len();
            text.try_reserve(more).map_err(OutOfMemory::from)?;
            text.push_str(chunk.valid());
            if !chunk.invalid().is_empty() {
                text.push_str(stand_in);
            }
        }
        Ok::<_, StringsError>(text)
    })?;
    Ok(Large::new(text))
}

/// A long `str` of these bytes. `None` when they are not UTF-8, or where the interpreter's layout of text is
/// not known.
pub(crate) fn written<'py>(
    py: Python<'py>,
    utf8: &[u8],
    release: Release,
) -> PyResult<Option<Bound<'py, PyString>>> {
    let Some(in_place) = str_header::in_place() else { return Ok(None) };
    let region = Region::new(&STRINGS_LONG, utf8.len()).release(release);
    let measured = region.run(py, |task| {
        let Ok(pieces) = Pieces::new(utf8, stretches(utf8), task) else {
            task.check()?;
            return Ok::<_, StringsError>(None);
        };
        let all = || (0..pieces.len()).map(|number| pieces.piece(number));
        let kind = all().map(|piece| piece.kind).max().unwrap_or(StrKind::Ascii);
        let chars: usize = all().map(|piece| piece.chars).sum();
        Ok(Some((pieces, kind, chars)))
    })?;
    let Some((pieces, kind, chars)) = measured else { return Ok(None) };
    // Neither of the two runs may last long enough to look for signals.
    py.check_signals()?;
    let mut new = NewStr::new(py, in_place, kind, chars).ok_or_else(|| PyErr::fetch(py))?;
    let room = new.contents();
    region.run(py, |task| {
        let mut room = room;
        for number in 0..pieces.len() {
            task.check()?;
            let mut piece = pieces.piece(number);
            piece.kind = kind; // the whole text is written in this kind
            let (here, rest) = room.split_at_mut(piece.bytes());
            piece.write(here);
            room = rest;
        }
        Ok::<_, StringsError>(())
    })?;
    Ok(Some(new.finish_str()))
}

/// Cuts between characters, if possible.
fn stretches(utf8: &[u8]) -> Vec<Span> {
    let is_between = |at: &usize| utf8.get(*at).is_none_or(|byte| byte & 0xC0 != 0x80);
    let ends = (STRETCH..utf8.len()).step_by(STRETCH);
    let mut start = 0;
    ends.map(|end| (end - 3..=end).rev().find(is_between).unwrap_or(end))
        .chain([utf8.len()])
        .map(|end| Span { start: std::mem::replace(&mut start, end), end })
        .collect()
}
