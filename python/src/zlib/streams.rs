//! Compression and decompression piece by piece.

use std::borrow::Cow;

use offlock_core::Task;
use offlock_core::deflate::{Config, Deflater, Error, ErrorKind, Flush, Inflater, Output, Status};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::failure::Failed;
use super::turns::Turns;
use super::{DEFLATE, INFLATE};
use crate::borrow::Bytes;
use crate::region::{Failure, Region};

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
    let bad = |_: Error| PyValueError::new_err("Invalid initialization option");
    if method != DEFLATED {
        return Err(bad(Error::new(ErrorKind::Stream, 0)));
    }
    let mut stream = Deflater::new(Config { level, wbits, mem_level: memLevel, strategy }).map_err(bad)?;
    if let Some(zdict) = zdict {
        let zdict = Bytes::borrow(zdict)?;
        stream.set_dictionary(zdict.as_slice()).map_err(|_| PyValueError::new_err("Invalid dictionary"))?;
    }
    Ok(Compress(Turns::new(Compressing { stream: Some(stream), input: Vec::new(), output: Vec::new() })))
}

/// A compressor.
#[pyclass(frozen, module = "offlock.zlib")]
pub(super) struct Compress(Turns<Compressing>);

/// A compressor's state, with what an interrupted call left: nothing that went in or came out is lost.
struct Compressing {
    /// `None` once the stream was finished.
    stream: Option<Deflater>,
    input: Vec<u8>,
    output: Vec<u8>,
}

impl Compressing {
    fn run<'py>(
        &mut self,
        py: Python<'py>,
        input: &[u8],
        flush: Flush,
        doing: &'static str,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let failed = Failed::while_(doing);
        let Some(stream) = &mut self.stream else {
            return Err(failed(Error::new(ErrorKind::Stream, 0)).into_exception(py));
        };
        let earlier = std::mem::take(&mut self.input);
        let input = after(&earlier, input);
        let mut rest = &*input;
        let mut out = Output::new();
        out.push(&std::mem::take(&mut self.output));
        let mut stopped = false;
        let result = Region::new(&DEFLATE, input.len()).run(py, |task| {
            let status = stream.run(&mut rest, &mut out, flush, task);
            stopped = status.as_ref().is_err_and(|error| error.kind == ErrorKind::Stopped);
            status.map_err(failed)
        });
        if stopped {
            self.input = rest.to_vec();
            self.output = out.into_bytes().into_vec();
            return Err(result
                .err()
                .unwrap_or_else(|| failed(Error::new(ErrorKind::Stopped, 0)).into_exception(py)));
        }
        if result? == Status::End {
            self.stream = None;
        }
        Ok(PyBytes::new(py, &out.into_bytes()))
    }
}

/// `input` behind what an interrupted call left.
fn after<'a>(earlier: &[u8], input: &'a [u8]) -> Cow<'a, [u8]> {
    if earlier.is_empty() { Cow::Borrowed(input) } else { Cow::Owned([earlier, input].concat()) }
}

#[pymethods]
impl Compress {
    /// Compresses `data` and returns what can be given out so far.
    #[pyo3(signature = (data, /))]
    fn compress<'py>(&self, py: Python<'py>, data: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        let data = Bytes::borrow(data)?;
        self.0.take(py)?.run(py, data.as_slice(), Flush::None, "while compressing data")
    }

    /// Returns what is left to give out; by default that ends the stream.
    #[pyo3(signature = (mode=4, /))]
    fn flush<'py>(&self, py: Python<'py>, mode: i32) -> PyResult<Bound<'py, PyBytes>> {
        let failed = Failed::while_("while flushing");
        match Flush::of(mode) {
            Some(Flush::None) => Ok(PyBytes::new(py, b"")),
            Some(flush) => self.0.take(py)?.run(py, &[], flush, "while flushing"),
            None => Err(failed(Error::new(ErrorKind::Stream, 0)).into_exception(py)),
        }
    }

    /// A compressor in the same state.
    fn copy(&self, py: Python<'_>) -> PyResult<Self> {
        let state = self.0.take(py)?;
        let stream = state.stream.as_ref().ok_or_else(inconsistent)?;
        let stream =
            stream.copy().map_err(|error| Failed::while_("while copying")(error).into_exception(py))?;
        let (input, output) = (state.input.clone(), state.output.clone());
        Ok(Self(Turns::new(Compressing { stream: Some(stream), input, output })))
    }

    fn __copy__(&self, py: Python<'_>) -> PyResult<Self> {
        self.copy(py)
    }

    fn __deepcopy__(&self, py: Python<'_>, _memo: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.copy(py)
    }
}

fn inconsistent() -> PyErr {
    PyValueError::new_err("Inconsistent stream state")
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
    let zdict = zdict.map(|zdict| PyResult::Ok(Bytes::borrow(zdict)?.as_slice().to_vec())).transpose()?;
    let mut stream =
        Inflater::new(wbits).map_err(|_| PyValueError::new_err("Invalid initialization option"))?;
    if let Some(zdict) = zdict.as_ref().filter(|_| wbits < 0) {
        let failed = Failed::while_("while setting zdict");
        stream.set_dictionary(zdict).map_err(|error| failed(error).into_exception(py))?;
    }
    let nothing = PyBytes::new(py, b"").unbind();
    Ok(Decompress(Turns::new(Decompressing {
        stream,
        zdict,
        finished: false,
        left: max_output.unwrap_or(usize::MAX),
        output: Vec::new(),
        unused_data: nothing.clone_ref(py),
        unconsumed_tail: nothing,
    })))
}

/// A decompressor.
#[pyclass(frozen, module = "offlock.zlib")]
pub(super) struct Decompress(Turns<Decompressing>);

/// A decompressor's state.
struct Decompressing {
    stream: Inflater,
    zdict: Option<Vec<u8>>,
    /// Whether `flush` was called at the end of the stream.
    finished: bool,
    /// How much output `max_output` still allows.
    left: usize,
    /// What an interrupted call had made; the rest of its input is in `unconsumed_tail`.
    output: Vec<u8>,
    unused_data: Py<PyBytes>,
    unconsumed_tail: Py<PyBytes>,
}

impl Decompressing {
    /// Runs over `input` for at most `most` bytes of output; errors in the data are left out if `lenient`.
    fn run<'py>(
        &mut self,
        py: Python<'py>,
        input: &[u8],
        most: usize,
        lenient: bool,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let mut rest = input;
        // One byte more than allowed tells that there is more.
        let mut out = Output::new().limited(most.min(self.left.saturating_add(1)));
        out.push(&std::mem::take(&mut self.output));
        let mut error = None;
        let result = Region::new(&INFLATE, input.len()).run(py, |task| {
            let status = self.inflate(&mut rest, &mut out, task);
            error = status.as_ref().err().map(|error| error.kind);
            status.map_err(Failed::while_("while decompressing data"))
        });
        self.keep(py, input, rest)?;
        match (result, error) {
            (Err(interrupt), Some(ErrorKind::Stopped)) => {
                self.output = out.into_bytes().into_vec();
                return Err(interrupt);
            }
            (Err(error), _) if !lenient => return Err(error),
            _ => {}
        }
        if out.len() > self.left {
            let offset = self.stream.total_in();
            return Err(Failed::while_("")(Error::new(ErrorKind::Limit, offset)).into_exception(py));
        }
        if self.left != usize::MAX {
            self.left -= out.len();
        }
        Ok(PyBytes::new(py, &out.into_bytes()))
    }

    fn inflate(&mut self, rest: &mut &[u8], out: &mut Output<'_>, task: &Task<'_>) -> Result<Status, Error> {
        match (self.stream.run(rest, out, task)?, &self.zdict) {
            (Status::NeedDict, Some(zdict)) => {
                self.stream.set_dictionary(zdict)?;
                self.stream.run(rest, out, task)
            }
            (Status::NeedDict, None) => Err(Error::new(ErrorKind::NeedDict, self.stream.total_in())),
            (status, _) => Ok(status),
        }
    }

    /// Keeps what was not read of `input` where the original keeps it.
    fn keep(&mut self, py: Python<'_>, input: &[u8], rest: &[u8]) -> PyResult<()> {
        if self.stream.ended() {
            if !rest.is_empty() {
                let unused = [self.unused_data.as_bytes(py), rest].concat();
                self.unused_data = PyBytes::new(py, &unused).unbind();
            }
            self.unconsumed_tail = PyBytes::new(py, b"").unbind();
        } else if !rest.is_empty() || !self.unconsumed_tail.as_bytes(py).is_empty() {
            debug_assert!(input.ends_with(rest));
            self.unconsumed_tail = PyBytes::new(py, rest).unbind();
        }
        Ok(())
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
            Err(_) => return Err(PyValueError::new_err("max_length must be non-negative")),
        };
        let data = Bytes::borrow(data)?;
        self.0.take(py)?.run(py, data.as_slice(), most, false)
    }

    /// Returns what is left to give out.
    #[pyo3(signature = (length=16384, /))]
    fn flush<'py>(&self, py: Python<'py>, length: isize) -> PyResult<Bound<'py, PyBytes>> {
        if length <= 0 {
            return Err(PyValueError::new_err("length must be greater than zero"));
        }
        let mut state = self.0.take(py)?;
        let tail = state.unconsumed_tail.clone_ref(py);
        let lenient = !cfg!(Py_3_14); // CPython has mended this
        let rest = state.run(py, tail.as_bytes(py), usize::MAX, lenient)?;
        state.finished = state.stream.ended();
        Ok(rest)
    }

    /// A decompressor in the same state.
    fn copy(&self, py: Python<'_>) -> PyResult<Self> {
        let state = self.0.take(py)?;
        if state.finished {
            return Err(inconsistent());
        }
        let failed = Failed::while_("while copying");
        let stream = state.stream.copy().map_err(|error| failed(error).into_exception(py))?;
        Ok(Self(Turns::new(Decompressing {
            stream,
            zdict: state.zdict.clone(),
            finished: false,
            left: state.left,
            output: state.output.clone(),
            unused_data: state.unused_data.clone_ref(py),
            unconsumed_tail: state.unconsumed_tail.clone_ref(py),
        })))
    }

    fn __copy__(&self, py: Python<'_>) -> PyResult<Self> {
        self.copy(py)
    }

    fn __deepcopy__(&self, py: Python<'_>, _memo: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.copy(py)
    }

    /// What followed the end of the stream.
    #[getter]
    fn unused_data(&self, py: Python<'_>) -> PyResult<Py<PyBytes>> {
        Ok(self.0.take(py)?.unused_data.clone_ref(py))
    }

    /// The input that was not read because of `max_length` (or an interrupt).
    #[getter]
    fn unconsumed_tail(&self, py: Python<'_>) -> PyResult<Py<PyBytes>> {
        Ok(self.0.take(py)?.unconsumed_tail.clone_ref(py))
    }

    /// Whether the end of the stream was reached.
    #[getter]
    fn eof(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.0.take(py)?.stream.ended())
    }
}
