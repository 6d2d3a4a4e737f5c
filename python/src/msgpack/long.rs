//! Long bytes and strings, which are filled off the lock.

use offlock_core::msgpack::is_ascii;
use offlock_core::{Stopped, Task};
use pyo3::ffi as c;
use pyo3::prelude::*;

use super::ffi;
use crate::region::{Operation, Region, Release};

/// To copy fewer bytes takes less than a fraction of a millisecond.
static COPY: Operation = Operation { name: "msgpack.copy", break_even: 1 << 20 };

/// So many bytes are copied between two looks at the task.
const PIECE: usize = 256 << 10;

/// A bytes.
#[cold]
pub(super) fn bytes<'py>(py: Python<'py>, value: &[u8], release: Release) -> PyResult<Bound<'py, PyAny>> {
    if value.len() < COPY.break_even {
        return ffi::bytes(py, value);
    }
    // SAFETY: a new bytes of that length, or null with an exception set. Nobody else has seen it, so that its content is ours
    // to write, with or without the lock.
    unsafe {
        let object = c::PyBytes_FromStringAndSize(std::ptr::null(), value.len().cast_signed());
        let object = ffi::owned(py, object)?;
        let start = c::PyBytes_AS_STRING(object.as_ptr()).cast_mut().cast::<u8>();
        copy(py, value, std::slice::from_raw_parts_mut(start, value.len()), release)?;
        Ok(object)
    }
}

/// A str; `None` when the bytes are not plain UTF-8, or too short for this to be of use.
#[cold]
pub(super) fn text<'py>(
    py: Python<'py>,
    value: &[u8],
    release: Release,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    if value.len() < COPY.break_even {
        return if is_ascii(value) { ffi::ascii(py, value).map(Some) } else { Ok(None) };
    }
    let run = Region::new(&COPY, value.len()).release(release);
    let Some((characters, largest)) = run.run(py, |task| measure(value, task))? else { return Ok(None) };
    // SAFETY: a new str for that many characters of which none is larger, or null with an exception set. It has that many
    // units right behind its header, which depends on whether all are ASCII. Nobody else has seen it, so that they are ours
    // to write, with or without the lock.
    unsafe {
        let object = ffi::owned(py, c::PyUnicode_New(characters.cast_signed(), largest))?;
        let ascii = object.as_ptr().cast::<c::PyASCIIObject>().add(1);
        let wide = object.as_ptr().cast::<c::PyCompactUnicodeObject>().add(1);
        match largest {
            0x7f => copy(py, value, std::slice::from_raw_parts_mut(ascii.cast(), characters), release)?,
            0xff => fill::<u8>(py, value, std::slice::from_raw_parts_mut(wide.cast(), characters), run)?,
            0xffff => fill::<u16>(py, value, std::slice::from_raw_parts_mut(wide.cast(), characters), run)?,
            _ => fill::<u32>(py, value, std::slice::from_raw_parts_mut(wide.cast(), characters), run)?,
        }
        Ok(Some(object))
    }
}

fn copy(py: Python<'_>, from: &[u8], to: &mut [u8], release: Release) -> PyResult<()> {
    Region::new(&COPY, from.len()).release(release).run(py, |task| {
        for (from, to) in from.chunks(PIECE).zip(to.chunks_mut(PIECE)) {
            to.copy_from_slice(from);
            task.check()?;
        }
        Ok::<_, Stopped>(())
    })
}

/// How many characters there are, and 0x7f, 0xff, 0xffff or the largest of all if none is larger; `None` when the bytes are
/// not UTF-8.
fn measure(value: &[u8], task: &Task<'_>) -> Result<Option<(usize, u32)>, Stopped> {
    let (mut rest, mut characters, mut largest) = (value, 0, 0);
    while !rest.is_empty() {
        let Some(text) = beginning(rest) else { return Ok(None) };
        if is_ascii(text.as_bytes()) {
            characters += text.len();
        } else {
            characters += text.chars().count();
            largest = text.chars().fold(largest, |largest, character| largest.max(character as u32));
        }
        rest = &rest[text.len()..];
        task.check()?;
    }
    let width = [0x7f, 0xff, 0xffff].into_iter().find(|&width| largest <= width);
    Ok(Some((characters, width.unwrap_or(0x10_ffff))))
}

/// The first whole characters, about as many as make a piece; `None` when they are not UTF-8.
fn beginning(rest: &[u8]) -> Option<&str> {
    let piece = &rest[..rest.len().min(PIECE)];
    match std::str::from_utf8(piece) {
        Ok(text) => Some(text),
        // The end of the piece may cut a character.
        Err(error) if error.error_len().is_none() && piece.len() < rest.len() => {
            std::str::from_utf8(&piece[..error.valid_up_to()]).ok()
        }
        Err(_) => None,
    }
}

/// Writes the characters of what is UTF-8.
fn fill<Unit: TryFrom<u32> + Default + Send>(
    py: Python<'_>,
    value: &[u8],
    to: &mut [Unit],
    run: Region<'_>,
) -> PyResult<()> {
    run.run(py, |task| {
        let (mut rest, mut places) = (value, to.iter_mut());
        while let Some(text) = beginning(rest).filter(|text| !text.is_empty()) {
            for (character, place) in text.chars().zip(&mut places) {
                *place = Unit::try_from(character as u32).unwrap_or_default();
            }
            rest = &rest[text.len()..];
            task.check()?;
        }
        Ok::<_, Stopped>(())
    })
}
