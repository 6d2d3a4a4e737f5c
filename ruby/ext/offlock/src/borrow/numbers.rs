//! Numbers out of an Array that anybody may change meanwhile.

use magnus::{Error, RArray, Value};

use crate::region::Pace;

/// How many numbers are taken in one go, and of how many one is a unit of work.
const RUN: usize = 1 << 13;
const IN_A_UNIT: usize = 16;

/// All numbers in an Array: `plain` takes what it can without running Ruby code, `convert` the others.
pub(crate) fn numbers<T>(
    array: RArray,
    plain: impl Fn(Value) -> Option<T>,
    convert: impl Fn(Value, usize) -> Result<T, Error>,
) -> Result<Vec<T>, Error> {
    let mut pace = Pace::new();
    let mut taken = Vec::with_capacity(array.len());
    loop {
        // SAFETY: nothing is called while the view is used that could change the Array.
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
        pace.keep(1 + (index - before) / IN_A_UNIT)?;
    }
}
