//! Many buffers in one release of the lock, on several threads.

use magnus::{Error, Object, RArray, RModule, Ruby, function};
use offlock_core::deflate::{self, Batch};

use super::failure::Indexed;
use crate::borrow::AllBytes;
use crate::operations::{ZLIB_DEFLATE, ZLIB_INFLATE};
use crate::region::{Region, Release};

pub(super) fn define(zlib: RModule) -> Result<(), Error> {
    zlib.define_singleton_method("native_deflate_all", function!(deflate_all, 5))?;
    zlib.define_singleton_method("native_inflate_all", function!(inflate_all, 5))
}

fn deflate_all(
    ruby: &Ruby,
    data: RArray,
    level: i32,
    wbits: i32,
    threads: usize,
    release: Release,
) -> Result<RArray, Error> {
    let data = AllBytes::borrow(ruby, data)?;
    let views = data.views(ruby);
    let batch = Region::new(&ZLIB_DEFLATE, total(&views))
        .release(release)
        .run(ruby, |task| deflate::deflate_all(&views, level, wbits, threads, task).map_err(Indexed))?;
    Ok(strings(ruby, &batch))
}

fn inflate_all(
    ruby: &Ruby,
    data: RArray,
    wbits: i32,
    max_output: Option<usize>,
    threads: usize,
    release: Release,
) -> Result<RArray, Error> {
    let data = AllBytes::borrow(ruby, data)?;
    let views = data.views(ruby);
    let batch = Region::new(&ZLIB_INFLATE, total(&views))
        .release(release)
        .run(ruby, |task| deflate::inflate_all(&views, wbits, max_output, threads, task).map_err(Indexed))?;
    Ok(strings(ruby, &batch))
}

fn total(views: &[&[u8]]) -> usize {
    views.iter().map(|view| view.len()).sum()
}

fn strings(ruby: &Ruby, batch: &Batch) -> RArray {
    ruby.ary_from_iter(batch.iter().map(|result| ruby.str_from_slice(result)))
}
