//! Strings that native code fills before any program sees them.

use std::mem::MaybeUninit;

use magnus::rb_sys::{AsRawValue, FromRawValue, protect};
use magnus::{Error, RString, TryConvert, Value};
use offlock_core::spare_capacity;

/// Memory inside a new binary String, for a result whose size is not known yet.
///
/// What is lent too much costs nothing: large memory that was never touched is no memory yet.
pub(crate) struct LentString {
    string: RString,
    size: usize,
}

impl LentString {
    /// `NoMemoryError` when there is no such piece of memory.
    pub(crate) fn new(size: usize) -> Result<Self, Error> {
        // SAFETY: makes a String, which no program finds in `ObjectSpace`; what running out of memory raises is caught here.
        let string =
            protect(|| unsafe { rb_sys::rb_obj_hide(rb_sys::rb_str_buf_new(size as std::ffi::c_long)) })?;
        // SAFETY: Ruby just made this value, and it is a String.
        Ok(Self { string: RString::try_convert(unsafe { Value::from_raw(string) })?, size })
    }

    /// The memory, which no other code knows.
    pub(crate) fn memory(&mut self) -> &mut [MaybeUninit<u8>] {
        // SAFETY: the String has room for `size` bytes (and a NUL), which may be anything. It is too large to lie inside
        // the object, so it stays in place; `self`, on the stack, keeps it alive.
        unsafe {
            let start = rb_sys::RSTRING_PTR(self.string.as_raw()).cast_mut().cast();
            std::slice::from_raw_parts_mut(start, self.size)
        }
    }

    /// The String, cut to its first `used` bytes, all of which must be written; with `rest` behind them.
    pub(crate) fn finish(self, used: usize, rest: &[u8]) -> Result<RString, Error> {
        let length = used as std::ffi::c_long;
        // SAFETY: a String that no other code knows, with room for that many bytes. Either raises only for lack of memory,
        // which is caught here.
        protect(|| unsafe {
            rb_sys::rb_obj_reveal(self.string.as_raw(), rb_sys::rb_cString);
            if spare_capacity::is_kept(used, self.size) {
                rb_sys::rb_str_set_len(self.string.as_raw(), length);
                self.string.as_raw()
            } else {
                rb_sys::rb_str_resize(self.string.as_raw(), length)
            }
        })?;
        if !rest.is_empty() {
            let (string, rest, more) =
                (self.string.as_raw(), rest.as_ptr().cast(), rest.len() as std::ffi::c_long);
            // SAFETY: as above; the bytes are copied.
            protect(|| unsafe { rb_sys::rb_str_cat(string, rest, more) })?;
        }
        Ok(self.string)
    }
}

impl Drop for LentString {
    /// Keeps the String on the stack, where the garbage collector finds it, until here.
    fn drop(&mut self) {
        std::hint::black_box(self.string);
    }
}
