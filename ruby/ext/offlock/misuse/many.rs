// error[E0507]: the owner of many shares on the heap.

use crate::borrow::{AllBytes, borrowed};

fn in_a_box(ruby: &Ruby, strings: magnus::RArray) -> Result<Box<AllBytes>, Error> {
    Ok(Box::new(*borrowed!(AllBytes, ruby, strings)))
}
