//! Strings with their own memory.

use magnus::{Error, RArray, RString, Ruby, TryConvert};

use crate::cruby::{Object, catch};
use crate::region::Yielder;

/// The same Strings, each with its own memory.
pub(super) fn compact(ruby: &Ruby, strings: RArray) -> Result<RArray, Error> {
    let copies = ruby.ary_new_capa(strings.len());
    let mut yielder = Yielder::new();
    let mut index = 0;
    // By index, because `to_str` and other threads may change the Array.
    while index < strings.len() {
        let string = RString::try_convert(strings.entry(index as isize)?)?;
        catch(ruby, |gvl| {
            let string = gvl.coerce_str(Object::of(string));
            let encoding = gvl.objects.encoding(string);
            let copy = gvl.copied(&string);
            gvl.push(Object::of(copies), gvl.in_encoding(copy, encoding).into());
            Object::NIL
        })?;
        index += 1;
        yielder.tick(1)?;
    }
    Ok(copies)
}
