// error[E0502]: the bytes of a String while Ruby code runs, which may change them.

use crate::cruby::{Gvl, Id, Str};

fn held_bytes(gvl: &mut Gvl, string: Str) -> usize {
    let bytes = gvl.objects.bytes(string);
    gvl.call(string.into(), Id::of(c"clear"), &[]);
    bytes.len()
}
