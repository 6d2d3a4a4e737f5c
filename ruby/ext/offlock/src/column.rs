//! The Array of the values of a column: one field of every record.

use offlock_core::Field;

use crate::cruby::{Array, Gvl, Object};
use crate::region::Yielder;

/// The value of each record; the strings are in `bytes`. Releases the lock now and then.
pub(crate) fn array(gvl: &mut Gvl, bytes: &[u8], fields: &[Option<Field>]) -> Array {
    let mut yielder = Yielder::new();
    let values = gvl.array_with_capacity(fields.len());
    for field in fields {
        let (value, length) = match *field {
            None => (Object::NIL, 0),
            Some(Field::Str(span)) => (gvl.utf8(span.of(bytes)).into(), span.len()),
            Some(Field::UInt(value)) => (gvl.uint(value), 0),
            Some(Field::Int(value)) => (gvl.int(value), 0),
            Some(Field::Float(value)) => (gvl.float(value), 0),
            Some(Field::Bool(value)) => (Object::bool(value), 0),
        };
        gvl.extend(values, &[value]);
        gvl.tick(&mut yielder, 1 + Yielder::copying(length));
    }
    values
}
