//! Headers of gzip files: the header that the original writes, and the headers that it rejects.

use magnus::{Error, Object, RArray, RModule, RString, Ruby, function};
use offlock_core::deflate::{Error as Failure, ErrorKind, Header, MAGIC, OS_UNIX, RESERVED};

use super::error::ZlibError;
use crate::build;
use crate::cruby::string::with_bytes;
use crate::error::IntoException as _;

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

fn bytes(
    ruby: &Ruby,
    level: i32,
    mtime: u32,
    name: Option<RString>,
    comment: Option<RString>,
) -> Result<RString, Error> {
    let owned = |string| with_bytes(string, <[u8]>::to_vec);
    build::binary_at_once(ruby, &header(level, mtime, name.map(owned), comment.map(owned)).to_bytes())
}

/// `[mtime, extra_flags, os, name, comment]` of the header at the beginning of `file`, or nil while the
/// header is incomplete. Fails if the original rejects the header.
pub(super) fn fields(ruby: &Ruby, file: RString) -> Result<Option<RArray>, Error> {
    let parsed = with_bytes(file, |bytes| refuse_header(bytes).and_then(|()| Header::parse(bytes)));
    let header = parsed.map_err(|error| ZlibError(error).into_exception(ruby))?;
    let Some((header, _)) = header else { return Ok(None) };
    let text =
        |text: &Option<Vec<u8>>| text.as_deref().map(|text| build::binary_at_once(ruby, text)).transpose();
    let fields = ruby.ary_new_capa(5);
    fields.push(header.mtime)?;
    fields.push(header.extra_flags)?;
    fields.push(header.os)?;
    fields.push(text(&header.name)?)?;
    fields.push(text(&header.comment)?)?;
    Ok(Some(fields))
}

/// The flag that RFC 1952 uses for a checksum of the header, and earlier versions of gzip for files of
/// several parts.
const MULTI_PART: u8 = 0x02;
const ENCRYPTED: u8 = 0x20;

/// Fails on the flags that the original rejects.
fn refuse_flags(flags: u8) -> Result<(), Failure> {
    let words = match flags {
        _ if flags & MULTI_PART != 0 => "multi-part gzip file is not supported".to_owned(),
        _ if flags & ENCRYPTED != 0 => "encrypted gzip file is not supported".to_owned(),
        _ if flags & RESERVED != 0 => format!("unknown flags {flags:#04x}"),
        _ => return Ok(()),
    };
    Err(Failure::with_detail(ErrorKind::NotGzip, words, 3))
}

/// Fails on the headers that the original rejects. The decoder reports data that is not a gzip file, or that
/// ends before the flags.
fn refuse_header(file: &[u8]) -> Result<(), Failure> {
    match file.first_chunk() {
        Some(&[first, second, 8, flags]) if [first, second] == MAGIC => refuse_flags(flags),
        _ => Ok(()),
    }
}

/// Like [`refuse_header`], but for a complete file, which must have a header.
pub(super) fn refuse_file(file: &[u8]) -> Result<(), Failure> {
    if file.len() < 10 {
        return Err(Failure::with_detail(ErrorKind::NotGzip, "unexpected end of string", file.len() as u64));
    }
    refuse_header(file)
}
