//! What depends on the insides of CPython: the layout of its objects, functions that it exports without documenting them,
//! its allocator, and how it takes its lock. Each file is about one of them, and offers it as safe functions and types.
//!
//! What is assumed is listed in `docs/safety.md`, with what happens where it does not hold. [`init`] decides once, when the
//! extension is imported, what is relied on ([`assumptions`]): the layouts that the hot paths need are looked at then, in
//! objects that CPython has made; what costs more to find out is looked at when it is first needed. Where something is not as
//! expected, and everywhere if the environment says `OFFLOCK_INTERNALS=0`, CPython's public functions are used in its place.

pub(crate) mod allocator_hook;
pub(crate) mod assumptions;
pub(crate) mod block_pool;
pub(crate) mod buffer;
pub(crate) mod bytes_sink;
pub(crate) mod exact_str;
pub(crate) mod fastcall;
#[cfg(target_os = "linux")]
pub(crate) mod gil_hooks;
pub(crate) mod immortal_ints;
pub(crate) mod items;
pub(crate) mod late_init;
pub(crate) mod new_bytes;
pub(crate) mod object;
pub(crate) mod pages;
pub(crate) mod partial_sequence;
#[cfg(target_os = "linux")]
pub(crate) mod plt;
pub(crate) mod sequence;
pub(crate) mod short_sequence;
pub(crate) mod str_block;
pub(crate) mod str_header;
pub(crate) mod str_layout;
pub(crate) mod str_view;
pub(crate) mod threads;

use assumptions::Assumption;
use pyo3::prelude::*;

/// Looks whether something is as it is assumed.
type Probe = fn(Python<'_>) -> PyResult<bool>;

/// Decides what is relied on. To be called once, while the extension is imported.
pub(crate) fn init(py: Python<'_>) {
    let probes: [(Assumption, Probe); 7] = [
        (Assumption::StrHeader, str_header::probe),
        (Assumption::BytesSize, new_bytes::probe),
        (Assumption::ItemArrays, sequence::probe),
        // These are looked at when they are first needed.
        (Assumption::PrivateFunctions, |_| Ok(true)),
        (Assumption::ImmortalInts, |_| Ok(true)),
        (Assumption::StrObjects, |_| Ok(true)),
        (Assumption::ImportSlots, |_| Ok(true)),
    ];
    if assumptions::are_allowed() {
        for (assumption, probe) in probes {
            // What cannot be looked at, for want of memory, is not relied on.
            assumption.set(probe(py).unwrap_or(false));
        }
    }
}
