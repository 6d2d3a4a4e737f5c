//! Compression of a whole buffer in one call: by libdeflate where [`policy`](super::policy) says so,
//! otherwise by a stream of zlib-rs that gets all of the input at once.

use super::deflater::Deflater;
use super::error::Error;
use super::stream::{Config, Flush};
use super::whole_buffer;
use crate::Task;
use crate::output::Output;

/// Compresses `input` to one stream. `wbits` and `level` are as in [`Config`].
///
/// # Errors
///
/// [`ErrorKind::Stream`](super::ErrorKind::Stream) if `level` or `wbits` is out of range; `Mem` and
/// `Stopped`.
pub fn compress(
    input: &[u8],
    level: i32,
    wbits: i32,
    out: &mut Output<'_>,
    task: &Task<'_>,
) -> Result<(), Error> {
    if !whole_buffer::compress(input, level, wbits, out, task)? {
        let mut stream = Deflater::new(Config { level, wbits, ..Config::default() })?;
        stream.run(&mut { input }, out, Flush::Finish, task)?;
    }
    Ok(())
}
