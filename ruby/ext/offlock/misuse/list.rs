// error[E0507]: shares in a list, where the garbage collector does not find them.

use crate::borrow::{Bytes, borrowed};

fn in_a_list(strings: Vec<magnus::RString>) -> Result<Vec<Bytes>, Error> {
    let mut list = Vec::new();
    for string in strings {
        let share = borrowed!(Bytes, string);
        list.push(*share);
    }
    Ok(list)
}
