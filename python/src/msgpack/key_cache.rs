//! Map keys that were built already, kept by one decoding or one `Unpacker`.

use pyo3::prelude::*;

use super::ffi;

/// Remembers the str of a key by its bytes: one key in each place, the newest one wins.
///
/// It is made for the keys of records, which come again and again in the same order. There is no chain to walk, so a
/// hostile message only makes it useless.
#[derive(Default)]
pub(super) struct KeyCache {
    places: Vec<Option<Known>>,
}

struct Known {
    /// The UTF-8 of `text`, which keeps it alive.
    start: *const u8,
    length: usize,
    text: Py<PyAny>,
}

// SAFETY: `start` points into the immutable characters of `text`, which may be read from any thread.
unsafe impl Send for Known {}

const PLACES: usize = 512;
const LONGEST: usize = 32;

impl KeyCache {
    /// The interned str of these bytes, when they are short ASCII; `None` for others.
    #[inline]
    pub(super) fn get<'py>(&mut self, py: Python<'py>, key: &[u8]) -> PyResult<Option<Bound<'py, PyAny>>> {
        if let Some(Some(known)) = self.places.get(place_of(key))
            && known.bytes() == key
        {
            return Ok(Some(known.text.bind(py).clone()));
        }
        self.add(py, key)
    }

    #[cold]
    fn add<'py>(&mut self, py: Python<'py>, key: &[u8]) -> PyResult<Option<Bound<'py, PyAny>>> {
        if key.len() > LONGEST || key.len() < 2 || !key.is_ascii() {
            return Ok(None);
        }
        if self.places.is_empty() {
            self.places.resize_with(PLACES, || None);
        }
        let mut new = ffi::ascii(py, key)?;
        ffi::intern(&mut new);
        let bytes = ffi::utf8_of(&new)?;
        let known = Known { start: bytes.as_ptr(), length: bytes.len(), text: new.clone().unbind() };
        if let Some(old) = self.places[place_of(key)].replace(known) {
            old.text.drop_ref(py);
        }
        Ok(Some(new))
    }
}

impl Known {
    #[inline]
    const fn bytes(&self) -> &[u8] {
        // SAFETY: the UTF-8 of a str neither moves nor changes while the str lives, which `text` sees to.
        unsafe { std::slice::from_raw_parts(self.start, self.length) }
    }
}

#[inline]
fn place_of(key: &[u8]) -> usize {
    let (words, rest) = key.as_chunks::<8>();
    let mut hash = key.len() as u64;
    for word in words {
        hash = (hash ^ u64::from_le_bytes(*word)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }
    let last = rest.iter().fold(0, |last, &byte| last << 8 | u64::from(byte));
    let hash = (hash ^ last).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (hash >> 40) as usize % PLACES
}
