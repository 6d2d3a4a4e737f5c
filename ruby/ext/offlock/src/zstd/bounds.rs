//! Numbers that must be within bounds.

use std::ops::RangeInclusive;

use magnus::value::ReprValue;
use magnus::{Error, Integer, Ruby, Value};
use offlock_core::zstd::Parameter;

/// The number, if it is an Integer within `bounds`. 0 stands for the library's own choice.
pub(super) fn integer_within(
    ruby: &Ruby,
    name: &str,
    value: Value,
    bounds: &RangeInclusive<i32>,
) -> Result<i32, Error> {
    let Some(number) = Integer::from_value(value) else {
        return Err(Error::new(ruby.exception_type_error(), format!("{name} must be an Integer")));
    };
    let number = number.to_i32()?;
    if number == 0 || bounds.contains(&number) {
        return Ok(number);
    }
    let text = format!("{name} must be from {} to {}, got {number}", bounds.start(), bounds.end());
    Err(Error::new(ruby.exception_arg_error(), text))
}

/// A compression level; `None` for nil.
pub(super) fn level(ruby: &Ruby, value: Value) -> Result<Option<i32>, Error> {
    if value.is_nil() {
        return Ok(None);
    }
    integer_within(ruby, "compression level", value, &Parameter::LEVEL.bounds()).map(Some)
}
