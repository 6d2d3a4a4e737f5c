//! Map keys that were built already, kept by one thread, one decoding or one `Unpacker`.

use std::cell::RefCell;

use offlock_core::msgpack::ShortKey;
use pyo3::ffi as c;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

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
    key: ShortKey,
    text: Py<PyAny>,
}

const BITS: u32 = 9;

impl KeyCache {
    /// The str of a key that was met before.
    #[inline(always)]
    pub(super) fn get<'py>(&self, py: Python<'py>, key: &ShortKey) -> Option<Bound<'py, PyAny>> {
        match self.places.get(key.place::<BITS>())? {
            Some(known) if known.key == *key => Some(known.text.bind(py).clone()),
            _ => None,
        }
    }

    /// The interned str of these ASCII characters, to be remembered.
    #[cold]
    pub(super) fn add<'py>(
        &mut self,
        py: Python<'py>,
        bytes: &[u8],
        key: ShortKey,
    ) -> PyResult<Bound<'py, PyAny>> {
        if self.places.is_empty() {
            self.places.resize_with(1 << BITS, || None);
        }
        let mut text = ffi::ascii(py, bytes)?;
        ffi::intern(&mut text);
        let known = Known { key, text: text.clone().unbind() };
        if let Some(old) = self.places[key.place::<BITS>()].replace(known) {
            old.text.drop_ref(py);
        }
        Ok(text)
    }
}

/// The keys that one thread has met in `unpackb`: they are in the dict of that thread, and go with it.
#[pyclass(frozen, module = "offlock._offlock.msgpack")]
#[derive(Default)]
struct Keys(RefCell<KeyCache>);

// SAFETY: no Python code can get at the object, and `of_this_thread` finds it for its own thread only.
unsafe impl Sync for Keys {}

/// Calls `body` with the keys of this thread; without, when they are in use further up the stack.
#[inline]
pub(super) fn of_this_thread<'py, T>(
    py: Python<'py>,
    body: impl FnOnce(Option<&mut KeyCache>) -> PyResult<T>,
) -> PyResult<T> {
    // SAFETY: returns a borrowed reference that lives as long as the thread, or null when there is no memory.
    let here = unsafe { c::PyThreadState_GetDict() };
    if here.is_null() {
        return body(None);
    }
    // SAFETY: a live object, exactly a dict.
    let here = unsafe { Borrowed::from_ptr(py, here).cast_unchecked::<PyDict>() };
    let name = intern!(py, "offlock.msgpack.keys");
    // SAFETY: a dict and a str; returns a borrowed reference, or null.
    let known = unsafe { c::PyDict_GetItemWithError(here.as_ptr(), name.as_ptr()) };
    let keys = if known.is_null() {
        let new = Bound::new(py, Keys::default())?;
        here.set_item(name, &new)?;
        new
    } else {
        // SAFETY: nobody else puts anything under this name. A reference is taken, because what runs meanwhile might clear
        // the dict.
        unsafe { Borrowed::from_ptr(py, known).cast_unchecked::<Keys>().to_owned() }
    };
    let mut cache = keys.get().0.try_borrow_mut().ok();
    body(cache.as_deref_mut())
}
