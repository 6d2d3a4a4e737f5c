//! Ractors: whether the calling one is the main one.

use std::sync::OnceLock;

use rb_sys::{
    rb_ractor_local_key_t, rb_ractor_local_storage_ptr, rb_ractor_local_storage_ptr_newkey,
    rb_ractor_local_storage_ptr_set, rb_ractor_local_storage_type,
};

/// Set in the main Ractor, which loads the extension, and in no other.
static KEY: OnceLock<Key> = OnceLock::new();

struct Key(rb_ractor_local_key_t);

// SAFETY: a key that Ruby made for all threads and Ractors.
unsafe impl Send for Key {}
// SAFETY: as above.
unsafe impl Sync for Key {}

/// Remembers that the calling Ractor is the main one.
pub(crate) fn mark_main() {
    static HERE: u8 = 1;
    // SAFETY: makes a key whose values need no freeing, and stores the address of something that lives for ever.
    KEY.get_or_init(|| unsafe {
        let key = rb_ractor_local_storage_ptr_newkey(&raw const NOTHING_TO_FREE);
        rb_ractor_local_storage_ptr_set(key, (&raw const HERE).cast_mut().cast());
        Key(key)
    });
}

static NOTHING_TO_FREE: rb_ractor_local_storage_type =
    rb_ractor_local_storage_type { mark: None, free: None };

/// Whether the calling Ractor is the main one. Must be called with the lock held.
pub(crate) fn is_main() -> bool {
    // SAFETY: a key that exists.
    KEY.get().is_none_or(|key| !unsafe { rb_ractor_local_storage_ptr(key.0) }.is_null())
}
