//! Compression and decompression piece by piece.

use std::sync::Arc;

use offlock_core::deflate::{Config, Deflater, Error, ErrorKind, Flush, Inflater, Output, Status};
use offlock_core::{Task, memory};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::error::DeflateError;
use crate::borrow::Bytes;
use crate::bytes;
use crate::error::{IntoException, WithMessage, no_memory};
use crate::input::Inputs;
use crate::large::Large;
use crate::operations::{ZLIB_DEFLATE, ZLIB_INFLATE};
use crate::pending;
use crate::region::Region;
use crate::stream_lock::StreamLock;

/// Method number 8, the only one there is.
const DEFLATED: i32 = 8;

/// Makes a compressor.
#[pyfunction]
#[pyo3(
    signature = (level=-1, method=DEFLATED, wbits=15, memLevel=8, strategy=0, zdict=None),
    text_signature = "(level=-1, method=8, wbits=15, memLevel=8, strategy=0, zdict=None)"
)]
#[allow(non_snake_case, reason = "the original's name")]
pub(super) fn compressobj(
    level: i32,
    method: i32,
    wbits: i32,
    memLevel: i32,
    strategy: i32,
    zdict: Option<&Bound<'_, PyAny>>,
) -> PyResult<Compress> {
    let bad = |_: Error| PyValueError::with_message("Invalid initialization option");
    if method != DEFLATED {
        return Err(bad(Error::new(ErrorKind::Stream, 0)));
    }
    let mut stream = Deflater::new(Config { level, wbits, mem_level: memLevel, strategy }).map_err(bad)?;
    if let Some(zdict) = zdict {
        let zdict = Bytes::borrow(zdict)?;
        stream
            .set_dictionary(zdict.as_slice())
            .map_err(|_| PyValueError::with_message("Invalid dictionary"))?;
    }
    Ok(Compress(StreamLock::new(Compressing {
        stream: Some(stream),
        input: Inputs::default(),
        output: Vec::new(),
    })))
}

/// A compressor.
#[pyclass(frozen, module = "offlock.zlib")]
pub(super) struct Compress(StreamLock<Compressing>);

/// A compressor's state, with the unread input of an interrupted call, and the output that it did not return.
struct Compressing {
    /// `None` once the stream was finished.
    stream: Option<Deflater>,
    input: Inputs,
    output: Vec<u8>,
}

impl Compressing {
    /// Takes a small piece, to be compressed together with later ones, and returns the output that is
    /// complete already.
    fn gather<'py>(&mut self, py: Python<'py>, data: &[u8]) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let is_between = self.input.is_empty() && self.output.is_empty();
        let Some(stream) = self.stream.as_mut().filter(|_| is_between) else { return Ok(None) };
        let mut out = Output::new();
        if stream.gather(data, &mut out) {
            pending::deliver(py, out.into_bytes(), usize::MAX, &mut self.output).map(Some)
        } else {
            Ok(None)
        }
    }

    fn run<'py>(
        &mut self,
        py: Python<'py>,
        input: Option<Bytes>,
        flush: Flush,
        doing: &'static str,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let failed = DeflateError::while_(doing);
        let mut out = Output::new();
        out.resume(&mut self.output);
        let Some(stream) = &mut self.stream else {
            if input.is_none() && !out.is_empty() {
                return pending::deliver(py, out.into_bytes(), usize::MAX, &mut self.output);
            }
            self.output = out.into_bytes().into_vec();
            return Err(failed(Error::new(ErrorKind::Stream, 0)).into_exception(py));
        };
        input.into_iter().for_each(|input| self.input.push(input));
        let (mut has_ended, mut unread) = (false, self.input.len());
        let result = Region::new(&ZLIB_DEFLATE, unread + stream.gathered()).run(py, |task| {
            let (status, left) = self.input.read(|input, last| {
                stream.run(input, &mut out, if last { flush } else { Flush::None }, task)
            });
            unread = left;
            has_ended = matches!(status, Ok(Status::End));
            status.map_err(failed)
        });
        self.input.forget(unread);
        if has_ended {
            self.stream = None;
        }
        if let Err(error) = result {
            self.output = out.into_bytes().into_vec();
            return Err(error);
        }
        pending::deliver(py, out.into_bytes(), usize::MAX, &mut self.output)
    }
}

#[pymethods]
impl Compress {
    /// Compresses `data` and returns the output that is complete so far.
    #[pyo3(signature = (data, /))]
    fn compress<'py>(&self, py: Python<'py>, data: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        if let Ok(bytes) = data.cast::<PyBytes>()
            && let Some(made) = self.0.lock(py)?.gather(py, bytes.as_bytes())?
        {
            return Ok(made);
        }
        let data = Bytes::borrow(data)?;
        let mut state = self.0.lock(py)?;
        match state.gather(py, data.as_slice())? {
            Some(made) => Ok(made),
            None => state.run(py, Some(data), Flush::None, "while compressing data"),
        }
    }

    /// Returns the pending output; by default that ends the stream.
    #[pyo3(signature = (mode=4, /))]
    fn flush<'py>(&self, py: Python<'py>, mode: i32) -> PyResult<Bound<'py, PyBytes>> {
        let failed = DeflateError::while_("while flushing");
        match Flush::of(mode) {
            Some(Flush::None) => bytes::copied(py, b""),
            Some(flush) => self.0.lock(py)?.run(py, None, flush, "while flushing"),
            None => Err(failed(Error::new(ErrorKind::Stream, 0)).into_exception(py)),
        }
    }

    /// A compressor in the same state.
    fn copy(&self, py: Python<'_>) -> PyResult<Self> {
        let state = self.0.lock(py)?;
        let stream = state.stream.as_ref().ok_or_else(inconsistent)?;
        let stream =
            stream.copy().map_err(|error| DeflateError::while_("while copying")(error).into_exception(py))?;
        let mut input = Inputs::default();
        input.push(Bytes::Snapshot(Large::new(state.input.joined().map_err(no_memory)?)));
        let output = memory::copied(&state.output).map_err(no_memory)?;
        Ok(Self(StreamLock::new(Compressing { stream: Some(stream), input, output })))
    }

    fn __copy__(&self, py: Python<'_>) -> PyResult<Self> {
        self.copy(py)
    }

    fn __deepcopy__(&self, py: Python<'_>, _memo: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.copy(py)
    }
}

fn inconsistent() -> PyErr {
    PyValueError::with_message("Inconsistent stream state")
}

/// Makes a decompressor.
#[pyfunction]
#[pyo3(signature = (wbits=15, zdict=None, *, max_output=None))]
pub(super) fn decompressobj(
    py: Python<'_>,
    wbits: i32,
    zdict: Option<&Bound<'_, PyAny>>,
    max_output: Option<usize>,
) -> PyResult<Decompress> {
    let zdict = zdict.map(Bytes::borrow).transpose()?.map(Arc::new);
    let mut stream =
        Inflater::new(wbits).map_err(|_| PyValueError::with_message("Invalid initialization option"))?;
    if let Some(zdict) = zdict.as_ref().filter(|_| wbits < 0) {
        let failed = DeflateError::while_("while setting zdict");
        stream.set_dictionary(zdict.as_slice()).map_err(|error| failed(error).into_exception(py))?;
    }
    Ok(Decompress(StreamLock::new(Decompressing {
        stream,
        zdict,
        finished: false,
        left: max_output.unwrap_or(usize::MAX),
        output: Vec::new(),
        unused_data: Rest::default(),
        unconsumed_tail: Rest::default(),
    })))
}

/// A decompressor.
#[pyclass(frozen, module = "offlock.zlib")]
pub(super) struct Decompress(StreamLock<Decompressing>);

/// A decompressor's state.
struct Decompressing {
    stream: Inflater,
    zdict: Option<Arc<Bytes>>,
    /// Whether `flush` was called at the end of the stream.
    finished: bool,
    /// How much output `max_output` still allows.
    left: usize,
    /// The output that an interrupted call did not return; the rest of its input is in `unconsumed_tail`.
    output: Vec<u8>,
    unused_data: Rest,
    unconsumed_tail: Rest,
}

impl Decompressing {
    /// Decompresses `input` from `at` on to at most `most` bytes of output; ignores errors in the data if
    /// `lenient`.
    fn run<'py>(
        &mut self,
        py: Python<'py>,
        input: Arc<Bytes>,
        at: usize,
        most: usize,
        lenient: bool,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let input = Part { bytes: input, at };
        let mut rest = input.as_slice();
        // One byte more than allowed shows that there is more.
        let mut out = Output::new().limited(most.min(self.left.saturating_add(1)));
        out.resume(&mut self.output);
        // Without an error in the data, a run was interrupted before, in or after its work.
        let mut is_bad = false;
        let result = Region::new(&ZLIB_INFLATE, rest.len()).run(py, |task| {
            let status = self.inflate(&mut rest, &mut out, task);
            is_bad = status.as_ref().is_err_and(|error| error.kind != ErrorKind::Stopped);
            status.map_err(DeflateError::while_("while decompressing data"))
        });
        let unread = rest.len();
        self.keep(input, unread);
        match result {
            Err(interrupt) if !is_bad => {
                self.output = out.into_bytes().into_vec();
                return Err(interrupt);
            }
            Err(error) if !lenient => return Err(error),
            _ => {}
        }
        if out.len() > self.left {
            let offset = self.stream.total_in();
            return Err(DeflateError::while_("")(Error::new(ErrorKind::Limit, offset)).into_exception(py));
        }
        // The limit of an interrupted call may have been higher.
        let plain = pending::deliver(py, out.into_bytes(), most, &mut self.output)?;
        if self.left != usize::MAX {
            self.left -= plain.as_bytes().len();
        }
        Ok(plain)
    }

    fn inflate(&mut self, rest: &mut &[u8], out: &mut Output<'_>, task: &Task<'_>) -> Result<Status, Error> {
        match (self.stream.run(rest, out, task)?, &self.zdict) {
            (Status::NeedDict, Some(zdict)) => {
                self.stream.set_dictionary(zdict.as_slice())?;
                self.stream.run(rest, out, task)
            }
            (Status::NeedDict, None) => Err(Error::new(ErrorKind::NeedDict, self.stream.total_in())),
            (status, _) => Ok(status),
        }
    }

    /// Stores the last `unread` bytes of `input` in the attribute where the original keeps them.
    fn keep(&mut self, input: Part, unread: usize) {
        let rest = Part { at: input.bytes.as_slice().len() - unread, ..input };
        if self.stream.ended() {
            self.unused_data.push(rest);
            self.unconsumed_tail = Rest::default();
        } else {
            self.unconsumed_tail = Rest::default();
            self.unconsumed_tail.push(rest);
        }
    }
}

/// The rest of an input, from `at` on.
#[derive(Clone)]
struct Part {
    bytes: Arc<Bytes>,
    at: usize,
}

impl Part {
    fn as_slice(&self) -> &[u8] {
        &self.bytes.as_slice()[self.at..]
    }
}

/// Unread input, as a `bytes` once it is requested: copying the rest of a gigabyte would delay an interrupt.
#[derive(Clone, Default)]
struct Rest(Vec<Part>);

impl Rest {
    fn push(&mut self, part: Part) {
        if !part.as_slice().is_empty() {
            self.0.push(part);
        }
    }

    /// All of it in one piece.
    fn bytes<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let parts: Vec<_> = self.0.iter().map(Part::as_slice).collect();
        let bytes = bytes::joined(py, &parts)?;
        self.0.clear();
        self.push(Part { bytes: Arc::new(Bytes::borrow(&bytes)?), at: 0 });
        Ok(bytes)
    }
}

#[pymethods]
impl Decompress {
    /// Decompresses `data` and returns at most `max_length` bytes (0: all there is).
    #[pyo3(signature = (data, /, max_length=0))]
    fn decompress<'py>(
        &self,
        py: Python<'py>,
        data: &Bound<'py, PyAny>,
        max_length: isize,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let most = match usize::try_from(max_length) {
            Ok(0) => usize::MAX,
            Ok(most) => most,
            Err(_) => return Err(PyValueError::with_message("max_length must be non-negative")),
        };
        let data = Bytes::borrow(data)?;
        self.0.lock(py)?.run(py, Arc::new(data), 0, most, false)
    }

    /// Returns the pending output.
    #[pyo3(signature = (length=16384, /))]
    fn flush<'py>(&self, py: Python<'py>, length: isize) -> PyResult<Bound<'py, PyBytes>> {
        if length <= 0 {
            return Err(PyValueError::with_message("length must be greater than zero"));
        }
        let mut state = self.0.lock(py)?;
        let tail = state.unconsumed_tail.bytes(py)?;
        let tail = Arc::new(Bytes::borrow(&tail)?);
        let lenient = !cfg!(Py_3_14); // CPython has fixed this
        let rest = state.run(py, tail, 0, usize::MAX, lenient)?;
        state.finished = state.stream.ended();
        Ok(rest)
    }

    /// A decompressor in the same state.
    fn copy(&self, py: Python<'_>) -> PyResult<Self> {
        let state = self.0.lock(py)?;
        if state.finished {
            return Err(inconsistent());
        }
        let failed = DeflateError::while_("while copying");
        let stream = state.stream.copy().map_err(|error| failed(error).into_exception(py))?;
        Ok(Self(StreamLock::new(Decompressing {
            stream,
            zdict: state.zdict.clone(),
            finished: false,
            left: state.left,
            output: memory::copied(&state.output).map_err(no_memory)?,
            unused_data: state.unused_data.clone(),
            unconsumed_tail: state.unconsumed_tail.clone(),
        })))
    }

    fn __copy__(&self, py: Python<'_>) -> PyResult<Self> {
        self.copy(py)
    }

    fn __deepcopy__(&self, py: Python<'_>, _memo: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.copy(py)
    }

    /// The bytes after the end of the stream.
    #[getter]
    fn unused_data<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.0.lock(py)?.unused_data.bytes(py)
    }

    /// The input that was not read because of `max_length` (or an interrupt).
    #[getter]
    fn unconsumed_tail<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.0.lock(py)?.unconsumed_tail.bytes(py)
    }

    /// Whether the end of the stream was reached.
    #[getter]
    fn eof(&self, py: Python<'_>) -> PyResult<bool> {
        let state = self.0.lock(py)?;
        Ok(state.stream.ended() && state.output.is_empty())
    }
}
