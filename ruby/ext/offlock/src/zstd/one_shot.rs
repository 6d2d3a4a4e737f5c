//! Compression and decompression in one call.

use magnus::{Error, Object, RHash, RModule, RString, Ruby, Value, function};
use offlock_core::Task;
use offlock_core::zstd::{self, DecoderSettings, Output};

use super::arguments;
use crate::borrow::borrowed;
use crate::build;
use crate::cruby::forget;
use crate::cruby::lent_string::LentString;
use crate::operations::{ZSTD_COMPRESS, ZSTD_DECOMPRESS};
use crate::region::{Region, Release, drop_aside};

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
    let packed = Region::new(&ZSTD_COMPRESS, weight).release(release).run(ruby, |task| {
        let mut out = Output::new();
        zstd::compress(view, &settings, &mut out, task)?;
        Ok::<_, zstd::Error>(out.into_bytes())
    })?;
    built(ruby, packed)
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
    if size > SHORT {
        match LentString::new(size) {
            Ok(lent) => return decompress_to(ruby, lent, &region, view, &settings, max_output),
            // If that much memory is not available in one piece, the result grows step by step.
            Err(none) => forget(none),
        }
    }
    let plain = region.run(ruby, |task| {
        let mut out = Output::new();
        zstd::decompress(view, &settings, max_output, &mut out, task)?;
        Ok::<_, zstd::Error>(out.into_bytes())
    })?;
    built(ruby, plain)
}

/// Decompresses directly into a String.
fn decompress_to(
    ruby: &Ruby,
    mut lent: LentString,
    region: &Region,
    view: &[u8],
    settings: &DecoderSettings,
    max_output: Option<usize>,
) -> Result<RString, Error> {
    let memory = lent.memory();
    // The work may run twice, the second time from the beginning.
    let (used, rest) = region.run(ruby, |task| {
        let mut out = Output::lent(memory);
        zstd::decompress(view, settings, max_output, &mut out, task)?;
        Ok::<_, zstd::Error>(out.finish())
    })?;
    let finished = lent.finish(used, &rest);
    drop_large(rest);
    finished
}

fn built(ruby: &Ruby, bytes: zstd::Bytes) -> Result<RString, Error> {
    let built = build::binary_in_pieces(ruby, &bytes);
    drop_large(bytes);
    built
}

/// Small memory is kept for the thread's next call.
fn drop_large(bytes: zstd::Bytes) {
    if bytes.len() > SHORT {
        drop_aside(bytes.into_vec());
    }
}

/// The weight of decompressing `data`: a few bytes can stand for any number, unless they are one frame that says its size.
fn decompression_weight(data: &[u8]) -> usize {
    let is_long = data.len() >= ZSTD_DECOMPRESS.break_even;
    let is_one = is_long || zstd::frame_size(data, &Task::new()) == Ok(data.len());
    let content = zstd::Header::read(data).filter(|_| is_one).and_then(|header| header.content);
    let content = content.map_or(SLOW, |length| usize::try_from(length).unwrap_or(usize::MAX));
    data.len().saturating_add(content / 4)
}
