//! Kind "str": exact `str` objects, one at a time, by CPython's public functions.

use std::convert::Infallible;

use offlock_core::memory;
use offlock_core::text::{Piece, StrKind};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::errors::no_memory;

use super::layout::{Compact, Unknown};
use crate::bulk::LARGE;
use crate::objects::kept;
use crate::region::aside;

/// The layout of exact `str` objects, observed once.
pub(super) fn layout(py: Python<'_>) -> Result<&'static Compact, &'static Unknown> {
    static LAYOUT: PyOnceLock<Result<Compact, Unknown>> = PyOnceLock::new();
    let Ok(layout) = kept(&LAYOUT, py, || Ok::<_, Infallible>(Compact::observe(py)));
    layout.as_ref()
}

/// Makes exact `str` objects, with the lock held.
pub(super) struct Maker<'py> {
    py: Python<'py>,
    headers: Option<[usize; 4]>,
    /// Room for a piece, aligned for every kind.
    scratch: Vec<u32>,
}

impl<'py> Maker<'py> {
    pub(super) fn new(py: Python<'py>) -> Self {
        Self { py, headers: layout(py).ok().map(|layout| layout.headers), scratch: Vec::new() }
    }

    /// A new reference.
    #[inline]
    pub(super) fn make(&mut self, piece: &Piece<'_>) -> PyResult<Bound<'py, PyAny>> {
        match self.headers {
            Some(headers) if is_usual(piece) => {
                let made = self
                    .written_in_place(piece, headers[piece.kind as usize], |piece, room| piece.write(room));
                made.ok_or_else(|| failure(self.py))
            }
            _ => self.make_unusual(piece),
        }
    }

    #[cold]
    #[inline(never)]
    fn make_unusual(&mut self, piece: &Piece<'_>) -> PyResult<Bound<'py, PyAny>> {
        match self.headers {
            Some(headers) if !is_shared(piece) => {
                let py = self.py;
                let aside = |piece: &Piece<'_>, room: &mut [u8]| aside(py, || piece.write(room));
                let made = self.written_in_place(piece, headers[piece.kind as usize], aside);
                made.ok_or_else(|| failure(py))
            }
            _ => self.copied(piece),
        }
    }

    /// `None`, with an exception set, when there is no memory. (A `PyResult` would be handed over through memory.)
    #[inline]
    fn written_in_place(
        &self,
        piece: &Piece<'_>,
        header: usize,
        write: impl FnOnce(&Piece<'_>, &mut [u8]),
    ) -> Option<Bound<'py, PyAny>> {
        // SAFETY: the lock is held. A new object has room for its characters behind its header, which CPython has
        // aligned for them, and nobody else refers to it.
        unsafe {
            let object = ffi::PyUnicode_New(piece.chars.cast_signed(), largest_character(piece.kind));
            let object = Bound::from_owned_ptr_or_opt(self.py, object)?;
            let data = object.as_ptr().cast::<u8>().add(header);
            write(piece, std::slice::from_raw_parts_mut(data, piece.bytes()));
            Some(object)
        }
    }

    /// For strings of which CPython keeps one, and for interpreters whose layout is not known.
    fn copied(&mut self, piece: &Piece<'_>) -> PyResult<Bound<'py, PyAny>> {
        let more = piece.chars.saturating_sub(self.scratch.len());
        memory::reserve(&mut self.scratch, more).map_err(no_memory)?;
        self.scratch.resize(piece.chars, 0);
        let memory = &mut bytemuck::cast_slice_mut::<u32, u8>(&mut self.scratch)[..piece.bytes()];
        piece.write(memory);
        // SAFETY: the lock is held; the memory holds this many characters of this width.
        unsafe {
            let width = i32::try_from(piece.kind.width()).expect("at most four");
            let object =
                ffi::PyUnicode_FromKindAndData(width, memory.as_ptr().cast(), piece.chars.cast_signed());
            Bound::from_owned_ptr_or_err(self.py, object)
        }
    }
}

/// Whether CPython keeps one object of this text for all.
#[inline]
pub(super) fn is_shared(piece: &Piece<'_>) -> bool {
    piece.chars == 0 || piece.chars == 1 && piece.kind <= StrKind::Latin1
}

/// Whether the interpreter keeps none such, and to write it takes no time to speak of.
#[inline]
const fn is_usual(piece: &Piece<'_>) -> bool {
    const WIDEST: usize = 4;
    piece.chars >= 2 && piece.chars < LARGE / WIDEST
}

#[cold]
fn failure(py: Python<'_>) -> PyErr {
    PyErr::fetch(py)
}

/// Any character of this kind makes `PyUnicode_New` choose it.
pub(super) const fn largest_character(kind: StrKind) -> ffi::Py_UCS4 {
    match kind {
        StrKind::Ascii => 0x7F,
        StrKind::Latin1 => 0xFF,
        StrKind::Ucs2 => 0xFFFF,
        StrKind::Ucs4 => 0x10_FFFF,
    }
}
