//! Decompression piece by piece.

use offlock_core::zstd::{Decompressor, Error, ErrorKind, Output};
use pyo3::exceptions::PyEOFError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::arguments;
use crate::borrow::Bytes;
use crate::bytes;
use crate::error::{IntoException, WithMessage};
use crate::input::Inputs;
use crate::operations::ZSTD_DECOMPRESS;
use crate::pending;
use crate::region::Region;
use crate::stream_lock::StreamLock;

/// A decompressor of one frame.
#[pyclass(frozen, module = "offlock.zstd")]
pub(super) struct ZstdDecompressor(StreamLock<Decompressing>);

/// A decompressor's state, its unread input, and the output of an interrupted call.
struct Decompressing {
    stream: Decompressor,
    input: Inputs,
    output: Vec<u8>,
    needs_input: bool,
    made: usize,
    max_output: usize,
}

impl Decompressing {
    fn run<'py>(&mut self, py: Python<'py>, data: Bytes, most: usize) -> PyResult<Bound<'py, PyBytes>> {
        self.input.push(data);
        // One byte more than allowed shows that there is more.
        let allowed = (self.max_output - self.made).saturating_add(1);
        let mut out = Output::new().limited(most.min(allowed));
        out.resume(&mut self.output);
        let (mut unread, mut failed) = (self.input.len(), false);
        // A few bytes can stand for any number.
        let weight = unread.saturating_add(most.min(1 << 20) / 4);
        let result = Region::new(&ZSTD_DECOMPRESS, weight).run(py, |task| {
            let (ran, left) = self.input.read(|input, _| self.stream.run(input, &mut out, task));
            unread = left;
            failed = ran.as_ref().is_err_and(|error: &Error| error.kind != ErrorKind::Stopped);
            ran
        });
        if failed {
            // As in the original, which then begins again.
            self.input.forget(0);
            self.needs_input = true;
            return result.and_then(|_| bytes::copied(py, b""));
        }
        self.input.forget(unread);
        // Until the output is returned: the calls below can be interrupted, too.
        self.needs_input = false;
        if let Err(error) = result {
            self.output = out.into_bytes().into_vec();
            return Err(error);
        }
        if out.len() > self.max_output - self.made {
            self.output = out.into_bytes().into_vec();
            return Err(Error::new(ErrorKind::Limit, self.stream.total_in()).into_exception(py));
        }
        // The limit of an interrupted call may have been higher.
        let plain = pending::deliver(py, out.into_bytes(), most, &mut self.output)?;
        let count = plain.as_bytes().len();
        self.made += count;
        self.needs_input = !self.stream.ended() && unread == 0 && count != most;
        Ok(plain)
    }

    /// Whether all of the frame was returned.
    fn eof(&self) -> bool {
        self.stream.ended() && self.output.is_empty()
    }
}

#[pymethods]
impl ZstdDecompressor {
    #[new]
    #[pyo3(signature = (zstd_dict=None, options=None, *, max_output=None))]
    fn new(
        py: Python<'_>,
        zstd_dict: Option<&Bound<'_, PyAny>>,
        options: Option<&Bound<'_, PyAny>>,
        max_output: Option<usize>,
    ) -> PyResult<Self> {
        let settings = arguments::decoder_settings(py, zstd_dict, options)?;
        let weight = settings.dictionary.as_ref().map_or(0, |(dictionary, _)| dictionary.content().len());
        let stream = Region::new(&ZSTD_DECOMPRESS, weight).run(py, |_| Decompressor::new(&settings))?;
        Ok(Self(StreamLock::new(Decompressing {
            stream,
            input: Inputs::default(),
            output: Vec::new(),
            needs_input: true,
            made: 0,
            max_output: max_output.unwrap_or(usize::MAX),
        })))
    }

    /// Decompresses the unread input of earlier calls and `data`, and returns at most `max_length` bytes (any number if
    /// it is negative).
    #[pyo3(signature = (data, max_length = -1), text_signature = "($self, data, max_length=-1)")]
    fn decompress<'py>(
        &self,
        py: Python<'py>,
        data: &Bound<'py, PyAny>,
        max_length: isize,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let data = Bytes::borrow(data)?;
        let mut state = self.0.lock(py)?;
        if state.eof() {
            return Err(PyEOFError::with_message("Already at the end of a Zstandard frame."));
        }
        state.run(py, data, usize::try_from(max_length).unwrap_or(usize::MAX))
    }

    /// Whether the end of the frame was reached.
    #[getter]
    fn eof(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.0.lock(py)?.eof())
    }

    /// Whether further output requires more input.
    #[getter]
    fn needs_input(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.0.lock(py)?.needs_input)
    }

    /// The bytes after the end of the frame.
    #[getter]
    fn unused_data<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let state = self.0.lock(py)?;
        if !state.eof() {
            return bytes::copied(py, b"");
        }
        let parts: Vec<_> = state.input.parts().collect();
        bytes::joined(py, &parts)
    }
}
