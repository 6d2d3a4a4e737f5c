//! The native functions and classes of `offlock.gzip`.

use offlock_core::deflate::{
    self, BlockDeflater, Error, ErrorKind, Flush, GzipDecoder, Header, Members, OS_UNIX, Output, Status,
};
use offlock_core::{Stopped, Task};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::decompressor::{Decode, Decompressor};
use super::error::{DeflateError, GzipError};
use super::one_shot::{lend, with_bad_level};
use crate::borrow::Bytes;
use crate::bytes;
use crate::error::{IntoException, WithMessage};
use crate::gil_yield::Yielder;
use crate::input::Inputs;
use crate::large::reserve;
use crate::objects::Int;
use crate::operations::{ZLIB_DEFLATE, ZLIB_INFLATE};
use crate::pending;
use crate::region::{Cancel, Region, Release};
use crate::stream_lock::StreamLock;

/// Decompresses a gzip file of one or more members.
#[pyfunction]
#[pyo3(
    signature = (data, /, *, threads=1, max_output=None, release=Release::AUTO, cancel=None),
    text_signature = "(data, /, *, threads=1, max_output=None, release='auto', cancel=None)"
)]
pub(super) fn gunzip<'py>(
    py: Python<'py>,
    data: &Bound<'py, PyAny>,
    threads: usize,
    max_output: Option<usize>,
    release: Release,
    cancel: Option<&Cancel>,
) -> PyResult<Bound<'py, PyBytes>> {
    let data = Bytes::borrow(data)?;
    let data = data.as_slice();
    let limit = max_output.unwrap_or(usize::MAX);
    let region = Region::new(&ZLIB_INFLATE, data.len()).release(release).cancel(cancel);
    if let Some(mut lent) = lend(py, data, GZIP, limit) {
        let mut out = Output::lent(lent.memory()).limited(limit);
        region.run(py, |task| deflate::gunzip(data, threads, &mut out, task).map_err(GzipError))?;
        let (used, rest) = out.finish();
        return lent.finish(used, rest);
    }
    let plain = region.run(py, |task| {
        let mut out = Output::new().limited(limit);
        deflate::gunzip(data, threads, &mut out, task).map_err(GzipError)?;
        Ok::<_, GzipError>(out.into_bytes())
    })?;
    bytes::from_memory(py, plain)
}

/// The format of gzip, as zlib numbers it.
const GZIP: i32 = 31;

/// Compresses `data` to a gzip file of one member.
#[pyfunction]
#[pyo3(
    signature = (data, level, mtime, threads, /, *, release=Release::AUTO, cancel=None),
    text_signature = "(data, level, mtime, threads, /, *, release='auto', cancel=None)",
)]
pub(super) fn gzip<'py>(
    py: Python<'py>,
    data: &Bound<'py, PyAny>,
    level: i32,
    mtime: u32,
    threads: usize,
    release: Release,
    cancel: Option<&Cancel>,
) -> PyResult<Bound<'py, PyBytes>> {
    let data = Bytes::borrow(data)?;
    let (data, header) = (data.as_slice(), header(mtime, level, None));
    let region = Region::new(&ZLIB_DEFLATE, data.len()).release(release).cancel(cancel);
    let failed = DeflateError::while_("while compressing data");
    if threads == 1 {
        let packed = region.run(py, |task| {
            let mut out = Output::new();
            deflate::compress(data, level, GZIP, &mut out, task)
                .map_err(|error| failed(with_bad_level(error)))?;
            let mut packed = out.into_bytes().into_vec();
            packed[..header.len()].copy_from_slice(&header); // the engine's header has no time
            Ok::<_, DeflateError>(packed)
        })?;
        return bytes::from_memory(py, packed);
    }
    let mut stream = block_deflater(level, threads)?;
    let packed = region.run(py, |task| {
        let mut out = Output::new();
        out.push(&header).map_err(|none| failed(none.into()))?;
        stream.run(&mut &*data, &mut out, Flush::Finish, task).map_err(failed)?;
        let crc = deflate::crc32(0, data, task)
            .map_err(|Stopped| failed(Error::new(ErrorKind::Stopped, data.len() as u64)))?;
        #[allow(clippy::cast_possible_truncation, reason = "the format says so")]
        let size = data.len() as u32;
        out.push(&[crc.to_le_bytes(), size.to_le_bytes()].concat()).map_err(|none| failed(none.into()))?;
        Ok::<_, DeflateError>(out.into_bytes())
    })?;
    bytes::from_memory(py, packed)
}

/// Joins the `bytes` that the iterable `parts` yields, as `b"".join` does, without the lock where they are
/// long.
#[pyfunction]
#[pyo3(signature = (parts, /))]
pub(super) fn joined<'py>(py: Python<'py>, parts: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    let mut chunks = Parts(Vec::new());
    for part in parts.try_iter()? {
        reserve(&mut chunks.0, 1)?;
        chunks.0.push(part?.cast_into()?);
    }
    match &chunks.0[..] {
        [part] => Ok(part.clone()),
        parts => bytes::joined(py, &parts.iter().map(|part| part.as_bytes()).collect::<Vec<_>>()),
    }
}

/// Parts of a result. They are freed a few at a time, and other threads can hold the lock in between: freeing
/// 100 MB takes some milliseconds.
struct Parts<'py>(Vec<Bound<'py, PyBytes>>);

impl Drop for Parts<'_> {
    fn drop(&mut self) {
        let mut yielder = Yielder::yielding();
        while let Some(chunk) = self.0.pop() {
            yielder.charge(chunk.as_bytes().len());
            yielder.tick_quietly(chunk.py());
        }
    }
}

/// The header of a gzip member.
#[pyfunction]
#[pyo3(signature = (mtime, level, name, /))]
pub(super) fn gzip_header<'py>(
    py: Python<'py>,
    mtime: u32,
    level: i32,
    name: Option<&[u8]>,
) -> PyResult<Bound<'py, PyBytes>> {
    bytes::copied(py, &header(mtime, level, name))
}

fn header(mtime: u32, level: i32, name: Option<&[u8]>) -> Vec<u8> {
    let extra_flags = match level {
        9 => 2,
        1 => 4,
        _ => 0,
    };
    let header = Header { mtime, extra_flags, os: 255, name: name.map(<[u8]>::to_vec), ..Header::default() };
    debug_assert_ne!(header.os, OS_UNIX);
    header.to_bytes()
}

fn block_deflater(level: i32, threads: usize) -> PyResult<BlockDeflater> {
    BlockDeflater::new(level, 0, threads)
        .map_err(|_| PyValueError::with_message(format!("Invalid compression level {level}")))
}

/// Reads a gzip file of one or more members piece by piece, several of them at once if `threads` is not 1.
#[pyclass(frozen, module = "offlock.gzip")]
pub(super) struct GzipDecompress(StreamLock<Decompressor<Reading>>);

/// A decoder that returns everything before an error in a file, and only then fails, so that its output does
/// not depend on the number of threads.
struct Reading {
    decoder: GzipDecoder,
    failure: Option<Error>,
}

impl Decode for Reading {
    fn decode(&mut self, input: &mut &[u8], out: &mut Output<'_>, task: &Task<'_>) -> Result<Status, Error> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        let before = out.len();
        match self.decoder.run(input, out, task) {
            Err(error) if error.kind != ErrorKind::Stopped && out.len() > before => {
                self.failure = Some(error);
                Ok(Status::More)
            }
            status => status,
        }
    }

    fn read_so_far(&self) -> u64 {
        self.decoder.total_in()
    }
}

#[pymethods]
impl GzipDecompress {
    #[new]
    #[pyo3(signature = (*, threads=1, max_output=None))]
    fn new(py: Python<'_>, threads: usize, max_output: Option<usize>) -> PyResult<Self> {
        let decoder = GzipDecoder::new(Members::All).map_err(|error| GzipError(error).into_exception(py))?;
        let reading = Reading { decoder: decoder.on_threads(threads), failure: None };
        Ok(Self(StreamLock::new(Decompressor::new(reading, max_output))))
    }

    /// Decompresses the unread input of earlier calls and `data`, and returns at most `max_length` bytes.
    #[pyo3(signature = (data, max_length, /))]
    fn decompress<'py>(
        &self,
        py: Python<'py>,
        data: &Bound<'py, PyAny>,
        max_length: usize,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let data = Bytes::borrow(data)?;
        self.0.lock(py)?.run(py, data, max_length, GzipError)
    }

    /// Whether all input was read, so that further output requires more.
    #[getter]
    fn needs_input(&self, py: Python<'_>) -> PyResult<bool> {
        let decompressor = self.0.lock(py)?;
        let Reading { decoder, failure } = &decompressor.stream;
        let has_more = decompressor.has_pending() || decoder.has_ahead() || failure.is_some();
        Ok(decompressor.left().is_empty() && !has_more)
    }

    /// How many bytes of the file to pass next, if several members are decompressed at once.
    #[getter]
    fn window(&self, py: Python<'_>) -> PyResult<Option<Int>> {
        Ok(self.0.lock(py)?.stream.decoder.window().map(Int))
    }

    /// Raises `EOFError` or `gzip.BadGzipFile` when a file may not end here.
    fn check_end(&self, py: Python<'_>) -> PyResult<()> {
        let checked = self.0.lock(py)?.stream.decoder.check_end();
        checked.map_err(|error| GzipError(error).into_exception(py))
    }

    /// The time in the header of the member read last.
    #[getter]
    fn mtime(&self, py: Python<'_>) -> PyResult<Option<Int>> {
        Ok(self.0.lock(py)?.stream.decoder.header().map(|header| Int(header.mtime as usize)))
    }
}

/// Makes one raw deflate stream on several threads.
#[pyclass(frozen, module = "offlock.gzip")]
pub(super) struct BlockCompress(StreamLock<Blocks>);

struct Blocks {
    stream: BlockDeflater,
    /// The unread input of an interrupted call; `output` is what it did not return.
    input: Inputs,
    output: Vec<u8>,
}

impl Blocks {
    fn run<'py>(
        &mut self,
        py: Python<'py>,
        data: Option<Bytes>,
        flush: Flush,
    ) -> PyResult<Bound<'py, PyBytes>> {
        data.into_iter().for_each(|data| self.input.push(data));
        let mut out = Output::new();
        out.resume(&mut self.output);
        let mut unread = self.input.len();
        // The work is done on other threads, so that releasing the lock pays whatever the size of the last
        // piece.
        let region = Region::new(&ZLIB_DEFLATE, unread).release(Release::ALWAYS);
        let result = region.run(py, |task| {
            let (result, left) = self.input.read(|input, last| {
                let flush = if last { flush } else { Flush::None };
                self.stream.run(input, &mut out, flush, task)
            });
            unread = left;
            result.map_err(DeflateError::while_("while compressing data"))
        });
        self.input.forget(unread);
        if let Err(error) = result {
            self.output = out.into_bytes().into_vec();
            return Err(error);
        }
        pending::deliver(py, out.into_bytes(), usize::MAX, &mut self.output)
    }
}

#[pymethods]
impl BlockCompress {
    #[new]
    #[pyo3(signature = (level, threads, /))]
    fn new(level: i32, threads: usize) -> PyResult<Self> {
        let stream = block_deflater(level, threads)?;
        Ok(Self(StreamLock::new(Blocks { stream, input: Inputs::default(), output: Vec::new() })))
    }

    /// Compresses `data` and returns the output that is complete so far.
    #[pyo3(signature = (data, /))]
    fn compress<'py>(&self, py: Python<'py>, data: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        let data = Bytes::borrow(data)?;
        self.0.lock(py)?.run(py, Some(data), Flush::None)
    }

    /// Returns the pending output; by default that ends the stream.
    #[pyo3(signature = (mode=4, /))]
    fn flush<'py>(&self, py: Python<'py>, mode: i32) -> PyResult<Bound<'py, PyBytes>> {
        let flush = Flush::of(mode)
            .ok_or_else(|| PyValueError::with_message(format!("Invalid flush mode {mode}")))?;
        self.0.lock(py)?.run(py, None, flush)
    }
}
