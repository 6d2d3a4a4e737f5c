//! Containers whose values are being written, and the place in them of the value written last.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyIterator};

use crate::cpython::items::dict_entry;
use crate::msgpack::numpy::Pieces;
use crate::msgpack::pack_error::{Step, key_shown};

/// A container whose values are being written.
pub(super) enum OpenContainer<'py> {
    List {
        list: Bound<'py, PyAny>,
        next: usize,
        length: usize,
    },
    Tuple {
        tuple: Bound<'py, PyAny>,
        next: usize,
    },
    Dict {
        dict: Bound<'py, PyDict>,
        at: isize,
        left: usize,
        value: Option<Bound<'py, PyAny>>,
    },
    /// The pairs of a subclass of dict, which may have its own order.
    Pairs(Pairs<'py>),
    /// The lists that numpy makes of an array.
    Rows(Rows<'py>),
}

pub(super) struct Pairs<'py> {
    pub(super) pairs: Bound<'py, PyIterator>,
    pub(super) left: usize,
    pub(super) key: Option<Bound<'py, PyAny>>,
    pub(super) value: Option<Bound<'py, PyAny>>,
}

pub(super) struct Rows<'py> {
    pub(super) pieces: Pieces<'py>,
    /// A list; none before the first one.
    pub(super) piece: Option<Bound<'py, PyAny>>,
    /// The next place of the piece.
    pub(super) next: usize,
    pub(super) done: usize,
}

impl OpenContainer<'_> {
    /// The place of the value that was written last.
    #[cold]
    pub(super) fn step(&self) -> Option<Step> {
        match self {
            Self::List { next, .. } | Self::Tuple { next, .. } => item_step(*next),
            Self::Dict { dict, at, value, .. } => entry_step(dict, *at, value.is_some()),
            Self::Pairs(Pairs { key, value, .. }) => key.as_ref().map(|key| key_step(key, value.is_some())),
            Self::Rows(rows) => item_step(rows.done),
        }
    }
}

/// The item before `next`.
pub(super) fn item_step(next: usize) -> Option<Step> {
    next.checked_sub(1).map(Step::Item)
}

/// The entry before `at`: its key if that was written last, else its value.
pub(super) fn entry_step(dict: &Bound<'_, PyDict>, at: isize, is_key: bool) -> Option<Step> {
    let mut before = at.checked_sub(1).filter(|&before| before >= 0)?;
    let (key, _) = dict_entry(dict, &mut before)?;
    Some(key_step(&key.to_owned(), is_key))
}

pub(super) fn key_step(key: &Bound<'_, PyAny>, is_key: bool) -> Step {
    let shown = key_shown(key);
    if is_key { Step::Key(shown) } else { Step::Value(shown) }
}

/// The result of writing an object of one of the rarer types.
pub(super) enum Outcome<'py> {
    Written,
    /// Its header is written.
    Open(OpenContainer<'py>),
    /// This object is to be written in its place.
    Replaced(Bound<'py, PyAny>),
    Unknown,
    /// An int that the format cannot express.
    TooWide,
}
