//! Conversions, lookups and insertions that may run Ruby code.

use std::ffi::{CStr, c_int, c_long};

use rb_sys::*;

use super::gvl::Gvl;
use super::object::{Hash, Id, Object, Str};

impl Gvl {
    /// The String, or the result of the object's `to_str`; raises `TypeError` for others.
    pub(crate) fn coerce_str(&mut self, object: Object) -> Str {
        let mut value = object.as_raw();
        // SAFETY: takes any object.
        Str::raw(unsafe { rb_string_value(&raw mut value) })
    }

    /// The result of the object's `to_s`.
    pub(crate) fn display(&mut self, object: Object) -> Str {
        // SAFETY: takes any object.
        Str::raw(unsafe { rb_obj_as_string(object.as_raw()) })
    }

    /// The String in the encoding with this index; raises if it cannot be transcoded.
    pub(crate) fn encode(&mut self, string: Str, encoding: c_int) -> Str {
        // SAFETY: a String, and an encoding of Ruby's own.
        Str::raw(unsafe {
            let encoding = rb_enc_from_encoding(rb_enc_from_index(encoding));
            rb_str_encode(string.as_raw(), encoding, 0, Qnil as VALUE)
        })
    }

    /// A number as a Float; raises if it is not a number.
    pub(crate) fn coerce_f64(&mut self, object: Object) -> f64 {
        // SAFETY: takes any object.
        unsafe { rb_num2dbl(object.as_raw()) }
    }

    /// A number; raises if it is not a number, or too large.
    pub(crate) fn coerce_i64(&mut self, object: Object) -> i64 {
        // SAFETY: takes any object.
        unsafe { rb_num2long(object.as_raw()) }
    }

    /// A number; raises if it is not a number, or too large.
    pub(crate) fn coerce_usize(&mut self, object: Object) -> usize {
        // SAFETY: takes any object.
        unsafe { rb_num2ulong(object.as_raw()) as usize }
    }

    /// A C `int`; raises if it is not a number, or too large.
    #[allow(clippy::cast_possible_truncation, reason = "the function has checked that it is an `int`")]
    pub(crate) fn coerce_i32(&mut self, object: Object) -> i32 {
        // SAFETY: takes any object.
        unsafe { rb_num2int(object.as_raw()) as i32 }
    }

    /// A number of 32 bits; raises if it is not a number, or too large.
    #[allow(
        clippy::cast_possible_truncation,
        reason = "the function has checked that it is an `unsigned int`"
    )]
    pub(crate) fn coerce_u32(&mut self, object: Object) -> u32 {
        // SAFETY: takes any object.
        unsafe { rb_num2uint(object.as_raw()) as u32 }
    }

    /// The name in a Symbol or String; raises for others.
    pub(crate) fn coerce_id(&mut self, object: Object) -> Id {
        // SAFETY: takes any object.
        Id::raw(unsafe { rb_to_id(object.as_raw()) })
    }

    /// Stores an entry in a Hash, which may call the key's `hash` and `eql?`.
    pub(crate) fn insert(&mut self, hash: Hash, key: Object, value: Object) {
        // SAFETY: a Hash and live objects.
        unsafe { rb_hash_aset(hash.as_raw(), key.as_raw(), value.as_raw()) };
    }

    /// Stores alternating keys and values in a Hash.
    #[inline]
    pub(crate) fn insert_all(&mut self, hash: Hash, objects: &[Object]) {
        // SAFETY: a Hash, live objects, and their number.
        unsafe { rb_hash_bulk_insert(objects.len() as c_long, objects.as_ptr().cast(), hash.as_raw()) };
    }

    /// A constant of a module.
    pub(crate) fn constant(&mut self, module: Object, name: Id) -> Object {
        // SAFETY: a live module, or it raises.
        Object::raw(unsafe { rb_const_get(module.as_raw(), name.as_raw()) })
    }

    /// The class with this full name.
    pub(crate) fn class_named(&mut self, name: &CStr) -> Object {
        // SAFETY: a C string.
        Object::raw(unsafe { rb_path2class(name.as_ptr()) })
    }
}
