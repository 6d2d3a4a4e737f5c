//! Kind "str": exact `str` objects, made one at a time with the lock held.

use offlock_core::memory;
use offlock_core::text::{Piece, StrKind};
use pyo3::prelude::*;

use super::object;
use super::str_header::{self, InPlace, NewStr};
use crate::error::no_memory;
use crate::large::LARGE;
use crate::region::aside;

/// Makes exact `str` objects.
pub(crate) struct ExactStrBuilder<'py> {
    py: Python<'py>,
    in_place: Option<InPlace>,
    /// Memory for a piece, aligned for every kind.
    scratch: Vec<u32>,
}

impl<'py> ExactStrBuilder<'py> {
    pub(crate) fn new(py: Python<'py>) -> Self {
        Self { py, in_place: str_header::in_place(), scratch: Vec::new() }
    }

    /// A new reference.
    #[inline]
    pub(crate) fn make(&mut self, piece: &Piece<'_>) -> PyResult<Bound<'py, PyAny>> {
        match self.in_place {
            Some(in_place) if is_usual(piece) => {
                let made = self.written(in_place, piece, |piece, room| piece.write(room));
                made.ok_or_else(|| failure(self.py))
            }
            _ => self.make_unusual(piece),
        }
    }

    #[cold]
    #[inline(never)]
    fn make_unusual(&mut self, piece: &Piece<'_>) -> PyResult<Bound<'py, PyAny>> {
        match self.in_place {
            Some(in_place) if !is_shared(piece) => {
                let py = self.py;
                let aside = |piece: &Piece<'_>, room: &mut [u8]| aside(py, || piece.write(room));
                self.written(in_place, piece, aside).ok_or_else(|| failure(py))
            }
            _ => self.copied(piece),
        }
    }

    /// `None`, with an exception set, when there is no memory. (A `PyResult` would be returned through
    /// memory.)
    #[inline]
    fn written(
        &self,
        in_place: InPlace,
        piece: &Piece<'_>,
        write: impl FnOnce(&Piece<'_>, &mut [u8]),
    ) -> Option<Bound<'py, PyAny>> {
        let mut new = NewStr::new(self.py, in_place, piece.kind, piece.chars)?;
        write(piece, new.contents());
        Some(new.finish())
    }

    /// For strings that CPython shares, and where strings cannot be written in place.
    fn copied(&mut self, piece: &Piece<'_>) -> PyResult<Bound<'py, PyAny>> {
        let more = piece.chars.saturating_sub(self.scratch.len());
        memory::reserve(&mut self.scratch, more).map_err(no_memory)?;
        self.scratch.resize(piece.chars, 0);
        let memory = &mut bytemuck::cast_slice_mut::<u32, u8>(&mut self.scratch)[..piece.bytes()];
        piece.write(memory);
        object::str_of_units(self.py, memory, piece.kind.width())
    }
}

/// Whether CPython keeps one shared object for this text.
#[inline]
pub(crate) fn is_shared(piece: &Piece<'_>) -> bool {
    piece.chars == 0 || piece.chars == 1 && piece.kind <= StrKind::Latin1
}

/// Whether the interpreter shares no such object, and writing one takes negligible time.
#[inline]
const fn is_usual(piece: &Piece<'_>) -> bool {
    const WIDEST: usize = 4;
    piece.chars >= 2 && piece.chars < LARGE / WIDEST
}

#[cold]
fn failure(py: Python<'_>) -> PyErr {
    PyErr::fetch(py)
}
