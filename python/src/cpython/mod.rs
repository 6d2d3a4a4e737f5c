//! The parts that depend on the internals of CPython: the layout of its objects, functions that it exports
//! without documenting them, its allocator, and its implementation of the lock. Each file covers one of them,
//! and offers it as safe functions and types.
//!
//! The assumptions are listed in `docs/safety.md`, with the consequences where one does not hold. [`init`]
//! decides once, when the extension is imported, which of them are relied on ([`assumptions`]): the layouts
//! that the hot paths need are checked then, on objects that CPython has made; assumptions that are expensive
//! to check are checked when they are first needed. Where a check fails, and everywhere with
//! `OFFLOCK_INTERNALS=0` in the environment, CPython's public functions are used instead.

pub(crate) mod allocator_hook;
pub(crate) mod assumptions;
pub(crate) mod block_pool;
pub(crate) mod buffer;
pub(crate) mod bytes_sink;
#[cfg(target_os = "linux")]
mod code_texts;
#[cfg(target_os = "linux")]
mod dict_lookup;
pub(crate) mod exact_str;
pub(crate) mod fastcall;
#[cfg(target_os = "linux")]
mod frame_layout;
#[cfg(target_os = "linux")]
mod frames;
#[cfg(target_os = "linux")]
pub(crate) mod gil_hooks;
pub(crate) mod gil_slot;
#[cfg(target_os = "linux")]
mod holder;
pub(crate) mod immortal_ints;
pub(crate) mod items;
#[cfg(target_os = "linux")]
pub(crate) mod known_functions;
pub(crate) mod late_init;
#[cfg(target_os = "linux")]
mod line_table;
#[cfg(target_os = "linux")]
mod memory;
pub(crate) mod new_bytes;
pub(crate) mod object;
pub(crate) mod pages;
#[cfg(all(target_os = "linux", Py_GIL_DISABLED))]
pub(crate) mod parking;
pub(crate) mod partial_sequence;
#[cfg(target_os = "linux")]
pub(crate) mod plt;
#[cfg(target_os = "linux")]
mod redirect;
pub(crate) mod sequence;
pub(crate) mod short_sequence;
pub(crate) mod str_block;
pub(crate) mod str_header;
pub(crate) mod str_layout;
pub(crate) mod str_view;
#[cfg(target_os = "linux")]
mod tasks;
#[cfg(target_os = "linux")]
pub(crate) mod thread_stacks;
pub(crate) mod threads;
#[cfg(all(target_os = "linux", Py_GIL_DISABLED))]
pub(crate) mod type_name;

use assumptions::Assumption;
use pyo3::prelude::*;

/// Checks one assumption.
type Probe = fn(Python<'_>) -> PyResult<bool>;

/// Decides which assumptions are relied on. Called once, while the extension is imported.
pub(crate) fn init(py: Python<'_>) {
    let probes: [(Assumption, Probe); 7] = [
        (Assumption::StrHeader, str_header::probe),
        (Assumption::BytesSize, new_bytes::probe),
        (Assumption::ItemArrays, sequence::probe),
        // These are checked when they are first needed.
        (Assumption::PrivateFunctions, |_| Ok(true)),
        (Assumption::ImmortalInts, |_| Ok(true)),
        (Assumption::StrObjects, |_| Ok(true)),
        (Assumption::ImportSlots, |_| Ok(true)),
    ];
    if assumptions::are_allowed() {
        for (assumption, probe) in probes {
            // An assumption that cannot be checked, for lack of memory, is not relied on.
            assumption.set(probe(py).unwrap_or(false));
        }
    }
}
