//! Checksums. Most inputs have only a few bytes, for which converting the arguments would take longer than
//! the sum.

use magnus::value::LazyId;
use magnus::{Error, Fixnum, IntoValue, Object, RModule, RString, Ruby, Value, function, method};
use offlock_core::deflate;
use offlock_core::{Stopped, Task};

use super::error::ZlibError;
use super::forward::forward;
use super::number::Checksum;
use crate::borrow::borrowed;
use crate::cruby::string::with_bytes;
use crate::operations::ZLIB_CHECKSUM;
use crate::region::{Region, Release, yield_between_calls};

pub(super) fn define(_ruby: &Ruby, zlib: RModule) -> Result<(), Error> {
    zlib.define_singleton_method("native_crc32", function!(crc32, 3))?;
    zlib.define_singleton_method("native_adler32", function!(adler32, 3))?;
    zlib.define_singleton_method("crc32", method!(crc32_of_any, -1))?;
    zlib.define_singleton_method("adler32", method!(adler32_of_any, -1))
}

/// Up to this size a checksum takes less than a microsecond.
const SMALL: usize = 8 << 10;

fn crc32(ruby: &Ruby, value: Checksum, data: RString, release: Release) -> Result<u32, Error> {
    checksum(ruby, value, data, release, deflate::crc32)
}

fn adler32(ruby: &Ruby, value: Checksum, data: RString, release: Release) -> Result<u32, Error> {
    checksum(ruby, value, data, release, deflate::adler32)
}

fn checksum(
    ruby: &Ruby,
    Checksum(value): Checksum,
    data: RString,
    release: Release,
    sum: impl Fn(u32, &[u8], &Task<'_>) -> Result<u32, Stopped> + Sync,
) -> Result<u32, Error> {
    let data = borrowed!(Bytes, data);
    let view = data.view();
    Region::new(&ZLIB_CHECKSUM, view.len())
        .release(release)
        .run(ruby, |task| Ok::<_, ZlibError>(sum(value, view, task)?))
}

fn crc32_of_any(ruby: &Ruby, zlib: Value, arguments: &[Value]) -> Result<Value, Error> {
    static OTHERWISE: LazyId = LazyId::new("crc32_of");
    match of_small(arguments, 0, deflate::crc32_of_small) {
        Some(sum) => {
            yield_between_calls()?;
            Ok(sum.into_value_with(ruby))
        }
        None => forward(ruby, zlib, &OTHERWISE, arguments),
    }
}

fn adler32_of_any(ruby: &Ruby, zlib: Value, arguments: &[Value]) -> Result<Value, Error> {
    static OTHERWISE: LazyId = LazyId::new("adler32_of");
    match of_small(arguments, 1, deflate::adler32_of_small) {
        Some(sum) => {
            yield_between_calls()?;
            Ok(sum.into_value_with(ruby))
        }
        None => forward(ruby, zlib, &OTHERWISE, arguments),
    }
}

/// The sum of a small String, continued from a small number; `None` for all other arguments.
fn of_small(arguments: &[Value], initial: u32, sum: fn(u32, &[u8]) -> u32) -> Option<u32> {
    let (string, value) = match arguments {
        [string] => (*string, initial),
        [string, value] => (*string, Fixnum::from_value(*value)?.to_i64() as u32),
        _ => return None,
    };
    let string = RString::from_value(string)?;
    with_bytes(string, |bytes| (bytes.len() <= SMALL).then(|| sum(value, bytes)))
}
