//! Map keys that were already built, cached per thread, per decoding or per `Unpacker`.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use offlock_core::msgpack::ShortKey;
use pyo3::ffi as c;
use pyo3::prelude::*;

use crate::cpython::{object, str_header, threads};
use crate::objects::name;

/// Caches the str of a key by its bytes: one key in each slot, the newest one wins.
///
/// It is made for the keys of records, which repeat in the same order. There are no chains to follow, so a
/// hostile message only makes it useless.
#[derive(Default)]
pub(super) struct KeyCache {
    places: Vec<Option<KnownKey>>,
}

struct KnownKey {
    key: ShortKey,
    text: Py<PyAny>,
}

const BITS: u32 = 9;

impl KeyCache {
    /// The cached str of a key.
    #[inline(always)]
    pub(super) fn get<'py>(&self, py: Python<'py>, key: &ShortKey) -> Option<Bound<'py, PyAny>> {
        match self.places.get(key.place::<BITS>())? {
            Some(known) if known.key == *key => Some(known.text.bind(py).clone()),
            _ => None,
        }
    }

    /// The str of these ASCII characters, which is cached; interned if possible.
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
        let mut text = str_header::ascii(py, bytes)?;
        intern(&mut text);
        let known = KnownKey { key, text: text.clone().unbind() };
        if let Some(old) = self.places[key.place::<BITS>()].replace(known) {
            old.text.drop_ref(py);
        }
        Ok(text)
    }
}

/// How many keys are interned in a process. An interned str may stay until the process ends, and messages may
/// come from untrusted sources. Programs have far fewer keys. Further keys are merely not interned: their
/// lookup in a dict takes a little longer.
const MOST_INTERNED: u32 = 1 << 14;

/// How many keys this extension was the first to intern.
static INTERNED: AtomicU32 = AtomicU32::new(0);

/// Replaces a new str with the interned one of the program, which is quicker to look up in a dict. Stops at
/// the limit.
#[cold]
pub(super) fn intern(text: &mut Bound<'_, PyAny>) {
    if INTERNED.load(Ordering::Relaxed) >= MOST_INTERNED {
        return;
    }
    let is_new = object::intern(text);
    // Before 3.12 an interned str is freed with its last reference.
    if cfg!(Py_3_12) && is_new {
        INTERNED.fetch_add(1, Ordering::Relaxed);
    }
}

/// The keys that one thread has seen in `unpackb`: they are in that thread's dict, and are freed with it.
#[pyclass(frozen, module = "offlock._offlock.msgpack")]
#[derive(Default)]
struct Keys(RefCell<KeyCache>);

// SAFETY: no Python code can reach the object, and `of_this_thread` finds it for its own thread only.
unsafe impl Sync for Keys {}

impl Drop for Keys {
    fn drop(&mut self) {
        ERA.fetch_add(1, Ordering::Relaxed);
    }
}

/// Changes whenever the keys of some thread are freed.
static ERA: AtomicUsize = AtomicUsize::new(0);

/// The keys that are in the dict of a Python thread; guaranteed to be there until `ERA` changes.
#[derive(Clone, Copy)]
struct FoundKeys {
    thread: usize,
    era: usize,
    keys: *mut c::PyObject,
}

thread_local! {
    /// The last result, which saves a lookup in the dict.
    static FOUND: Cell<Option<FoundKeys>> = const { Cell::new(None) };
}

/// Calls `body` with the keys of this thread, or with `None` when an outer call on the stack uses them.
#[inline]
pub(super) fn of_this_thread<'py, T>(
    py: Python<'py>,
    body: impl FnOnce(Option<&mut KeyCache>) -> PyResult<T>,
) -> PyResult<T> {
    let thread = this_thread(py);
    let era = ERA.load(Ordering::Relaxed);
    let keys = match FOUND.try_with(Cell::get) {
        // SAFETY: the dict of this thread still keeps the object. A reference is taken, because `body` might
        // run code that clears the dict.
        Ok(Some(found)) if found.thread == thread && found.era == era => unsafe {
            Borrowed::from_ptr(py, found.keys).cast_unchecked::<Keys>().to_owned()
        },
        _ => match in_dict(py)? {
            Some(keys) => {
                let _ =
                    FOUND.try_with(|found| found.set(Some(FoundKeys { thread, era, keys: keys.as_ptr() })));
                keys
            }
            None => return body(None),
        },
    };
    let mut cache = keys.get().0.try_borrow_mut().ok();
    body(cache.as_deref_mut())
}

/// A number for the Python thread. With a lock one number suffices: `FOUND` is thread-local, so that no other
/// native thread uses the same keys at the same time.
#[inline]
fn this_thread(py: Python<'_>) -> usize {
    if cfg!(Py_GIL_DISABLED) { threads::current(py) } else { 0 }
}

/// The keys in the dict of this thread, made if needed; `None` when there is no memory for the dict.
#[cold]
fn in_dict(py: Python<'_>) -> PyResult<Option<Bound<'_, Keys>>> {
    let Some(here) = threads::dict(py) else { return Ok(None) };
    let name = name!("offlock.msgpack.keys");
    if let Some(known) = here.get_item(name)? {
        // SAFETY: no other code stores anything under this name.
        return Ok(Some(unsafe { known.cast_into_unchecked() }));
    }
    let new = Bound::new(py, Keys::default())?;
    here.set_item(name, &new)?;
    Ok(Some(new))
}
