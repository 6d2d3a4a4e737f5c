//! Compression and decompression in one call, and checksums.

use offlock_core::deflate::{self, Batch, Config, Deflater, Error, ErrorKind, Flush, Inflater, Output};
use offlock_core::{Stopped, Task};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use super::bytes_buffer::BytesBuffer;
use super::error::{DeflateError, words};
use crate::borrow::Bytes;
use crate::bytes;
use crate::cpython::object;
use crate::cpython::sequence::{Container, SequenceBuilder};
use crate::error::WithMessage;
use crate::gil_yield::Yielder;
use crate::large::{Large, MemorySize, Refs};
use crate::objects::Int;
use crate::operations::{ZLIB_CHECKSUM, ZLIB_DEFLATE, ZLIB_INFLATE};
use crate::region::{Cancel, Region, Release};

/// Bytes of input between two calls of a progress callback.
const REPORT_EVERY: usize = 1 << 20;

/// Compresses `data` to a `bytes`.
#[pyfunction]
#[pyo3(
    signature = (data, /, level=-1, wbits=15, *, progress=None, release=Release::AUTO, cancel=None),
    text_signature = "(data, /, level=-1, wbits=15, *, progress=None, release='auto', cancel=None)"
)]
pub(super) fn compress<'py>(
    py: Python<'py>,
    data: &Bound<'py, PyAny>,
    level: i32,
    wbits: i32,
    progress: Option<&Bound<'py, PyAny>>,
    release: Release,
    cancel: Option<&Cancel>,
) -> PyResult<Bound<'py, PyBytes>> {
    let data = Bytes::borrow(data)?;
    let data = data.as_slice();
    let failed = DeflateError::while_("while compressing data");
    let bad_level = |error| failed(with_bad_level(error));
    let region = |len| Region::new(&ZLIB_DEFLATE, len).release(release).cancel(cancel);
    let Some(progress) = progress else {
        let packed = region(data.len()).run(py, |task| {
            let mut out = Output::new();
            deflate::compress(data, level, wbits, &mut out, task).map_err(bad_level)?;
            Ok::<_, DeflateError>(out.into_bytes())
        })?;
        return bytes::from_memory(py, packed);
    };
    let config = Config { level, wbits, ..Config::default() };
    let mut stream = Deflater::new(config).map_err(|error| into_exception(py, bad_level(error)))?;
    let mut out = Output::new();
    for (mut piece, done) in pieces(data) {
        let flush = if done == data.len() { Flush::Finish } else { Flush::None };
        region(piece.len()).run(py, |task| stream.run(&mut piece, &mut out, flush, task).map_err(failed))?;
        progress.call1((Int(done), Int(data.len())))?;
    }
    bytes::from_memory(py, out.into_bytes())
}

/// An error that the engine reports as one of the stream concerns the level: nothing else can be wrong there.
pub(super) fn with_bad_level(mut error: Error) -> Error {
    if error.kind == ErrorKind::Stream {
        error.detail = "Bad compression level".into();
    }
    error
}

/// Decompresses the stream at the beginning of `data` to a `bytes`.
#[pyfunction]
#[pyo3(
    signature = (
        data, /, wbits=15, bufsize=16384, *, max_output=None, progress=None, release=Release::AUTO, cancel=None
    ),
    text_signature = "(data, /, wbits=15, bufsize=16384, *, max_output=None, progress=None, release='auto', cancel=None)"
)]
#[allow(clippy::too_many_arguments, reason = "the original's parameters and ours")]
pub(super) fn decompress<'py>(
    py: Python<'py>,
    data: &Bound<'py, PyAny>,
    wbits: i32,
    bufsize: isize,
    max_output: Option<usize>,
    progress: Option<&Bound<'py, PyAny>>,
    release: Release,
    cancel: Option<&Cancel>,
) -> PyResult<Bound<'py, PyBytes>> {
    if bufsize < 0 {
        return Err(PyValueError::with_message(format!("bufsize must be non-negative, not {bufsize}")));
    }
    let data = Bytes::borrow(data)?;
    let data = data.as_slice();
    let limit = max_output.unwrap_or(usize::MAX);
    let region = |len| Region::new(&ZLIB_INFLATE, len).release(release).cancel(cancel);
    if let Some(progress) = progress {
        return decompress_reporting(py, data, wbits, limit, progress, region);
    }
    let work = |out: &mut Output<'_>, task: &Task<'_>| {
        deflate::decompress(data, wbits, out, task).map_err(DeflateError::while_("while decompressing data"))
    };
    if let Some(mut lent) = lend(py, data, wbits, limit) {
        let mut out = Output::lent(lent.memory()).limited(limit);
        region(data.len()).run(py, |task| work(&mut out, task))?;
        let (used, rest) = out.finish();
        return lent.finish(used, rest);
    }
    let plain = region(data.len()).run(py, |task| {
        let mut out = Output::new().limited(limit);
        work(&mut out, task)?;
        Ok::<_, DeflateError>(out.into_bytes())
    })?;
    bytes::from_memory(py, plain)
}

/// A `bytes` of about the expected size of the result, where that saves a copy.
pub(super) fn lend<'py>(py: Python<'py>, data: &[u8], wbits: i32, limit: usize) -> Option<BytesBuffer<'py>> {
    if !deflate::worth_lending(data.len()) {
        return None;
    }
    // If there is not that much contiguous memory, the result grows by itself.
    BytesBuffer::new(py, deflate::expected_size(data, wbits).min(limit)).ok()
}

fn decompress_reporting<'py, 'a>(
    py: Python<'py>,
    data: &[u8],
    wbits: i32,
    limit: usize,
    progress: &Bound<'py, PyAny>,
    region: impl Fn(usize) -> Region<'a>,
) -> PyResult<Bound<'py, PyBytes>> {
    let failed = DeflateError::while_("while decompressing data");
    let mut stream = Inflater::new(wbits).map_err(|error| into_exception(py, failed(error)))?;
    let mut out = Output::new().limited(limit);
    for (mut piece, done) in pieces(data) {
        let last = done == data.len();
        region(piece.len()).run(py, |task| {
            deflate::continue_to(&mut stream, &mut piece, last, &mut out, task).map_err(failed)
        })?;
        progress.call1((Int(done - piece.len()), Int(data.len())))?;
        if stream.ended() {
            break;
        }
    }
    bytes::from_memory(py, out.into_bytes())
}

/// `data` in pieces, each with the number of bytes up to its end; one empty piece when there are no bytes.
fn pieces(data: &[u8]) -> impl Iterator<Item = (&[u8], usize)> {
    let count = data.len().div_ceil(REPORT_EVERY).max(1);
    (0..count).map(move |index| {
        let end = data.len().min((index + 1) * REPORT_EVERY);
        (&data[index * REPORT_EVERY..end], end)
    })
}

pub(super) fn into_exception(py: Python<'_>, failed: DeflateError) -> PyErr {
    crate::error::IntoException::into_exception(failed, py)
}

/// Compresses each of `data`, on `threads` threads (0: one per core), in one release of the lock.
#[pyfunction]
#[pyo3(
    signature = (data, /, level=-1, wbits=15, *, threads=0, progress=None, release=Release::AUTO, cancel=None),
    text_signature = "(data, /, level=-1, wbits=15, *, threads=0, progress=None, release='auto', cancel=None)"
)]
#[allow(clippy::too_many_arguments, reason = "each is the caller's to set")]
pub(super) fn deflate_all<'py>(
    py: Python<'py>,
    data: &Bound<'py, PyAny>,
    level: i32,
    wbits: i32,
    threads: usize,
    progress: Option<&Bound<'py, PyAny>>,
    release: Release,
    cancel: Option<&Cancel>,
) -> PyResult<Bound<'py, PyList>> {
    let region = |len| Region::new(&ZLIB_DEFLATE, len).release(release).cancel(cancel);
    in_groups(py, data, progress, "while compressing data", region, |group, task| {
        deflate::deflate_all(group, level, wbits, threads, task)
            .map_err(|(index, error)| (index, with_bad_level(error)))
    })
}

/// Decompresses each of `data`, on `threads` threads (0: one per core), in one release of the lock.
#[pyfunction]
#[pyo3(
    signature = (
        data, /, wbits=15, *, max_output=None, threads=0, progress=None, release=Release::AUTO, cancel=None
    ),
    text_signature = "(data, /, wbits=15, *, max_output=None, threads=0, progress=None, release='auto', cancel=None)"
)]
#[allow(clippy::too_many_arguments, reason = "each is the caller's to set")]
pub(super) fn inflate_all<'py>(
    py: Python<'py>,
    data: &Bound<'py, PyAny>,
    wbits: i32,
    max_output: Option<usize>,
    threads: usize,
    progress: Option<&Bound<'py, PyAny>>,
    release: Release,
    cancel: Option<&Cancel>,
) -> PyResult<Bound<'py, PyList>> {
    let region = |len| Region::new(&ZLIB_INFLATE, len).release(release).cancel(cancel);
    in_groups(py, data, progress, "while decompressing data", region, |group, task| {
        deflate::inflate_all(group, wbits, max_output, threads, task)
    })
}

/// Works on all of `data` at once; with `progress`, on one group after the other.
fn in_groups<'py, 'a>(
    py: Python<'py>,
    data: &Bound<'py, PyAny>,
    progress: Option<&Bound<'py, PyAny>>,
    doing: &'static str,
    region: impl Fn(usize) -> Region<'a>,
    work: impl Fn(&[&[u8]], &Task<'_>) -> Result<Batch, deflate::IndexedError> + Sync,
) -> PyResult<Bound<'py, PyList>> {
    let mut yielder = Yielder::around(&region(0));
    let data = Refs::collect(data, &mut yielder, |_, item| Bytes::borrow(&item))?;
    let (views, total) = data.slices(py, &mut yielder, Bytes::as_slice)?;
    let mut made = SequenceBuilder::new(py, Container::List, views.len())?;
    let (mut first, mut done) = (0, 0);
    for group in deflate::groups(&views, progress.is_some()) {
        let size = group.iter().map(|view| view.len()).fold(0, usize::saturating_add);
        let batch = region(size.saturating_add(group.len())).run(py, |task| {
            work(group, task).map_err(|(index, error)| indexed(doing)((first + index, error))).map(Results)
        })?;
        for result in Large::new(batch).0.iter() {
            yielder.tick_bytes(py, result.len())?;
            made.push(bytes::copied(py, result)?);
        }
        (first, done) = (first + group.len(), done + size);
        progress.map(|progress| progress.call1((Int(done), Int(total)))).transpose()?;
    }
    Ok(made.finish().cast_into()?)
}

/// The results of a group, in a separate allocation.
struct Results(Batch);

impl MemorySize for Results {
    fn memory_size(&self) -> usize {
        self.0.bytes()
    }
}

/// A failure that names the input, one of many, in which it occurred.
fn indexed(doing: &'static str) -> impl Fn(deflate::IndexedError) -> DeflateError {
    move |(index, mut error)| {
        error.detail = format!("input {index}: {}", words(&error));
        DeflateError::while_(doing)(error)
    }
}

/// CRC-32 of `data`, continued from `value`.
#[pyfunction]
#[pyo3(
    signature = (data, value=Checksum(0), /, *, release=Release::AUTO),
    text_signature = "(data, value=0, /, *, release='auto')"
)]
pub(super) fn crc32(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
    value: Checksum,
    release: Release,
) -> PyResult<Int> {
    checksum(py, data, value, release, deflate::crc32)
}

/// Adler-32 of `data`, continued from `value`.
#[pyfunction]
#[pyo3(
    signature = (data, value=Checksum(1), /, *, release=Release::AUTO),
    text_signature = "(data, value=1, /, *, release='auto')"
)]
pub(super) fn adler32(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
    value: Checksum,
    release: Release,
) -> PyResult<Int> {
    checksum(py, data, value, release, deflate::adler32)
}

fn checksum(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
    value: Checksum,
    release: Release,
    sum: impl Fn(u32, &[u8], &Task<'_>) -> Result<u32, Stopped> + Sync,
) -> PyResult<Int> {
    let data = Bytes::borrow(data)?;
    let data = data.as_slice();
    let sum =
        Region::new(&ZLIB_CHECKSUM, data.len()).release(release).run(py, |task| sum(value.0, data, task))?;
    Ok(Int(sum as usize))
}

/// CRC-32 of two pieces from the checksums of both and the length of the second.
#[pyfunction]
#[pyo3(signature = (crc1, crc2, len2, /))]
pub(super) fn crc32_combine(crc1: Checksum, crc2: Checksum, len2: u64) -> Int {
    Int(deflate::crc32_combine(crc1.0, crc2.0, len2) as usize)
}

/// Adler-32 of two pieces from the checksums of both and the length of the second.
#[pyfunction]
#[pyo3(signature = (adler1, adler2, len2, /))]
pub(super) fn adler32_combine(adler1: Checksum, adler2: Checksum, len2: u64) -> Int {
    Int(deflate::adler32_combine(adler1.0, adler2.0, len2) as usize)
}

/// An int of any size and sign, of which the lowest 32 bits are used.
pub(super) struct Checksum(u32);

impl<'py> FromPyObject<'_, 'py> for Checksum {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(value) = value.extract::<u32>() {
            return Ok(Self(value));
        }
        let index = object::index(&value)?;
        Ok(Self(index.bitand(u32::MAX)?.extract()?))
    }
}
