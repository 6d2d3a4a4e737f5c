//! Millions of strings at once: found, checked and laid out without the lock, and handed to Python under it.
//!
//! An operation ([`ops`]) cuts a text with the core, a [`batch`] makes strings of the pieces, and puts them
//! into a tuple or list. The kinds of string are in one file each: [`exact`], [`block`], [`view`]; one
//! string that is long is [`long`]'s. The last two of the kinds write objects themselves: they know how from [`layout`], and where from [`pool`].

mod arrow;
mod batch;
mod block;
mod exact;
mod failed;
mod hook;
mod layout;
mod long;
mod memory;
mod ops;
mod pool;
mod state;
mod view;

pub(crate) use batch::{Kind, Made, Maker};
pub(crate) use hook::is_ready;
pub(crate) use long::{decode, decode_short, from_utf8};

use pyo3::pymodule;

/// The extension module `offlock._offlock.strings`.
#[pymodule]
pub(crate) mod strings {
    #[pymodule_export]
    use super::ops::{PyArena, columns, decode_many, from_arrow, from_offsets, lines, split};
    #[pymodule_export]
    use super::state::{blocks, compact, enable_blocks, retained, unavailable, view_class};
}
