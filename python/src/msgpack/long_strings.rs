//! Long bytes and strings, which are filled without the lock.

use offlock_core::Stopped;
use offlock_core::msgpack::is_ascii;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::cpython::new_bytes::NewBytes;
use crate::cpython::{object, str_header};
use crate::operations::MSGPACK_COPY;
use crate::region::{Region, Release};
use crate::strings::long_str;

/// How many bytes are copied between two checks of the task.
const PIECE: usize = 256 << 10;

/// A bytes.
#[cold]
pub(super) fn bytes<'py>(py: Python<'py>, value: &[u8], release: Release) -> PyResult<Bound<'py, PyBytes>> {
    if value.len() < MSGPACK_COPY.break_even {
        return object::bytes(py, value);
    }
    let mut new = NewBytes::new(py, value.len())?;
    let room = new.contents();
    Region::new(&MSGPACK_COPY, value.len()).release(release).run(py, |task| {
        for (from, to) in value.chunks(PIECE).zip(room.chunks_mut(PIECE)) {
            to.copy_from_slice(from);
            task.check()?;
        }
        Ok::<_, Stopped>(())
    })?;
    // SAFETY: all of it was written.
    unsafe { new.finish(value.len()) }
}

/// A str; `None` when the bytes are not plain UTF-8, or too short to benefit.
#[cold]
pub(super) fn text<'py>(
    py: Python<'py>,
    value: &[u8],
    release: Release,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    if value.len() < MSGPACK_COPY.break_even {
        return if is_ascii(value) { str_header::ascii(py, value).map(Some) } else { Ok(None) };
    }
    Ok(long_str::written(py, value, release)?.map(Bound::into_any))
}
