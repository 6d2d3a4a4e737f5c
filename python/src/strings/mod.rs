//! Millions of strings at once: found, checked and laid out without the lock, and returned to Python with it.
//!
//! An operation ([`ops`]) cuts a text with the core. A [`batch`] makes strings of the pieces, and puts them
//! into a tuple or list. Each kind of string has a file in `cpython/`: `exact_str`, `str_block`, `str_view`.
//! [`long_str`] makes single long strings.

mod adjacent;
mod arrow;
mod arrow_abi;
pub(crate) mod batch;
pub(crate) mod error;
mod inspect;
pub(crate) mod long_str;
mod ops;
mod places;
pub(crate) mod source;

use pyo3::pymodule;

/// The extension module `offlock._offlock.strings`.
#[pymodule]
pub(crate) mod strings {
    #[pymodule_export]
    use crate::strings::inspect::{blocks, compact, enable_blocks, retained, unavailable, view_class};
    #[pymodule_export]
    use crate::strings::ops::{PyArena, columns, decode_many, from_arrow, from_offsets, lines, split};
}
