//! New `str` objects, whose characters are written in place.
//!
//! `PyUnicode_New` makes a `str` with capacity for its characters right after its header, which is one struct
//! for ASCII and another one for everything else. CPython has macros for the address; they are not part of
//! its stable interface, and the fields that they read change. [`probe`] therefore checks one `str` of each
//! kind when the extension is imported.

use offlock_core::text::StrKind;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::assumptions::Assumption;
use super::object::{self, owned};

/// The bytes before the characters.
#[inline]
const fn header(kind: StrKind) -> usize {
    match kind {
        StrKind::Ascii => size_of::<ffi::PyASCIIObject>(),
        _ => size_of::<ffi::PyCompactUnicodeObject>(),
    }
}

/// A character for which `PyUnicode_New` chooses this kind.
const fn largest_character(kind: StrKind) -> ffi::Py_UCS4 {
    match kind {
        StrKind::Ascii => 0x7F,
        StrKind::Latin1 => 0xFF,
        StrKind::Ucs2 => 0xFFFF,
        StrKind::Ucs4 => 0x10_FFFF,
    }
}

/// Proof that new strings can be written in place.
#[derive(Clone, Copy)]
pub(crate) struct InPlace(());

/// `None` where the position of a `str`'s characters is not known.
#[inline(always)]
pub(crate) fn in_place() -> Option<InPlace> {
    Assumption::StrHeader.holds().then_some(InPlace(()))
}

/// Whether a new `str` of each kind has its characters where [`header`] says, with a zero after them, and its
/// length where the struct declares it.
pub(super) fn probe(py: Python<'_>) -> PyResult<bool> {
    for (kind, text) in StrKind::ALL.into_iter().zip(["a sample", "a sämple", "a sample—", "a sample 𐩡"])
    {
        let sample = object::text(py, text)?;
        let expected: Vec<u8> = text.chars().chain(['\0']).flat_map(|c| units(c, kind)).collect();
        let size: usize = sample.call_method0("__sizeof__")?.extract()?;
        // SAFETY: the object itself reports this size; its memory is initialized up to the zero after the
        // characters.
        let is_known = size == header(kind) + expected.len()
            && unsafe {
                let start = sample.as_ptr().cast::<u8>().add(header(kind));
                let length = (*sample.as_ptr().cast::<ffi::PyASCIIObject>()).length;
                std::slice::from_raw_parts(start, expected.len()) == expected
                    && length.cast_unsigned() == text.chars().count()
            };
        if !is_known {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The bytes per character.
fn units(character: char, kind: StrKind) -> Vec<u8> {
    let bytes = u32::from(character).to_ne_bytes();
    let used = if cfg!(target_endian = "little") { 0..kind.width() } else { 4 - kind.width()..4 };
    bytes[used].to_vec()
}

/// A `str` with no other reference, whose characters are to be written.
pub(crate) struct NewStr<'py> {
    object: Bound<'py, PyAny>,
    kind: StrKind,
    chars: usize,
}

impl<'py> NewStr<'py> {
    /// A `str` with capacity for `chars` characters, which must not be one that CPython shares. `None`, with
    /// an exception set, when there is no memory. (A `PyResult` would be returned through memory.)
    #[inline(always)]
    pub(crate) fn new(py: Python<'py>, _: InPlace, kind: StrKind, chars: usize) -> Option<Self> {
        assert!(chars > usize::from(kind <= StrKind::Latin1));
        // SAFETY: this thread is attached. Returns a new reference, or null with an exception set.
        let object = unsafe {
            let object = ffi::PyUnicode_New(chars.cast_signed(), largest_character(kind));
            Bound::from_owned_ptr_or_opt(py, object)?
        };
        Some(Self { object, kind, chars })
    }

    /// The memory for the characters, aligned for them.
    #[inline(always)]
    pub(crate) fn contents(&mut self) -> &mut [u8] {
        // SAFETY: a new object has memory for its characters after its header, as `probe` has checked, and
        // has no other reference. The caller writes that memory before reading it.
        unsafe {
            let start = self.object.as_ptr().cast::<u8>().add(header(self.kind));
            std::slice::from_raw_parts_mut(start, self.chars * self.kind.width())
        }
    }

    /// The finished object; all characters were written.
    #[inline(always)]
    pub(crate) fn finish(self) -> Bound<'py, PyAny> {
        self.object
    }

    /// The same as a `PyString`.
    pub(crate) fn finish_str(self) -> Bound<'py, PyString> {
        // SAFETY: it is one.
        unsafe { self.object.cast_into_unchecked() }
    }
}

/// A `str` of ASCII characters; `value` holds nothing else.
#[inline(always)]
pub(crate) fn ascii<'py>(py: Python<'py>, value: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    debug_assert!(value.is_ascii());
    if value.len() < 2 || in_place().is_none() {
        return object::utf8(py, value, None); // CPython shares one object for each of the shortest
    }
    // SAFETY: a new str for that many characters below 0x80 has that many bytes right after its header, as
    // `probe` has checked; it has no other reference yet, and the source is ASCII.
    unsafe {
        let object = ffi::PyUnicode_New(value.len().cast_signed(), 127);
        if !object.is_null() {
            let characters = object.cast::<u8>().add(header(StrKind::Ascii));
            object::copy_short(value, characters);
        }
        owned(py, object)
    }
}

/// The UTF-8 of a `str` of ASCII characters in CPython's usual form.
#[inline(always)]
pub(crate) fn ascii_of<'a>(text: Borrowed<'a, '_, PyString>) -> Option<&'a [u8]> {
    #[cfg(not(Py_3_14))]
    // SAFETY: reads the header of a str. The compact form has its characters right after the header, as
    // `probe` has checked.
    unsafe {
        let text = text.as_ptr();
        if ffi::PyUnicode_IS_COMPACT_ASCII(text) == 0 || in_place().is_none() {
            return None;
        }
        let characters = text.cast::<u8>().add(header(StrKind::Ascii));
        let length = (*text.cast::<ffi::PyASCIIObject>()).length;
        Some(std::slice::from_raw_parts(characters, length.cast_unsigned()))
    }
    #[cfg(Py_3_14)]
    {
        let _ = text; // the bit that marks the usual form is not known
        None
    }
}

/// Whether the UTF-8 exists: because the text is ASCII, or because it was requested before. Valid for CPython
/// 3.11 to 3.13; elsewhere the result is always true.
#[cfg(all(not(Py_GIL_DISABLED), not(Py_3_14)))]
pub(crate) fn has_utf8(text: &Bound<'_, PyString>) -> bool {
    // SAFETY: a live `str`; asking for its length made it ready. One of ASCII has no field for UTF-8 of its
    // own.
    unsafe {
        let object = text.as_ptr();
        in_place().is_none()
            || ffi::PyUnicode_IS_ASCII(object) != 0
            || !(*object.cast::<ffi::PyCompactUnicodeObject>()).utf8.is_null()
    }
}

#[cfg(any(Py_GIL_DISABLED, Py_3_14))]
pub(crate) fn has_utf8(_: &Bound<'_, PyString>) -> bool {
    true
}
