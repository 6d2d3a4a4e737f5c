//! What is known of frames without decompressing them, and frames with data of a program's own.

use magnus::{Error, Object, RModule, RString, Ruby, function};
use offlock_core::zstd::{self, Header};

use crate::borrow::borrowed;
use crate::build;
use crate::error::exception;
use crate::operations::ZSTD_FRAMES;
use crate::region::{Region, drop_aside};

pub(super) fn define(module: RModule) -> Result<(), Error> {
    module.define_singleton_method("zstd_version", function!(zstd::version_number, 0))?;
    module.define_singleton_method("native_frame_size", function!(frame_size, 1))?;
    module.define_singleton_method("native_frame_info", function!(frame_info, 1))?;
    module.define_singleton_method("native_write_skippable", function!(write_skippable, 3))?;
    module.define_singleton_method("native_read_skippable", function!(read_skippable, 1))
}

/// The length of the first frame.
fn frame_size(ruby: &Ruby, data: RString) -> Result<usize, Error> {
    let data = borrowed!(Bytes, data);
    let view = data.view();
    Region::new(&ZSTD_FRAMES, view.len()).run(ruby, |task| zstd::frame_size(view, task))
}

/// The length of the first frame's content, or nil, and the number of its dictionary.
fn frame_info(ruby: &Ruby, data: RString) -> Result<(Option<u64>, u32), Error> {
    let data = borrowed!(Bytes, data);
    let header = Header::read(data.view()).ok_or_else(|| {
        let text = "the data does not begin with the header of a Zstandard frame, which has 6 to 18 bytes";
        exception(ruby, "Offlock::Zstd::Error", text.into())
    })?;
    let content = if header.is_skippable { Some(0) } else { header.content };
    Ok((content, header.dictionary))
}

/// A skippable frame with `content`, and `data` after it.
fn write_skippable(ruby: &Ruby, data: RString, content: RString, number: u32) -> Result<RString, Error> {
    let (data, content) = (borrowed!(Bytes, data), borrowed!(Bytes, content));
    let (data, content) = (data.view(), content.view());
    let whole = Region::new(&ZSTD_FRAMES, data.len() + content.len())
        .run(ruby, |task| zstd::write_skippable(number, content, data, task))?;
    let built = build::binary_in_pieces(ruby, &whole);
    drop_aside(whole);
    built
}

/// The content of the skippable frame at the beginning of `data`; nil if it begins with another one.
fn read_skippable(ruby: &Ruby, data: RString) -> Result<Option<RString>, Error> {
    use crate::error::IntoException;
    let data = borrowed!(Bytes, data);
    if !zstd::is_skippable(data.view()) {
        return Ok(None);
    }
    let (_, content) = zstd::skippable(data.view()).map_err(|error| error.into_exception(ruby))?;
    build::binary_in_pieces(ruby, content).map(Some)
}
