//! Writes Python objects as a message. Deeply nested containers do not recurse on the machine's stack.
//!
//! Packing needs the lock, and regularly lets other threads hold it, or a signal handler run. These may
//! change the objects that are being packed, as a callback may. Therefore every open container is held, its
//! places are checked each time, and borrowed references are last used before the next pause.
//!
//! [`writer`] goes through the open containers ([`frame`]). [`scalars`] and [`containers`] write the values
//! in them, and [`other`] those of the rarer types.

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

/// Appends an extension, whose payload belongs to the owner or to the caller alone.
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
