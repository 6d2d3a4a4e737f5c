//! Decompressors that keep their unread input.

use offlock_core::Task;
use offlock_core::deflate::{Error, ErrorKind, Inflater, Output, Status};
use pyo3::exceptions::{PyEOFError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::error::DeflateError;
use crate::borrow::Bytes;
use crate::bytes;
use crate::error::{IntoException, WithMessage, no_memory};
use crate::input::Inputs;
use crate::operations::ZLIB_INFLATE;
use crate::pending;
use crate::region::Region;
use crate::stream_lock::StreamLock;

/// A decoder that a [`Decompressor`] can use.
pub(super) trait Decode: Send {
    fn decode(&mut self, input: &mut &[u8], out: &mut Output<'_>, task: &Task<'_>) -> Result<Status, Error>;
    fn read_so_far(&self) -> u64;
}

/// A decoder, its unread input, and the output that an interrupted call did not return.
pub(super) struct Decompressor<D> {
    pub(super) stream: D,
    input: Inputs,
    output: Vec<u8>,
    made: usize,
    max_output: usize,
}

impl<D: Decode> Decompressor<D> {
    pub(super) fn new(stream: D, max_output: Option<usize>) -> Self {
        let max_output = max_output.unwrap_or(usize::MAX);
        Self { stream, input: Inputs::default(), output: Vec::new(), made: 0, max_output }
    }

    /// The unread input.
    pub(super) fn left(&self) -> &Inputs {
        &self.input
    }

    /// Whether there is output that was not returned yet.
    pub(super) fn has_pending(&self) -> bool {
        !self.output.is_empty()
    }

    /// Decodes the unread input, then `data`, to at most `most` bytes.
    pub(super) fn run<'py, F: IntoException>(
        &mut self,
        py: Python<'py>,
        data: Bytes,
        most: usize,
        failed: impl Fn(Error) -> F + Send + Sync,
    ) -> PyResult<Bound<'py, PyBytes>> {
        self.input.push(data);
        // One byte more than allowed shows that there is more.
        let allowed = (self.max_output - self.made).saturating_add(1);
        let mut out = Output::new().limited(most.min(allowed));
        out.resume(&mut self.output);
        // Without an error in the data, a run was interrupted before, in or after its work.
        let (mut is_bad, mut unread) = (false, self.input.len());
        let result = Region::new(&ZLIB_INFLATE, unread).run(py, |task| {
            let (status, left) = self.input.read(|input, _| self.stream.decode(input, &mut out, task));
            unread = left;
            is_bad = status.as_ref().is_err_and(|error| error.kind != ErrorKind::Stopped);
            status.map_err(&failed)
        });
        self.input.forget(unread);
        match result {
            Err(interrupt) if !is_bad => {
                self.output = out.into_bytes().into_vec();
                return Err(interrupt);
            }
            _ if out.len() > self.max_output - self.made => {
                return Err(
                    failed(Error::new(ErrorKind::Limit, self.stream.read_so_far())).into_exception(py)
                );
            }
            Err(error) => return Err(error),
            Ok(_) => {}
        }
        // The limit of an interrupted call may have been higher.
        let plain = pending::deliver(py, out.into_bytes(), most, &mut self.output)?;
        self.made += plain.as_bytes().len();
        Ok(plain)
    }
}

/// A decompressor, and its preset dictionary.
struct Inflating {
    stream: Inflater,
    zdict: Option<Bytes>,
}

impl Decode for Inflating {
    fn decode(&mut self, input: &mut &[u8], out: &mut Output<'_>, task: &Task<'_>) -> Result<Status, Error> {
        match (self.stream.run(input, out, task)?, &self.zdict) {
            (Status::NeedDict, Some(zdict)) => {
                self.stream.set_dictionary(zdict.as_slice())?;
                self.stream.run(input, out, task)
            }
            (Status::NeedDict, None) => Err(Error::new(ErrorKind::NeedDict, self.stream.total_in())),
            (status, _) => Ok(status),
        }
    }

    fn read_so_far(&self) -> u64 {
        self.stream.total_in()
    }
}

impl Decompressor<Inflating> {
    /// Whether the end of the stream was reached, and all output returned.
    fn has_ended(&self) -> bool {
        self.stream.stream.ended() && !self.has_pending()
    }
}

/// The decompressor on which the original's `gzip` is built: it keeps its input, and stops at the end of the
/// stream.
#[pyclass(frozen, module = "offlock.zlib", name = "_ZlibDecompressor")]
pub(super) struct ZlibDecompressor(StreamLock<Decompressor<Inflating>>);

#[pymethods]
impl ZlibDecompressor {
    #[new]
    #[pyo3(signature = (wbits=15, zdict=None))]
    fn new(wbits: i32, zdict: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let zdict = zdict.map(Bytes::borrow).transpose()?;
        let stream =
            Inflater::new(wbits).map_err(|_| PyValueError::with_message("Invalid initialization option"))?;
        Ok(Self(StreamLock::new(Decompressor::new(Inflating { stream, zdict }, None))))
    }

    /// Decompresses the unread input of earlier calls and `data`, and returns at most `max_length` bytes (any
    /// number if it is negative).
    #[pyo3(signature = (data, max_length=-1), text_signature = "($self, data, max_length=-1)")]
    fn decompress<'py>(
        &self,
        py: Python<'py>,
        data: &Bound<'py, PyAny>,
        max_length: isize,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let data = Bytes::borrow(data)?;
        let mut decompressor = self.0.lock(py)?;
        if decompressor.has_ended() {
            return Err(PyEOFError::with_message("End of stream already reached"));
        }
        let most = usize::try_from(max_length).unwrap_or(usize::MAX);
        decompressor.run(py, data, most, DeflateError::while_("while decompressing data"))
    }

    /// Whether the end of the stream was reached.
    #[getter]
    fn eof(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.0.lock(py)?.has_ended())
    }

    /// The bytes after the end of the stream.
    #[getter]
    fn unused_data<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let decompressor = self.0.lock(py)?;
        let unused = if decompressor.has_ended() { decompressor.left().joined() } else { Ok(Vec::new()) };
        bytes::copied(py, &unused.map_err(no_memory)?)
    }

    /// Whether further output requires more input.
    #[getter]
    fn needs_input(&self, py: Python<'_>) -> PyResult<bool> {
        let decompressor = self.0.lock(py)?;
        let has_all = decompressor.stream.stream.ended() || decompressor.has_pending();
        Ok(!has_all && decompressor.left().is_empty())
    }
}
