//! Strings that native code fills before any program sees them.

use std::mem::MaybeUninit;

use magnus::rb_sys::{AsRawValue, FromRawValue, protect};
use magnus::{Error, RString, Ruby, TryConvert, Value};
use offlock_core::spare_capacity;

use super::call::catch;
use super::object::Object;
use super::string::PIECE;
use crate::region::Yielder;

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

    /// Truncates the String to its first `used` bytes, all of which must be initialized, and appends `rest`, in pieces.
    /// Returns the exception of an interrupt that arrives in between.
    pub(crate) fn finish(self, used: usize, rest: &[u8]) -> Result<RString, Error> {
        let (string, length) = (self.string.as_raw(), used as std::ffi::c_long);
        catch(&Ruby::get_with(self.string), |gvl| {
            // SAFETY (of all calls): a String that no other code has a reference to, with capacity for that many bytes.
            // They raise only when memory is exhausted, which is caught here.
            if spare_capacity::is_kept(used, self.size) {
                // SAFETY: as above.
                unsafe { rb_sys::rb_str_set_len(string, length) };
            } else {
                // SAFETY: as above.
                unsafe { rb_sys::rb_str_resize(string, length) };
            }
            if !rest.is_empty() {
                let mut yielder = Yielder::new();
                // SAFETY: as above.
                unsafe { rb_sys::rb_str_modify_expand(string, rest.len() as std::ffi::c_long) };
                for piece in rest.chunks(PIECE) {
                    // SAFETY: as above; the bytes are copied.
                    unsafe {
                        rb_sys::rb_str_cat(string, piece.as_ptr().cast(), piece.len() as std::ffi::c_long)
                    };
                    gvl.tick(&mut yielder, Yielder::copying(piece.len()));
                }
            }
            // SAFETY: as above. From here on programs find it.
            Object::raw(unsafe { rb_sys::rb_obj_reveal(string, rb_sys::rb_cString) })
        })?;
        Ok(self.string)
    }
}

impl Drop for LentString {
    /// Keeps the String on the stack, where the garbage collector finds it, until here.
    fn drop(&mut self) {
        std::hint::black_box(self.string);
    }
}
