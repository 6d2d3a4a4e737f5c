//! Output of streams on its way to the caller.
//!
//! Large output is copied to its `bytes` without the lock, and that can be interrupted. A stream keeps what its caller did not get,
//! and returns it from the next call: no byte is lost.

use offlock_core::deflate::Bytes;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::bytes;
use crate::large::Large;
use crate::region::aside;

/// Returns the first `most` bytes of `made`. The others stay in `pending`, and so do all of them if copying fails or is
/// interrupted.
pub(crate) fn deliver<'py>(
    py: Python<'py>,
    made: Bytes,
    most: usize,
    pending: &mut Vec<u8>,
) -> PyResult<Bound<'py, PyBytes>> {
    let made = Large::new(made);
    let count = made.len().min(most);
    let delivered = bytes::copied(py, &made[..count]);
    let begin = if delivered.is_ok() { count } else { 0 };
    if begin < made.len() {
        *pending = made.into_inner().into_vec();
        if begin > 0 {
            aside(py, || drop(pending.drain(..begin)));
        }
    }
    delivered
}
