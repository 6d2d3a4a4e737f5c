//! Converts numbers as the original does, and rejects other objects with the same messages.

use magnus::{Error, Fixnum, Ruby, TryConvert, Value};

use crate::cruby::{Gvl, Object, catch};

/// A C `int`.
#[derive(Clone, Copy)]
pub(super) struct Int(pub(super) i32);

/// A C `long`.
#[derive(Clone, Copy)]
pub(super) struct Long(pub(super) i64);

/// A checksum: the lower 32 bits of a C `unsigned long`.
#[derive(Clone, Copy)]
pub(super) struct Checksum(pub(super) u32);

/// Converts with a function that raises if it cannot.
fn converted<T: Default>(value: Value, convert: fn(&mut Gvl, Object) -> T) -> Result<T, Error> {
    let mut number = T::default();
    catch(&Ruby::get_with(value), |gvl| {
        number = convert(gvl, Object::of(value));
        Object::NIL
    })?;
    Ok(number)
}

impl TryConvert for Int {
    fn try_convert(value: Value) -> Result<Self, Error> {
        if let Some(small) = small(value).and_then(|number| number.try_into().ok()) {
            return Ok(Self(small));
        }
        Ok(Self(converted(value, Gvl::coerce_i32)?))
    }
}

impl TryConvert for Long {
    fn try_convert(value: Value) -> Result<Self, Error> {
        Ok(Self(converted(value, Gvl::coerce_i64)?))
    }
}

impl TryConvert for Checksum {
    #[allow(clippy::cast_possible_truncation, reason = "the lower bits are what is promised")]
    fn try_convert(value: Value) -> Result<Self, Error> {
        match small(value) {
            Some(small) => Ok(Self(small as u32)),
            None => Ok(Self(converted(value, Gvl::coerce_usize)? as u32)),
        }
    }
}

/// A C `unsigned int`.
#[derive(Clone, Copy)]
pub(super) struct Uint(pub(super) u32);

impl TryConvert for Uint {
    fn try_convert(value: Value) -> Result<Self, Error> {
        Ok(Self(converted(value, Gvl::coerce_u32)?))
    }
}

/// The value of an immediate Integer: most are, and need no function that may raise.
fn small(value: Value) -> Option<i64> {
    Fixnum::from_value(value).map(Fixnum::to_i64)
}
