//! `bytes` objects made of native memory, without the lock where that takes long.

use std::mem::MaybeUninit;

use offlock_core::{Stopped, memory};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::cpython::new_bytes::{NewBytes, too_large};
use crate::cpython::object;
use crate::error::no_memory;
use crate::large::{LARGE, Large, MemorySize};
use crate::operations::BYTES_COPY;
use crate::region::Region;

/// Bytes between two checks of the task.
const STRETCH: usize = 1 << 20;

/// A `bytes` of `content`, which is dropped. Large contents are copied, and freed, without the lock.
pub(crate) fn from_memory<C>(py: Python<'_>, content: C) -> PyResult<Bound<'_, PyBytes>>
where
    C: std::ops::Deref<Target = [u8]> + MemorySize + Send,
{
    copied(py, &Large::new(content))
}

/// A `bytes` of a part of a larger object.
pub(crate) fn copied<'py>(py: Python<'py>, content: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    if content.len() >= LARGE { joined(py, &[content]) } else { object::bytes(py, content) }
}

/// A `bytes` of all `parts`, one after the other.
pub(crate) fn joined<'py>(py: Python<'py>, parts: &[&[u8]]) -> PyResult<Bound<'py, PyBytes>> {
    let length = parts.iter().try_fold(0_usize, |sum, part| sum.checked_add(part.len()));
    let length = length.ok_or_else(too_large)?;
    if length < LARGE {
        return copied(py, &memory::joined(parts).map_err(no_memory)?);
    }
    let mut new = NewBytes::new(py, length)?;
    fill(py, new.memory(), parts)?;
    // SAFETY: the parts have as many bytes.
    unsafe { new.finish(length) }
}

/// Copies `parts` to memory of the same total size.
pub(crate) fn fill(py: Python<'_>, mut memory: &mut [MaybeUninit<u8>], parts: &[&[u8]]) -> PyResult<()> {
    Region::new(&BYTES_COPY, memory.len()).run(py, |task| {
        for stretch in parts.iter().flat_map(|part| part.chunks(STRETCH)) {
            task.check()?;
            let (here, rest) = std::mem::take(&mut memory).split_at_mut(stretch.len());
            // SAFETY: as many bytes, with no other reference.
            unsafe {
                here.as_mut_ptr().cast::<u8>().copy_from_nonoverlapping(stretch.as_ptr(), stretch.len())
            };
            memory = rest;
        }
        Ok::<_, Stopped>(())
    })
}
