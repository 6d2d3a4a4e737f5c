//! Writes Python objects as a message. What is nested deep takes no more of the machine's stack.
//!
//! Packing needs the lock, and now and then lets other threads have it, or a signal's handler run. These may change whatever
//! is being packed, as a callback may: so every container that is open is held, its places are checked each time, and what
//! is borrowed from it is used up before the next pause.
//!
//! [`writer`] goes through containers that are open ([`frame`]). What is in them is written by [`scalars`], [`containers`], and,
//! where it is of a rarer type, [`other`].

mod containers;
mod frame;
mod options;
mod other;
mod scalars;
mod writer;

use offlock_core::msgpack::write::{self, Sink};
use pyo3::prelude::*;

use crate::gil_yield::Yielder;
use frame::{OpenContainer, Pairs};
pub(super) use options::PackOptions;
use writer::Writer;

/// Appends `object` to `out`.
#[inline]
pub(super) fn pack<'py>(
    object: &Bound<'py, PyAny>,
    options: &PackOptions,
    out: &mut impl Sink,
) -> PyResult<()> {
    let py = object.py();
    let mut packer = Writer { py, options, out, yielder: Yielder::of(options.release) };
    packer.whole(object).map_err(|trouble| trouble.into_exception(py))
}

/// Appends a map of `length` pairs.
pub(super) fn pack_pairs(
    pairs: &Bound<'_, PyAny>,
    length: usize,
    options: &PackOptions,
    out: &mut impl Sink,
) -> PyResult<()> {
    let py = pairs.py();
    write::map_header(out, length);
    let pairs = pairs.try_iter()?;
    let yielder = Yielder::of(options.release);
    let mut packer = Writer { py, options, out, yielder };
    let mut frame = Pairs { pairs, left: length, key: None, value: None };
    let result = match packer.pairs(&mut frame, 0) {
        Ok(None) => Ok(()),
        Ok(Some(child)) => packer.finish(OpenContainer::Pairs(frame), child, 0),
        Err(trouble) => Err(trouble.within(|| OpenContainer::Pairs(frame).step())),
    };
    result.map_err(|trouble| trouble.into_exception(py))
}

/// Appends an extension, whose payload is the owner's, or nobody's but the caller's.
pub(super) fn pack_ext(
    owner: &Bound<'_, PyAny>,
    kind: i8,
    payload: &[u8],
    options: &PackOptions,
    out: &mut impl Sink,
) -> PyResult<()> {
    let py = owner.py();
    write::ext_header(out, kind, payload.len());
    let mut packer = Writer { py, options, out, yielder: Yielder::of(options.release) };
    packer.content(owner, payload).map_err(|trouble| trouble.into_exception(py))
}
