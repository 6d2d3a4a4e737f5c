//! Reads the numbers of an Array that other threads may change in the meantime.

use magnus::{Error, RArray, Value};

use crate::region::Yielder;

/// The number of items read at once, and the number that counts as one unit of work.
const RUN: usize = 1 << 13;
const IN_A_UNIT: usize = 16;

/// Returns all numbers of an Array: `plain` converts those that need no Ruby code, `convert` the others.
pub(crate) fn numbers<T>(
    array: RArray,
    plain: impl Fn(Value) -> Option<T>,
    convert: impl Fn(Value, usize) -> Result<T, Error>,
) -> Result<Vec<T>, Error> {
    let mut yielder = Yielder::new();
    let mut taken = Vec::with_capacity(array.len());
    loop {
        // SAFETY: no call that could change the Array is made while the view is used.
        let rest = unsafe { array.as_slice() }.get(taken.len()..).unwrap_or_default();
        let before = taken.len();
        taken.extend(rest.iter().take(RUN).map_while(|&value| plain(value)));
        let index = taken.len();
        if index >= array.len() {
            return Ok(taken);
        }
        if index - before < RUN {
            taken.push(convert(array.entry(index as isize)?, index)?);
        }
        yielder.tick(1 + (index - before) / IN_A_UNIT)?;
    }
}
