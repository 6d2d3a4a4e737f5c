//! Makes objects, which may start the garbage collector but runs no Ruby code.

use std::ffi::c_long;

use rb_sys::*;

use super::gvl::Gvl;
use super::object::{Array, Hash, Kind, Object, Str};

impl Gvl {
    /// An Integer.
    #[inline]
    pub(crate) fn int(&self, value: i64) -> Object {
        // SAFETY: makes an Integer of any value.
        Object::raw(unsafe { rb_ll2inum(value) })
    }

    /// An Integer.
    #[inline]
    pub(crate) fn uint(&self, value: u64) -> Object {
        // SAFETY: makes an Integer of any value.
        Object::raw(unsafe { rb_ull2inum(value) })
    }

    /// A Float.
    #[inline]
    pub(crate) fn float(&self, value: f64) -> Object {
        // SAFETY: makes a Float of any value.
        Object::raw(unsafe { rb_float_new(value) })
    }

    /// A binary String.
    #[inline]
    pub(crate) fn binary(&self, bytes: &[u8]) -> Str {
        // SAFETY: copies `len` bytes from the pointer.
        Str::raw(unsafe { rb_str_new(bytes.as_ptr().cast(), bytes.len() as c_long) })
    }

    /// A String in UTF-8, valid or not.
    #[inline]
    pub(crate) fn utf8(&self, bytes: &[u8]) -> Str {
        // SAFETY: copies `len` bytes from the pointer.
        Str::raw(unsafe { rb_utf8_str_new(bytes.as_ptr().cast(), bytes.len() as c_long) })
    }

    /// The interned frozen String of these characters, in UTF-8.
    #[inline]
    pub(crate) fn interned(&self, bytes: &[u8]) -> Str {
        // SAFETY: copies `len` bytes from the pointer; the encoding lives forever.
        Str::raw(unsafe {
            rb_enc_interned_str(bytes.as_ptr().cast(), bytes.len() as c_long, rb_utf8_encoding())
        })
    }

    /// The Symbol of these characters; raises `EncodingError` if they are not valid UTF-8.
    pub(crate) fn symbol(&self, bytes: &[u8]) -> Object {
        let length = bytes.len() as c_long;
        // SAFETY: copies `len` bytes from the pointer; the encoding lives forever.
        let known = unsafe { rb_check_symbol_cstr(bytes.as_ptr().cast(), length, rb_utf8_encoding()) };
        if known == Qnil as VALUE { self.symbol_of(self.utf8(bytes)) } else { Object::raw(known) }
    }

    /// The Symbol of a String; raises `EncodingError` if it is not valid.
    pub(crate) fn symbol_of(&self, string: Str) -> Object {
        // SAFETY: a String.
        Object::raw(unsafe { rb_str_intern(string.as_raw()) })
    }

    /// An empty Array with capacity for this many items.
    #[inline]
    pub(crate) fn array_with_capacity(&self, items: usize) -> Array {
        // SAFETY: makes an Array, or raises.
        Array::raw(unsafe { rb_ary_new_capa(items as c_long) })
    }

    /// An Array of these objects.
    pub(crate) fn array(&self, items: &[Object]) -> Array {
        // SAFETY: live objects, and their number.
        Array::raw(unsafe { rb_ary_new_from_values(items.len() as c_long, items.as_ptr().cast()) })
    }

    /// Appends to an Array; raises if the Array is frozen.
    #[inline]
    pub(crate) fn extend(&self, array: Array, items: &[Object]) {
        // SAFETY: an Array, live objects, and their number.
        unsafe { rb_ary_cat(array.as_raw(), items.as_ptr().cast(), items.len() as c_long) };
    }

    /// Appends an item if the object is an Array; raises if that is frozen.
    pub(crate) fn push(&self, array: Object, item: Object) {
        if let Kind::Array(array) = self.objects.kind(array) {
            self.extend(array, &[item]);
        }
    }

    /// An empty Hash with capacity for this many entries.
    #[inline]
    pub(crate) fn hash_with_capacity(&self, entries: usize) -> Hash {
        // SAFETY: makes a Hash, or raises.
        Hash::raw(unsafe { rb_hash_new_capa(entries as c_long) })
    }

    /// A copy of a Hash.
    pub(crate) fn hash_dup(&self, hash: Hash) -> Hash {
        // SAFETY: a Hash.
        Hash::raw(unsafe { rb_hash_dup(hash.as_raw()) })
    }

    /// Freezes the object and returns it.
    #[inline]
    pub(crate) fn frozen(&self, object: Object) -> Object {
        // SAFETY: a live object.
        unsafe { rb_obj_freeze(object.as_raw()) };
        object
    }
}
