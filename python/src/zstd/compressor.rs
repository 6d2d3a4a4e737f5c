//! Compression piece by piece.

use std::collections::VecDeque;

use offlock_core::zstd::{Compressor, Error, ErrorKind, Mode, Output};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::arguments;
use crate::borrow::Bytes;
use crate::error::WithMessage;
use crate::operations::ZSTD_COMPRESS;
use crate::pending;
use crate::region::Region;
use crate::stream_lock::StreamLock;

/// A compressor.
#[pyclass(frozen, module = "offlock.zstd")]
pub(super) struct ZstdCompressor(StreamLock<Compressing>);

/// A compressor's state, with the input and output of interrupted calls: no byte is lost.
struct Compressing {
    stream: Compressor,
    /// Calls that are not finished: those that were interrupted, and the present one. Each is finished as it asked, before
    /// the next one.
    calls: VecDeque<Call>,
    /// Output that was not returned yet.
    output: Vec<u8>,
    /// The mode of the last call whose output was returned.
    last_mode: Mode,
}

/// The input of a call, and how much of it was read.
struct Call {
    input: Option<Bytes>,
    read: usize,
    mode: Mode,
    /// Whether only its output remains to be returned.
    is_done: bool,
}

impl Call {
    fn unread(&self) -> &[u8] {
        &self.input.as_ref().map_or(&b""[..], Bytes::as_slice)[self.read..]
    }
}

impl Compressing {
    fn run<'py>(
        &mut self,
        py: Python<'py>,
        input: Option<Bytes>,
        mode: Mode,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let input = input.filter(|input| !input.as_slice().is_empty());
        let finishes = input.is_none() && self.calls.back().is_some_and(|last| last.mode == mode);
        if !finishes {
            self.calls.push_back(Call { input, read: 0, mode, is_done: false });
        }
        self.work(py)?;
        let mut out = Output::new();
        out.resume(&mut self.output);
        let packed = pending::deliver(py, out.into_bytes(), usize::MAX, &mut self.output)?;
        self.calls.clear();
        self.last_mode = mode;
        Ok(packed)
    }

    /// Does what all calls have asked for.
    fn work(&mut self, py: Python<'_>) -> PyResult<()> {
        let mut out = Output::new();
        out.resume(&mut self.output);
        let weight = self.calls.iter().map(|call| self.stream.weight(call.unread().len(), call.mode));
        let weight = weight.fold(0, usize::saturating_add);
        let (mut finished, mut read, mut failed) = (0, 0, false);
        let result = Region::new(&ZSTD_COMPRESS, weight).run(py, |task| {
            for call in &self.calls {
                if call.is_done {
                    finished += 1;
                    continue;
                }
                let mut rest = call.unread();
                let ran = self.stream.run(&mut rest, call.mode, &mut out, task);
                read = call.unread().len() - rest.len();
                failed = ran.as_ref().is_err_and(|error: &Error| error.kind != ErrorKind::Stopped);
                ran?;
                finished += 1;
            }
            Ok::<_, Error>(())
        });
        if failed {
            // What was held back is lost, as in the original.
            self.calls.clear();
            return result;
        }
        self.output = out.into_bytes().into_vec();
        if let Some(call) = self.calls.get_mut(finished) {
            call.read += read;
        } else if let Some(last) = self.calls.back_mut() {
            // Kept until its output is returned.
            finished -= 1;
            (last.read, last.is_done) = (last.input.as_ref().map_or(0, |input| input.as_slice().len()), true);
        }
        self.calls.drain(..finished);
        result
    }
}

#[pymethods]
impl ZstdCompressor {
    /// Collects input.
    #[classattr]
    const CONTINUE: i32 = Mode::Continue as i32;
    /// Writes out all input.
    #[classattr]
    const FLUSH_BLOCK: i32 = Mode::FlushBlock as i32;
    /// Writes out all input and ends the frame.
    #[classattr]
    const FLUSH_FRAME: i32 = Mode::FlushFrame as i32;

    #[new]
    #[pyo3(signature = (level=None, options=None, zstd_dict=None))]
    fn new(
        py: Python<'_>,
        level: Option<&Bound<'_, PyAny>>,
        options: Option<&Bound<'_, PyAny>>,
        zstd_dict: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let settings = arguments::settings(py, level, options, zstd_dict)?;
        let weight = settings.dictionary.as_ref().map_or(0, |(dictionary, _)| dictionary.content().len());
        let stream = Region::new(&ZSTD_COMPRESS, weight).run(py, |_| Compressor::new(&settings))?;
        Ok(Self(StreamLock::new(Compressing {
            stream,
            calls: VecDeque::new(),
            output: Vec::new(),
            last_mode: Mode::FlushFrame,
        })))
    }

    /// Compresses `data` and returns the output that is complete so far.
    #[pyo3(signature = (data, mode=0))]
    fn compress<'py>(
        &self,
        py: Python<'py>,
        data: &Bound<'py, PyAny>,
        mode: i32,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let mode = Mode::of(mode).ok_or_else(|| {
            PyValueError::with_message(
                "mode argument wrong value, it should be one of ZstdCompressor.CONTINUE, \
                 ZstdCompressor.FLUSH_BLOCK, ZstdCompressor.FLUSH_FRAME.",
            )
        })?;
        let data = Bytes::borrow(data)?;
        self.0.lock(py)?.run(py, Some(data), mode)
    }

    /// Returns the pending output; by default that ends the frame.
    #[pyo3(signature = (mode=2))]
    fn flush<'py>(&self, py: Python<'py>, mode: i32) -> PyResult<Bound<'py, PyBytes>> {
        let mode = Mode::of(mode).filter(|&mode| mode != Mode::Continue).ok_or_else(|| {
            PyValueError::with_message(
                "mode argument wrong value, it should be ZstdCompressor.FLUSH_FRAME or \
                 ZstdCompressor.FLUSH_BLOCK.",
            )
        })?;
        self.0.lock(py)?.run(py, None, mode)
    }

    /// Declares the size of the next frame's content.
    #[pyo3(signature = (size, /))]
    fn set_pledged_input_size(&self, py: Python<'_>, size: Option<i128>) -> PyResult<()> {
        const ERROR: u64 = u64::MAX - 1;
        let size = match size {
            None => None,
            Some(size) => Some(u64::try_from(size).ok().filter(|&size| size < ERROR).ok_or_else(|| {
                PyValueError::with_message(format!(
                    "size argument should be a positive int less than {ERROR}"
                ))
            })?),
        };
        let mut state = self.0.lock(py)?;
        if state.last_mode != Mode::FlushFrame || !state.calls.is_empty() {
            return Err(PyValueError::with_message(
                "set_pledged_input_size() method must be called when last_mode == FLUSH_FRAME",
            ));
        }
        state.stream.pledge(size).map_err(|error| crate::error::IntoException::into_exception(error, py))
    }

    /// The mode of the last call.
    #[getter]
    fn last_mode(&self, py: Python<'_>) -> PyResult<i32> {
        Ok(self.0.lock(py)?.last_mode as i32)
    }
}
