//! Map keys that were made already, kept by one Ractor, or by one `Unpacker` with the option `key_cache`.

use offlock_core::msgpack::ShortKey;
use rb_sys::*;
use std::ffi::c_void;
use std::sync::OnceLock;

use crate::cruby::raw as rb;

/// Remembers the String or Symbol of a key by its bytes: one key in each place, the newest one wins.
///
/// There is no chain to walk, so a hostile message only makes it useless.
#[derive(Default)]
pub(super) struct KeyCache {
    places: Vec<Option<(ShortKey, VALUE)>>,
}

const BITS: u32 = 8;

impl KeyCache {
    /// What was made of a key that was met before.
    #[inline(always)]
    pub(super) fn get(&self, key: &ShortKey) -> Option<VALUE> {
        match self.places.get(key.place::<BITS>())? {
            Some((known, made)) if known == key => Some(*made),
            _ => None,
        }
    }

    /// Remembers what was made of a key.
    #[cold]
    pub(super) fn add(&mut self, key: ShortKey, made: VALUE) {
        if self.places.is_empty() {
            self.places.resize(1 << BITS, None);
        }
        self.places[key.place::<BITS>()] = Some((key, made));
    }

    /// Shows what is remembered to the garbage collector.
    pub(super) fn mark(&self) {
        self.places.iter().flatten().for_each(|&(_, made)| rb::mark_object(made));
    }

    pub(super) fn size(&self) -> usize {
        self.places.capacity() * size_of::<Option<(ShortKey, VALUE)>>()
    }
}

/// The keys of one Ractor.
#[derive(Default)]
struct Keys {
    strings: KeyCache,
    symbols: KeyCache,
}

/// The Strings, or Symbols, of the calling Ractor. Only its own threads use them, one at a time: nobody may hold a
/// reference while another can run.
pub(super) fn of_this_ractor(symbols: bool) -> *mut KeyCache {
    let place = *PLACE.get_or_init(make_place);
    // SAFETY: a key that exists, and a pointer of this kind or null. What is stored is freed with the Ractor.
    unsafe {
        let mut keys: *mut Keys = rb_ractor_local_storage_ptr(place.0).cast();
        if keys.is_null() {
            keys = Box::into_raw(Box::default());
            rb_ractor_local_storage_ptr_set(place.0, keys.cast());
        }
        if symbols { &raw mut (*keys).symbols } else { &raw mut (*keys).strings }
    }
}

/// Where each Ractor keeps its own; made once.
static PLACE: OnceLock<Input> = OnceLock::new();

#[derive(Clone, Copy)]
struct Input(rb_ractor_local_key_t);

// SAFETY: a key that Ruby made for all threads and Ractors.
unsafe impl Send for Input {}
// SAFETY: as above.
unsafe impl Sync for Input {}

static DATA_TYPE: rb_ractor_local_storage_type =
    rb_ractor_local_storage_type { mark: Some(mark_keys), free: Some(free_keys) };

fn make_place() -> Input {
    // SAFETY: the functions fit what is stored, and live for ever.
    Input(unsafe { rb_ractor_local_storage_ptr_newkey(&raw const DATA_TYPE) })
}

unsafe extern "C" fn mark_keys(keys: *mut c_void) {
    // SAFETY: what `of_this_ractor` stored; nobody holds a reference to it while the collector runs.
    let keys = unsafe { &*keys.cast::<Keys>() };
    keys.strings.mark();
    keys.symbols.mark();
}

unsafe extern "C" fn free_keys(keys: *mut c_void) {
    // SAFETY: what `of_this_ractor` stored, freed once.
    drop(unsafe { Box::from_raw(keys.cast::<Keys>()) });
}
