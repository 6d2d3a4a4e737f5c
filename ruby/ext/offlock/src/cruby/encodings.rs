//! The indexes of Ruby's own encodings.

use std::ffi::c_int;

pub(crate) fn utf8() -> c_int {
    // SAFETY: returns a constant.
    unsafe { rb_sys::rb_utf8_encindex() }
}

pub(crate) fn us_ascii() -> c_int {
    // SAFETY: returns a constant.
    unsafe { rb_sys::rb_usascii_encindex() }
}

pub(crate) fn binary() -> c_int {
    // SAFETY: returns a constant.
    unsafe { rb_sys::rb_ascii8bit_encindex() }
}
