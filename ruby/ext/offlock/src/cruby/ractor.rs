//! Ractors: which one is the main one, and the data that each keeps for itself.

use std::ffi::c_void;
use std::marker::PhantomData;
use std::sync::OnceLock;

use rb_sys::*;

use super::data::{Marker, marker};
use super::gvl::{Gvl, Natives};

/// Declares that every Ractor may call the methods of this extension.
pub(crate) fn declare_safe() {
    // SAFETY: they may: there is no mutable state outside of objects.
    unsafe { rb_ext_ractor_safe(true) };
}

/// Set in the main Ractor, which loads the extension, and in no other.
static MAIN: OnceLock<Key> = OnceLock::new();

#[derive(Clone, Copy)]
struct Key(rb_ractor_local_key_t);

// SAFETY: Ruby made the key for all threads and Ractors.
unsafe impl Send for Key {}
// SAFETY: the key is a constant once Ruby has made it.
unsafe impl Sync for Key {}

static NOTHING_TO_FREE: rb_ractor_local_storage_type =
    rb_ractor_local_storage_type { mark: None, free: None };

/// Records that the calling Ractor is the main one.
pub(crate) fn mark_main() {
    static HERE: u8 = 1;
    // SAFETY: makes a key whose values need no freeing, and stores the address of a value that lives forever.
    MAIN.get_or_init(|| unsafe {
        let key = rb_ractor_local_storage_ptr_newkey(&raw const NOTHING_TO_FREE);
        rb_ractor_local_storage_ptr_set(key, (&raw const HERE).cast_mut().cast());
        Key(key)
    });
}

/// Returns whether the calling Ractor is the main one. The calling thread must hold the lock.
pub(crate) fn is_main() -> bool {
    // SAFETY: an existing key.
    MAIN.get().is_none_or(|key| !unsafe { rb_ractor_local_storage_ptr(key.0) }.is_null())
}

/// Data that a Ractor keeps for itself.
pub(crate) trait Local: Default + 'static {
    /// Marks the Ruby objects that it refers to.
    fn mark(&self, marker: &Marker);
}

/// A `T` for each Ractor, made on first use.
pub(crate) struct RactorLocal<T> {
    key: OnceLock<Key>,
    kind: rb_ractor_local_storage_type,
    holds: PhantomData<fn() -> T>,
}

impl<T: Local> RactorLocal<T> {
    pub(crate) const fn new() -> Self {
        let kind = rb_ractor_local_storage_type { mark: Some(mark::<T>), free: Some(free::<T>) };
        Self { key: OnceLock::new(), kind, holds: PhantomData }
    }

    /// The `T` of the calling Ractor.
    pub(crate) fn own(&'static self, _: &Gvl) -> RactorOwn<T> {
        // SAFETY: the functions match the stored data, and live forever.
        let key = *self
            .key
            .get_or_init(|| Key(unsafe { rb_ractor_local_storage_ptr_newkey(&raw const self.kind) }));
        // SAFETY: an existing key, and a pointer of this type or null. The data is freed with the Ractor.
        unsafe {
            let mut own: *mut T = rb_ractor_local_storage_ptr(key.0).cast();
            if own.is_null() {
                own = Box::into_raw(Box::default());
                rb_ractor_local_storage_ptr_set(key.0, own.cast());
            }
            RactorOwn(own)
        }
    }
}

/// The `T` of the calling Ractor. Only its own threads use it, one at a time.
pub(crate) struct RactorOwn<T>(*mut T);

impl<T> Clone for RactorOwn<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for RactorOwn<T> {}

impl<T> RactorOwn<T> {
    #[inline(always)]
    pub(crate) fn get_mut(self, _: &mut Natives) -> &mut T {
        // SAFETY: lives as long as the Ractor, whose lock the caller holds; there is no other reference,
        // because each is borrowed from `Natives`.
        unsafe { &mut *self.0 }
    }
}

unsafe extern "C" fn mark<T: Local>(own: *mut c_void) {
    // SAFETY: the pointer that `own` stored; there is no mutable reference to it while the collector runs.
    unsafe { (*own.cast::<T>()).mark(&marker()) }
}

unsafe extern "C" fn free<T: Local>(own: *mut c_void) {
    // SAFETY: the pointer that `own` stored, freed once.
    drop(unsafe { Box::from_raw(own.cast::<T>()) });
}
