//! Results: what is large is made in pace, between which other threads get the lock.

use std::ffi::{c_char, c_long};

use magnus::rb_sys::{FromRawValue, protect};
use magnus::{Error, RArray, RString, TryConvert, Value};
use rb_sys::VALUE;

use crate::region::Pace;

/// How many bytes are copied in one go.
const PIECE: usize = 256 << 10;

/// How many values go to an Array in one go.
const CHUNK: usize = 128;

/// The number of the encoding that stands for bytes: Ruby's first.
pub(crate) const BINARY: i32 = 0;

/// A String with these bytes, in the encoding of a number.
pub(crate) fn string(bytes: &[u8], encoding: i32) -> Result<RString, Error> {
    let string = protect(|| {
        // SAFETY: the lock is held, and what is raised is caught above; the encoding is one of Ruby's own.
        unsafe {
            let string = copied(bytes.len(), |from, to| bytes.get(from..to));
            rb_sys::rb_enc_associate_index(string, encoding)
        }
    })?;
    // SAFETY: Ruby just made this value, and it is a String.
    RString::try_convert(unsafe { Value::from_raw(string) })
}

/// A new binary String. `NoMemoryError` when there is no memory for it, raised when what the caller has is dropped.
pub(crate) fn binary(content: &[u8]) -> Result<RString, Error> {
    let (start, length) = (content.as_ptr().cast(), content.len() as std::ffi::c_long);
    // SAFETY: the lock is held, and Ruby copies that many bytes. What it raises is caught here.
    let string = protect(|| unsafe { rb_sys::rb_str_new(start, length) })?;
    // SAFETY: Ruby just made this value, and it is a String.
    RString::try_convert(unsafe { Value::from_raw(string) })
}

/// A binary String of `length` bytes, which `piece` tells from one offset to another; `None` when they are gone.
///
/// # Safety
/// The lock is held. What is raised skips destructors. While `piece` is not running, other threads may.
pub(crate) unsafe fn copied<'a>(length: usize, piece: impl Fn(usize, usize) -> Option<&'a [u8]>) -> VALUE {
    let start = |piece: &[u8]| piece.as_ptr().cast::<c_char>();
    // SAFETY: as promised by the caller. What is long is filled while no Ruby program can see it.
    unsafe {
        if length <= PIECE {
            let bytes = piece(0, length).unwrap_or_default();
            return rb_sys::rb_str_new(start(bytes), bytes.len() as c_long);
        }
        let string = rb_sys::rb_obj_hide(rb_sys::rb_str_buf_new(length as c_long));
        let mut pace = Pace::new();
        let mut from = 0;
        while from < length {
            let to = length.min(from + PIECE);
            let Some(bytes) = piece(from, to) else { break };
            rb_sys::rb_str_cat(string, start(bytes), bytes.len() as c_long);
            from = to;
            if pace.is_due(Pace::copying(PIECE)) {
                pace.yield_or_raise();
            }
        }
        rb_sys::rb_obj_reveal(string, rb_sys::rb_cString)
    }
}

/// An Array of Integers that are small enough to be no objects. Counts the work.
pub(crate) fn integers(
    numbers: impl ExactSizeIterator<Item = usize>,
    pace: &mut Pace,
) -> Result<RArray, Error> {
    let mut numbers = numbers;
    let array = protect(|| {
        // SAFETY: the lock is held, and what is raised is caught above. The Array is on the stack while it is filled.
        unsafe {
            let array = rb_sys::rb_ary_new_capa(numbers.len() as c_long);
            while numbers.len() > 0 {
                append(array, &mut numbers);
                if pace.is_due(CHUNK / IN_A_UNIT) {
                    pace.yield_or_raise();
                }
            }
            array
        }
    })?;
    // SAFETY: Ruby just made this value, and it is an Array.
    RArray::try_convert(unsafe { Value::from_raw(array) })
}

/// How many Integers are a unit of work.
const IN_A_UNIT: usize = 16;

/// Appends at most `CHUNK` Integers.
///
/// # Safety
/// `array` is an Array, the lock is held, and the caller catches what Ruby raises.
unsafe fn append(array: VALUE, numbers: &mut impl Iterator<Item = usize>) {
    let mut chunk = [0; CHUNK];
    let mut count = 0;
    for (place, number) in chunk.iter_mut().zip(numbers) {
        *place = (number as VALUE) << 1 | rb_sys::FIXNUM_FLAG as VALUE;
        count += 1;
    }
    // SAFETY: as promised by the caller; so many Integers are there, which the garbage collector needs not know.
    unsafe { rb_sys::rb_ary_cat(array, chunk.as_ptr(), count) };
}
