//! Strings that native code fills before any program sees them.

use std::mem::MaybeUninit;

use magnus::rb_sys::{AsRawValue, FromRawValue, protect};
use magnus::{Error, RString, TryConvert, Value};
use offlock_core::spare_capacity;

/// Memory inside a new binary String, for a result of unknown size.
///
/// Excess capacity costs nothing: the system assigns large memory only when it is first touched.
pub(crate) struct LentString {
    string: RString,
    size: usize,
}

impl LentString {
    /// Allocates a String with capacity for `size` bytes.
    ///
    /// # Errors
    ///
    /// `NoMemoryError` if the memory cannot be allocated.
    pub(crate) fn new(size: usize) -> Result<Self, Error> {
        // SAFETY: makes a String, which no program finds in `ObjectSpace`; the exception for exhausted memory
        // is caught here.
        let string =
            protect(|| unsafe { rb_sys::rb_obj_hide(rb_sys::rb_str_buf_new(size as std::ffi::c_long)) })?;
        // SAFETY: Ruby just made this value, and it is a String.
        Ok(Self { string: RString::try_convert(unsafe { Value::from_raw(string) })?, size })
    }

    /// The memory, to which no other code has a reference.
    pub(crate) fn memory(&mut self) -> &mut [MaybeUninit<u8>] {
        // SAFETY: the String has capacity for `size` bytes (and a NUL) of any value. It is too large to be
        // embedded in the object, so its memory stays in place; `self`, on the stack, keeps it alive.
        unsafe {
            let start = rb_sys::RSTRING_PTR(self.string.as_raw()).cast_mut().cast();
            std::slice::from_raw_parts_mut(start, self.size)
        }
    }

    /// Truncates the String to its first `used` bytes, all of which must be initialized, and appends `rest`.
    pub(crate) fn finish(self, used: usize, rest: &[u8]) -> Result<RString, Error> {
        let length = used as std::ffi::c_long;
        // SAFETY: a String that no other code has a reference to, with capacity for that many bytes. Both
        // calls raise only when memory is exhausted, which is caught here.
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
