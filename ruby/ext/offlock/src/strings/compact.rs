//! Strings with bytes of their own.

use magnus::rb_sys::{AsRawValue, protect};
use magnus::{Error, RArray, RString, Ruby, TryConvert};

use crate::build;
use crate::region::Pace;

/// The same Strings, each with bytes of its own.
pub(super) fn compact(ruby: &Ruby, strings: RArray) -> Result<RArray, Error> {
    let copies = ruby.ary_new_capa(strings.len());
    let mut pace = Pace::new();
    let mut index = 0;
    // By index, because `to_str` and other threads may change the Array.
    while index < strings.len() {
        let string = RString::try_convert(strings.entry(index as isize)?)?;
        let (array, string) = (copies.as_raw(), string.as_raw());
        protect(|| {
            // SAFETY: an Array and a String, which is looked at anew for each piece. What is raised is caught above.
            unsafe {
                let copy = build::copied(rb_sys::RSTRING_LEN(string) as usize, |from, to| {
                    let length = rb_sys::RSTRING_LEN(string) as usize;
                    let bytes = std::slice::from_raw_parts(rb_sys::RSTRING_PTR(string).cast::<u8>(), length);
                    bytes.get(from..to.min(length))
                });
                rb_sys::rb_enc_associate_index(copy, rb_sys::rb_enc_get_index(string));
                rb_sys::rb_ary_push(array, copy)
            }
        })?;
        index += 1;
        pace.keep(1)?;
    }
    Ok(copies)
}
