//! Compresses or decompresses many buffers in one release of the lock, on several threads.

use magnus::value::ReprValue;
use magnus::{Error, Object, RArray, RModule, Ruby, Value, function};
use offlock_core::deflate::{self, Batch};
use offlock_core::{Operation, Task};

use super::error::BatchError;
use super::number::Int;
use crate::borrow::borrowed;
use crate::operations::{ZLIB_DEFLATE, ZLIB_INFLATE};
use crate::output;
use crate::region::{Region, Release, Yielder};

pub(super) fn define(zlib: RModule) -> Result<(), Error> {
    zlib.define_singleton_method("native_deflate_all", function!(deflate_all, 6))?;
    zlib.define_singleton_method("native_inflate_all", function!(inflate_all, 6))
}

fn deflate_all(
    ruby: &Ruby,
    data: RArray,
    level: Int,
    wbits: Int,
    threads: usize,
    progress: Option<Value>,
    release: Release,
) -> Result<RArray, Error> {
    in_groups(ruby, data, progress, &ZLIB_DEFLATE, release, |group, task| {
        deflate::deflate_all(group, level.0, wbits.0, threads, task)
    })
}

fn inflate_all(
    ruby: &Ruby,
    data: RArray,
    wbits: Int,
    max_output: Option<usize>,
    threads: usize,
    progress: Option<Value>,
    release: Release,
) -> Result<RArray, Error> {
    in_groups(ruby, data, progress, &ZLIB_INFLATE, release, |group, task| {
        deflate::inflate_all(group, wbits.0, max_output, threads, task)
    })
}

/// Works on all of `data` at once, or, to report progress, on one group after the other.
fn in_groups(
    ruby: &Ruby,
    data: RArray,
    progress: Option<Value>,
    operation: &'static Operation,
    release: Release,
    work: impl Fn(&[&[u8]], &Task<'_>) -> Result<Batch, deflate::IndexedError> + Sync,
) -> Result<RArray, Error> {
    let data = borrowed!(AllBytes, ruby, data);
    let views = data.views();
    let total: usize = views.iter().map(|view| view.len()).sum();
    let made = ruby.ary_new_capa(views.len());
    let (mut done, mut yielder) = (0, Yielder::new());
    for group in deflate::groups(views, progress.is_some()) {
        let first = made.len();
        let size = group.iter().map(|view| view.len()).sum();
        let batch = Region::new(operation, size).release(release).run(ruby, |task| {
            work(group, task).map_err(|(index, error)| BatchError((first + index, error)))
        })?;
        for result in batch.iter() {
            yielder.tick(1 + Yielder::copying(result.len()))?;
            made.push(output::string(ruby, result)?)?;
        }
        done += size;
        progress.map(|progress| progress.funcall::<_, _, Value>("call", (done, total))).transpose()?;
    }
    Ok(made)
}
