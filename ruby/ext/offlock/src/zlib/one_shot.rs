//! Compresses or decompresses in a single call.

use magnus::{Error, Object, RModule, RString, Ruby, function};
use offlock_core::Task;
use offlock_core::deflate::{self, Config, Deflater, Flush, Output};

use super::error::{GzipError, ZlibError};
use super::gzip::refuse_file;
use super::number::{Checksum, Int, Long, Uint};
use crate::borrow::borrowed;
use crate::cruby::forget;
use crate::cruby::lent_string::LentString;
use crate::error::IntoException;
use crate::operations::{ZLIB_DEFLATE, ZLIB_INFLATE};
use crate::output;
use crate::region::{Region, Release};

pub(super) fn define(_ruby: &Ruby, zlib: RModule) -> Result<(), Error> {
    zlib.define_singleton_method("native_deflate", function!(deflate, 4))?;
    zlib.define_singleton_method("native_inflate", function!(inflate, 4))?;
    zlib.define_singleton_method("native_gzip", function!(gzip, 5))?;
    zlib.define_singleton_method("native_gunzip", function!(gunzip, 3))?;
    zlib.define_singleton_method("native_gunzip_all", function!(gunzip_all, 4))?;
    zlib.define_singleton_method("native_crc32_combine", function!(crc32_combine, 3))?;
    zlib.define_singleton_method("native_adler32_combine", function!(adler32_combine, 3))?;
    zlib.define_singleton_method("native_int", function!(|number: Int| number.0, 1))?;
    zlib.define_singleton_method("native_uint", function!(|number: Uint| number.0, 1))?;
    zlib.define_singleton_method("crc_table", function!(|| deflate::crc_table().to_vec(), 0))?;
    Ok(())
}

fn deflate(ruby: &Ruby, data: RString, level: Int, wbits: i32, release: Release) -> Result<RString, Error> {
    let data = borrowed!(Bytes, data);
    let view = data.view();
    let packed = Region::new(&ZLIB_DEFLATE, view.len()).release(release).run(ruby, |task| {
        let mut out = Output::new();
        deflate::compress(view, level.0, wbits, &mut out, task)?;
        Ok::<_, ZlibError>(out.into_bytes())
    })?;
    output::into_string(ruby, packed)
}

fn inflate(
    ruby: &Ruby,
    data: RString,
    wbits: i32,
    max_output: Option<usize>,
    release: Release,
) -> Result<RString, Error> {
    decode::<ZlibError>(ruby, data, wbits, max_output, release, |view, out, task| {
        deflate::decompress(view, wbits, out, task).map(drop)
    })
}

/// Runs `work` over `data`, directly into a String of about the right size where that saves a copy.
fn decode<F: IntoException + From<deflate::Error>>(
    ruby: &Ruby,
    data: RString,
    wbits: i32,
    max_output: Option<usize>,
    release: Release,
    work: impl Fn(&[u8], &mut Output<'_>, &Task<'_>) -> Result<(), deflate::Error> + Sync,
) -> Result<RString, Error> {
    let data = borrowed!(Bytes, data);
    let view = data.view();
    let limit = max_output.unwrap_or(usize::MAX);
    let region = Region::new(&ZLIB_INFLATE, view.len()).release(release);
    if deflate::worth_lending(view.len()) {
        let size = deflate::expected_size(view, wbits).min(limit).max(1 << 10);
        match LentString::new(size) {
            Ok(mut lent) => {
                let memory = lent.memory();
                // The work may run twice, the second time from the beginning.
                let (used, rest) = region.run(ruby, |task| {
                    let mut out = Output::lent(memory).limited(limit);
                    work(view, &mut out, task)?;
                    Ok::<_, F>(out.finish())
                })?;
                return lent.finish(used, &rest);
            }
            // If that much memory is not available in one piece, the result grows step by step.
            Err(none) => forget(none),
        }
    }
    let plain = region.run(ruby, |task| {
        let mut out = Output::new().limited(limit);
        work(view, &mut out, task)?;
        Ok::<_, F>(out.into_bytes())
    })?;
    output::into_string(ruby, plain)
}

fn gzip(
    ruby: &Ruby,
    data: RString,
    level: Int,
    strategy: Int,
    mtime: u32,
    release: Release,
) -> Result<RString, Error> {
    let (Int(level), Int(strategy)) = (level, strategy);
    let data = borrowed!(Bytes, data);
    let view = data.view();
    let packed = Region::new(&ZLIB_DEFLATE, view.len()).release(release).run(ruby, |task| {
        let mut out = Output::new();
        out.push(&super::gzip::header(level, mtime, None, None).to_bytes())?;
        if strategy == 0 {
            deflate::compress(view, level, -15, &mut out, task)?;
        } else {
            let mut stream = Deflater::new(Config { level, wbits: -15, strategy, ..Config::default() })?;
            stream.run(&mut { view }, &mut out, Flush::Finish, task)?;
        }
        out.push(&deflate::crc32(0, view, task)?.to_le_bytes())?;
        out.push(&(view.len() as u32).to_le_bytes())?;
        Ok::<_, ZlibError>(out.into_bytes())
    })?;
    output::into_string(ruby, packed)
}

/// Decompresses the first member, as the original does, and ignores the data after it.
fn gunzip(ruby: &Ruby, data: RString, max_output: Option<usize>, release: Release) -> Result<RString, Error> {
    decode::<GzipError>(ruby, data, 31, max_output, release, |view, out, task| {
        refuse_file(view)?;
        deflate::first_member(view, out, task).map(drop)
    })
}

fn gunzip_all(
    ruby: &Ruby,
    data: RString,
    threads: usize,
    max_output: Option<usize>,
    release: Release,
) -> Result<RString, Error> {
    decode::<GzipError>(ruby, data, 31, max_output, release, |view, out, task| {
        deflate::gunzip(view, threads, out, task)
    })
}

/// Raises `RangeError` for a negative length, with which the original never returns.
fn crc32_combine(ruby: &Ruby, first: Checksum, second: Checksum, length: Long) -> Result<u32, Error> {
    let negative = |_| Error::new(ruby.exception_range_error(), format!("negative length {}", length.0));
    Ok(deflate::crc32_combine(first.0, second.0, length.0.try_into().map_err(negative)?))
}

fn adler32_combine(first: Checksum, second: Checksum, length: Long) -> u32 {
    let combined = |length| deflate::adler32_combine(first.0, second.0, length);
    length.0.try_into().map_or(u32::MAX, combined) // as in zlib
}
