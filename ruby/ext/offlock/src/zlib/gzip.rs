//! Headers of gzip files.

use magnus::{Error, Object, RModule, RString, Ruby, function};
use offlock_core::deflate::{Header, OS_UNIX};

pub(super) fn define(_ruby: &Ruby, zlib: RModule) -> Result<(), Error> {
    zlib.define_singleton_method("native_header", function!(bytes, 4))
}

/// The header that the original writes.
pub(super) fn header(level: i32, mtime: u32, name: Option<Vec<u8>>, comment: Option<Vec<u8>>) -> Header {
    let extra_flags = match level {
        9 => 2,
        1 => 4,
        _ => 0,
    };
    Header { mtime, extra_flags, os: OS_UNIX, name, comment, ..Header::default() }
}

fn bytes(ruby: &Ruby, level: i32, mtime: u32, name: Option<RString>, comment: Option<RString>) -> RString {
    // SAFETY: copied at once.
    let owned = |string: RString| unsafe { string.as_slice() }.to_vec();
    ruby.str_from_slice(&header(level, mtime, name.map(owned), comment.map(owned)).to_bytes())
}
