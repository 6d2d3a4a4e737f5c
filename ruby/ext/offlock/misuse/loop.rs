// error[E0716]: views in a list, of shares that are dropped after each iteration of the loop.

use crate::borrow::borrowed;

fn views(strings: &[magnus::RString]) -> Result<usize, Error> {
    let mut views: Vec<&[u8]> = Vec::new();
    for &string in strings {
        let share = borrowed!(Bytes, string);
        views.push(share.view());
    }
    Ok(views.len())
}
