//! Map keys that were built already, kept by one thread, one decoding or one `Unpacker`.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use offlock_core::msgpack::ShortKey;
use pyo3::ffi as c;
use pyo3::prelude::*;

use crate::cpython::{object, str_header, threads};
use crate::objects::name;

/// Remembers the str of a key by its bytes: one key in each place, the newest one wins.
///
/// It is made for the keys of records, which come again and again in the same order. There is no chain to walk, so a
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
    /// The str of a key that was met before.
    #[inline(always)]
    pub(super) fn get<'py>(&self, py: Python<'py>, key: &ShortKey) -> Option<Bound<'py, PyAny>> {
        match self.places.get(key.place::<BITS>())? {
            Some(known) if known.key == *key => Some(known.text.bind(py).clone()),
            _ => None,
        }
    }

    /// The str of these ASCII characters, to be remembered; interned if possible.
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

/// So many keys are interned in a process: an interned str may stay until the process ends, and messages may come from
/// strangers. Programs have far fewer keys. Those that come later are merely not interned: to look them up in a dict
/// takes a little longer.
const MOST_INTERNED: u32 = 1 << 14;

/// How many keys were interned that were not interned before.
static INTERNED: AtomicU32 = AtomicU32::new(0);

/// Makes of a new str the one that programs have of it as well, which is quicker to look up in a dict. Unless it is too late.
#[cold]
pub(super) fn intern(text: &mut Bound<'_, PyAny>) {
    if INTERNED.load(Ordering::Relaxed) >= MOST_INTERNED {
        return;
    }
    let is_new = object::intern(text);
    // Before 3.12 all of them go with their last reference.
    if cfg!(Py_3_12) && is_new {
        INTERNED.fetch_add(1, Ordering::Relaxed);
    }
}

/// The keys that one thread has met in `unpackb`: they are in the dict of that thread, and go with it.
#[pyclass(frozen, module = "offlock._offlock.msgpack")]
#[derive(Default)]
struct Keys(RefCell<KeyCache>);

// SAFETY: no Python code can get at the object, and `of_this_thread` finds it for its own thread only.
unsafe impl Sync for Keys {}

impl Drop for Keys {
    fn drop(&mut self) {
        ERA.fetch_add(1, Ordering::Relaxed);
    }
}

/// Ends whenever the keys of some thread go.
static ERA: AtomicUsize = AtomicUsize::new(0);

/// The keys that are in the dict of a Python thread; surely there until the era ends.
#[derive(Clone, Copy)]
struct FoundKeys {
    thread: usize,
    era: usize,
    keys: *mut c::PyObject,
}

thread_local! {
    /// What was found last, so that the dict need not be asked each time.
    static FOUND: Cell<Option<FoundKeys>> = const { Cell::new(None) };
}

/// Calls `body` with the keys of this thread; without, when they are in use further up the stack.
#[inline]
pub(super) fn of_this_thread<'py, T>(
    py: Python<'py>,
    body: impl FnOnce(Option<&mut KeyCache>) -> PyResult<T>,
) -> PyResult<T> {
    let thread = this_thread(py);
    let era = ERA.load(Ordering::Relaxed);
    let keys = match FOUND.try_with(Cell::get) {
        // SAFETY: the dict of this thread still keeps the object. A reference is taken, because what runs meanwhile might
        // clear the dict.
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

/// What Python knows the thread by. Where there is a lock it does not matter: nobody else uses what a thread of the system
/// has found while that runs.
#[inline]
fn this_thread(py: Python<'_>) -> usize {
    if cfg!(Py_GIL_DISABLED) { threads::current(py) } else { 0 }
}

/// The keys in the dict of this thread, made if need be; `None` when there is no memory for the dict.
#[cold]
fn in_dict(py: Python<'_>) -> PyResult<Option<Bound<'_, Keys>>> {
    let Some(here) = threads::dict(py) else { return Ok(None) };
    let name = name!("offlock.msgpack.keys");
    if let Some(known) = here.get_item(name)? {
        // SAFETY: nobody else puts anything under this name.
        return Ok(Some(unsafe { known.cast_into_unchecked() }));
    }
    let new = Bound::new(py, Keys::default())?;
    here.set_item(name, &new)?;
    Ok(Some(new))
}
