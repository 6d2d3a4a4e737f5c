//! Compression and decompression in one call.

use magnus::{Error, Object, RHash, RModule, RString, Ruby, Value, function};
use offlock_core::Task;
use offlock_core::zstd::{self, Output};

use super::arguments;
use crate::borrow::borrowed;
use crate::cruby::forget;
use crate::cruby::lent_string::LentString;
use crate::operations::{ZSTD_COMPRESS, ZSTD_DECOMPRESS};
use crate::output;
use crate::region::{Region, Release};

pub(super) fn define(module: RModule) -> Result<(), Error> {
    module.define_singleton_method("native_compress", function!(compress, 5))?;
    module.define_singleton_method("native_decompress", function!(decompress, 5))
}

/// The weight of work at settings that can make any input slow.
const SLOW: usize = 1 << 20;

/// Up to this size, results are copied: memory to lend is not worth its price.
const SHORT: usize = 64 << 10;

/// Compresses `data` to one frame.
fn compress(
    ruby: &Ruby,
    data: RString,
    level: Value,
    dict: Value,
    parameters: Option<RHash>,
    release: Release,
) -> Result<RString, Error> {
    let is_plain = parameters.is_none();
    let settings = arguments::settings(ruby, level, dict, parameters)?;
    let is_plain = is_plain && settings.dictionary.is_none() && settings.level() <= 9;
    let data = borrowed!(Bytes, data);
    let view = data.view();
    let weight = if is_plain { view.len() } else { view.len().saturating_add(SLOW) };
    let region = Region::new(&ZSTD_COMPRESS, weight).release(release);
    // Memory that is not touched costs nothing, so room for data that does not compress is lent.
    let size = view.len().saturating_add(view.len() / 128);
    made(ruby, &region, size, |out, task| zstd::compress(view, &settings, out, task))
}

/// Decompresses all frames of `data`.
fn decompress(
    ruby: &Ruby,
    data: RString,
    dict: Value,
    window_log_max: Value,
    max_output: Option<usize>,
    release: Release,
) -> Result<RString, Error> {
    let settings = arguments::decoder_settings(ruby, dict, window_log_max)?;
    let data = borrowed!(Bytes, data);
    let view = data.view();
    let region = Region::new(&ZSTD_DECOMPRESS, decompression_weight(view)).release(release);
    let size = zstd::expected_size(view).min(max_output.unwrap_or(usize::MAX));
    made(ruby, &region, size, |out, task| zstd::decompress(view, &settings, max_output, out, task))
}

/// A String of what `work` writes, directly into it if that is likely to be `size` bytes and saves a copy.
fn made(
    ruby: &Ruby,
    region: &Region,
    size: usize,
    work: impl Fn(&mut Output<'_>, &Task<'_>) -> Result<(), zstd::Error> + Sync,
) -> Result<RString, Error> {
    if size > SHORT {
        match LentString::new(size) {
            Ok(lent) => return made_in(ruby, lent, region, work),
            // If that much memory is not available in one piece, the result grows step by step.
            Err(none) => forget(none),
        }
    }
    let made = region.run(ruby, |task| {
        let mut out = Output::new();
        work(&mut out, task)?;
        Ok::<_, zstd::Error>(out.into_bytes())
    })?;
    output::into_string(ruby, made)
}

fn made_in(
    ruby: &Ruby,
    mut lent: LentString,
    region: &Region,
    work: impl Fn(&mut Output<'_>, &Task<'_>) -> Result<(), zstd::Error> + Sync,
) -> Result<RString, Error> {
    let memory = lent.memory();
    // The work may run twice, the second time from the beginning.
    let (used, rest) = region.run(ruby, |task| {
        let mut out = Output::lent(memory);
        work(&mut out, task)?;
        Ok::<_, zstd::Error>(out.finish())
    })?;
    let finished = lent.finish(used, &rest);
    output::discard(rest);
    finished
}

/// The weight of decompressing `data`: a few bytes can stand for any number, unless they are one frame that says its size.
fn decompression_weight(data: &[u8]) -> usize {
    let is_long = data.len() >= ZSTD_DECOMPRESS.break_even;
    let is_one = is_long || zstd::frame_size(data, &Task::new()) == Ok(data.len());
    let content = zstd::Header::read(data).filter(|_| is_one).and_then(|header| header.content);
    let content = content.map_or(SLOW, |length| usize::try_from(length).unwrap_or(usize::MAX));
    data.len().saturating_add(content / 4)
}
