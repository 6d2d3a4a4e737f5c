//! Headers of gzip files: what the original writes there, and what it refuses to read.

use magnus::{Error, Object, RArray, RModule, RString, Ruby, function};
use offlock_core::deflate::{Error as Failure, ErrorKind, Header, MAGIC, OS_UNIX, RESERVED};

use super::failure::Failed;
use crate::memory;
use crate::region::Failure as _;

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

/// `[mtime, extra_flags, os, name, comment]` of the header at the beginning of `file`, or nil while it is not complete. Fails
/// where the original refuses it.
pub(super) fn fields(ruby: &Ruby, file: RString) -> Result<Option<RArray>, Error> {
    // SAFETY: read before anything is called that could change it.
    let parsed = Header::parse(unsafe { file.as_slice() }).and_then(|parsed| {
        parsed.map(|(header, _)| refuse_reserved(header.reserved).map(|()| header)).transpose()
    });
    let Some(header) = parsed.map_err(|error| Failed(error).into_exception(ruby))? else { return Ok(None) };
    let text = |text: &Option<Vec<u8>>| text.as_deref().map(memory::string).transpose();
    let fields = ruby.ary_new_capa(5);
    fields.push(header.mtime)?;
    fields.push(header.extra_flags)?;
    fields.push(header.os)?;
    fields.push(text(&header.name)?)?;
    fields.push(text(&header.comment)?)?;
    Ok(Some(fields))
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
