// error[E0515]: a view that outlives its share.

use crate::borrow::borrowed;

fn outlives<'a>(string: magnus::RString) -> Result<&'a [u8], Error> {
    let share = borrowed!(Bytes, string);
    Ok(share.view())
}
