//! Headers of gzip files: what the original writes there, and what it refuses to read.

use crate::memory;
use magnus::{Error, Object, RModule, RString, Ruby, function};
use offlock_core::deflate::{Error as Failure, ErrorKind, Header, MAGIC, OS_UNIX, RESERVED};

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

fn bytes(level: i32, mtime: u32, name: Option<RString>, comment: Option<RString>) -> Result<RString, Error> {
    // SAFETY: copied at once.
    let owned = |string: RString| unsafe { string.as_slice() }.to_vec();
    memory::string(&header(level, mtime, name.map(owned), comment.map(owned)).to_bytes())
}

/// Fails on flags that mean nothing yet.
pub(super) fn refuse_reserved(flags: u8) -> Result<(), Failure> {
    let words = match flags {
        0 => return Ok(()),
        flags if flags & 0x20 != 0 => "encrypted gzip file is not supported".to_owned(),
        flags => format!("unknown flags {flags:#04x}"),
    };
    Err(Failure::with_detail(ErrorKind::NotGzip, words, 3))
}

/// Fails on what the original refuses at the beginning of a gzip file in a String.
pub(super) fn refuse_header(file: &[u8]) -> Result<(), Failure> {
    let Some(fixed) = file.first_chunk::<10>() else {
        return Err(Failure::with_detail(ErrorKind::NotGzip, "unexpected end of string", file.len() as u64));
    };
    if fixed[..2] == MAGIC && fixed[2] == 8 { refuse_reserved(fixed[3] & RESERVED) } else { Ok(()) }
}
