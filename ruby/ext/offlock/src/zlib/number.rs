//! Numbers as the original takes them: what is none is refused in the same words.

use magnus::rb_sys::{AsRawValue, protect};
use magnus::{Error, Fixnum, TryConvert, Value};

/// A C `int`.
#[derive(Clone, Copy)]
pub(super) struct Int(pub(super) i32);

/// A C `long`.
#[derive(Clone, Copy)]
pub(super) struct Long(pub(super) i64);

/// A checksum: the lower 32 bits of a C `unsigned long`.
#[derive(Clone, Copy)]
pub(super) struct Checksum(pub(super) u32);

/// Converts with a function of Ruby's that raises where it cannot.
fn converted<T: Default>(
    value: Value,
    convert: unsafe extern "C" fn(rb_sys::VALUE) -> T,
) -> Result<T, Error> {
    let mut number = T::default();
    protect(|| {
        // SAFETY: called with the lock held, on a live object; what it raises is caught.
        number = unsafe { convert(value.as_raw()) };
        rb_sys::Qnil.into()
    })?;
    Ok(number)
}

impl TryConvert for Int {
    #[allow(clippy::cast_possible_truncation, reason = "the function has checked that it is an `int`")]
    fn try_convert(value: Value) -> Result<Self, Error> {
        if let Some(small) = small(value).and_then(|number| number.try_into().ok()) {
            return Ok(Self(small));
        }
        Ok(Self(converted(value, rb_sys::rb_num2int)? as i32))
    }
}

impl TryConvert for Long {
    fn try_convert(value: Value) -> Result<Self, Error> {
        Ok(Self(converted(value, rb_sys::rb_num2long)?))
    }
}

impl TryConvert for Checksum {
    #[allow(clippy::cast_possible_truncation, reason = "the lower bits are what is promised")]
    fn try_convert(value: Value) -> Result<Self, Error> {
        match small(value) {
            Some(small) => Ok(Self(small as u32)),
            None => Ok(Self(converted(value, rb_sys::rb_num2ulong)? as u32)),
        }
    }
}

/// A C `unsigned int`.
#[derive(Clone, Copy)]
pub(super) struct Uint(pub(super) u32);

impl TryConvert for Uint {
    #[allow(
        clippy::cast_possible_truncation,
        reason = "the function has checked that it is an `unsigned int`"
    )]
    fn try_convert(value: Value) -> Result<Self, Error> {
        Ok(Self(converted(value, rb_sys::rb_num2uint)? as u32))
    }
}

/// An Integer that is in its reference: most are, and need no function that may raise.
fn small(value: Value) -> Option<i64> {
    Fixnum::from_value(value).map(Fixnum::to_i64)
}
