//! Strings of what zlib and Zstandard have made.

use magnus::{Error, RString, Ruby};
use offlock_core::deflate::Bytes;

use crate::build;
use crate::region::drop_aside;

/// Up to this size, a String is built at once: that takes some microseconds.
const SHORT: usize = 64 << 10;

/// A String with these bytes. Returns the exception of an interrupt that arrives while a long one is built.
pub(crate) fn string(ruby: &Ruby, bytes: &[u8]) -> Result<RString, Error> {
    if bytes.len() > SHORT {
        build::binary_in_pieces(ruby, bytes)
    } else {
        build::binary_at_once(ruby, bytes)
    }
}

/// The same of output that is not needed any more.
pub(crate) fn into_string(ruby: &Ruby, made: Bytes) -> Result<RString, Error> {
    let string = string(ruby, &made);
    discard(made);
    string
}

/// Gives the memory of output back, without the lock if it is large. Small memory is kept for the thread's next call.
pub(crate) fn discard(made: Bytes) {
    if made.len() > SHORT {
        drop_aside(made.into_vec());
    }
}
