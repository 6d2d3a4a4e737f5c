// error[E0133]: a share in a box: only the macro may borrow.

use crate::borrow::{Bytes, OnStack};

fn in_a_box(string: magnus::RString) -> Result<Box<Bytes>, Error> {
    Ok(Box::new(Bytes::borrow(string, OnStack::promised())?))
}
