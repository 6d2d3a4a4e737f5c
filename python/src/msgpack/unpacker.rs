//! The class `Unpacker`: messages from a stream.

use std::sync::atomic::{AtomicU64, Ordering};

use offlock_core::msgpack::{Direct, Error, ErrorKind, Limits, Reader, Scanner, Source as _, Token};
use offlock_core::{Stopped, memory};
use pyo3::exceptions::{PyAssertionError, PyTypeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::build::{Builder, Work};
use super::classes;
use super::error::{DecodeError, exception};
use super::input::Input;
use super::key_cache::KeyCache;
use super::long_strings;
use super::object_lock::ObjectLock;
use super::options::{MAX_DEPTH, UnpackOptions};
use crate::cpython::late_init::Boxed;
use crate::error::{WithMessage, of_class};
use crate::large::Large;
use crate::objects::{Int, name};
use crate::operations::{MSGPACK_FEED, MSGPACK_SKIP};
use crate::region::{self, Region};

const DEFAULT_BUFFER: usize = 100 * 1024 * 1024;
const DEFAULT_READ: usize = 1024 * 1024;

/// How many bytes are copied between two checks of the task.
const PIECE: usize = 256 << 10;

/// Unpacks messages from a stream.
///
/// A callback of the unpacker, and the file that it reads, cannot use it: RuntimeError. Nor can other threads
/// during such a call; without callbacks and files their calls wait.
#[pyclass(frozen, subclass, module = "offlock.msgpack")]
pub(super) struct Unpacker {
    state: Boxed<ObjectLock<State>>,
    /// The number of bytes unpacked so far. Outside of the state, so that a hook can read it.
    offset: AtomicU64,
}

struct State {
    options: UnpackOptions,
    source: Option<Source>,
    max_buffer: usize,
    /// The received bytes; everything before `head` is unpacked.
    buffer: Large<Vec<u8>>,
    head: usize,
    /// The object in progress, whose rest has not arrived.
    work: Work,
    cache: KeyCache,
}

struct Source {
    file: Py<PyAny>,
    read: Py<PyAny>,
    read_size: usize,
    ended: bool,
}

#[pymethods]
impl Unpacker {
    #[new]
    #[pyo3(
        signature = (*_arguments, **_options),
        text_signature = "(file_like=None, *, read_size=0, max_buffer_size=104857600, object_hook=None, \
                          list_hook=None, use_list=True, raw=False, timestamp=0, strict_map_key=True, \
                          unicode_errors=None, object_pairs_hook=None, ext_hook=None, max_str_len=-1, \
                          max_bin_len=-1, max_array_len=-1, max_map_len=-1, max_ext_len=-1, release='auto')"
    )]
    fn new(_arguments: &Bound<'_, PyTuple>, _options: Option<&Bound<'_, PyDict>>) -> Self {
        let state = Boxed::new(ObjectLock::new("the Unpacker cannot be used while unpacking is in progress"));
        Self { state, offset: AtomicU64::new(0) }
    }

    #[pyo3(signature = (file_like = None, **options))]
    fn __init__(
        &self,
        py: Python<'_>,
        file_like: Option<&Bound<'_, PyAny>>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        let new = State::from_arguments(file_like, options)?;
        let mut state = self.state.lock(py)?;
        let old = std::mem::replace(&mut *state, new);
        self.offset.store(0, Ordering::Relaxed);
        drop(state);
        drop(old); // may run code of the program
        Ok(())
    }

    /// Appends bytes to the stream.
    fn feed(&self, next_bytes: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = next_bytes.py();
        let input = Input::borrow(next_bytes)?;
        let mut state = self.state.lock(py)?;
        if state.source.is_some() {
            return Err(PyAssertionError::with_message(
                "unpacker.feed() is not be able to use with `file_like`.",
            ));
        }
        state.others_wait(true);
        state.append(py, input.as_slice())
    }

    /// Unpacks the next object. `OutOfData` when it is not complete yet.
    fn unpack<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.next_object(py)?.ok_or_else(|| out_of_data(py))
    }

    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.next_object(py)
    }

    /// Skips the next object. `OutOfData` when it is not complete yet.
    fn skip(&self, py: Python<'_>) -> PyResult<()> {
        let mut state = self.state.lock(py)?;
        state.others_wait(state.source.is_none());
        let begun = std::mem::take(&mut state.work);
        let mut scanner = Scanner::inside(begun.missing());
        let length = self.arrived(py, &mut state, &mut scanner)?.ok_or_else(|| out_of_data(py))?;
        self.consume(&mut state, length);
        drop(state);
        drop(begun); // may run code of the program
        Ok(())
    }

    /// Reads the header of an array, and returns the number of its items, which the caller unpacks next.
    fn read_array_header(&self, py: Python<'_>) -> PyResult<Int> {
        self.header(py, |token| if let Token::Array(items) = token { Some(items) } else { None })
            .map(|items| Int(items as usize))
    }

    /// Reads the header of a map, and returns the number of its entries, whose keys and values the caller
    /// unpacks next.
    fn read_map_header(&self, py: Python<'_>) -> PyResult<Int> {
        self.header(py, |token| if let Token::Map(entries) = token { Some(entries) } else { None })
            .map(|entries| Int(entries as usize))
    }

    /// Returns the next bytes of the stream without decoding them: `nbytes`, or fewer at the end.
    fn read_bytes<'py>(&self, py: Python<'py>, nbytes: usize) -> PyResult<Bound<'py, PyAny>> {
        let mut state = self.state.lock(py)?;
        state.others_wait(state.source.is_none());
        let there = nbytes.min(state.pending());
        let bytes =
            long_strings::bytes(py, &state.buffer[state.head..state.head + there], state.options.release)?
                .into_any();
        self.consume(&mut state, there);
        let Some(source) = state.source.as_ref().filter(|_| there < nbytes) else { return Ok(bytes) };
        let more = source.file.bind(py).call_method1(name!("read"), (Int(nbytes - there),))?;
        self.offset.fetch_add(more.len()? as u64, Ordering::Relaxed);
        bytes.add(more)
    }

    /// The number of bytes unpacked so far, which is the position of the next object.
    fn tell(&self) -> Int {
        Int(self.offset.load(Ordering::Relaxed) as usize)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // While a state is in use, a running method holds it as well.
        let Some(state) = self.state.try_lock() else { return Ok(()) };
        if let Some(source) = &state.source {
            visit.call(&source.file)?;
            visit.call(&source.read)?;
        }
        state.work.traverse(&visit)?;
        state.options.traverse(&visit)
    }

    fn __clear__(&self) {
        let old = self.state.try_lock().map(|mut state| std::mem::take(&mut *state));
        drop(old); // may run code of the program
    }
}

impl Unpacker {
    fn next_object<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        region::yield_between_calls(py, 0)?;
        let mut state = self.state.lock(py)?;
        state.others_wait(state.is_plain());
        loop {
            if let Some(object) = self.resume(py, &mut state)? {
                return Ok(Some(object));
            }
            if !state.read(py)? {
                return Ok(None);
            }
        }
    }

    /// Continues building with the received bytes.
    fn resume<'py>(&self, py: Python<'py>, state: &mut State) -> PyResult<Option<Bound<'py, PyAny>>> {
        let State { options, buffer, head, cache, work, max_buffer, .. } = state;
        let mut source = Direct::<true>::at(&buffer[*head..], 0, options.limits(*max_buffer));
        let result = Builder::new(py, options, Some(cache)).resume(&mut source, work);
        let mut taken = source.pos();
        if result.is_err() {
            *work = Work::default();
            // Like msgpack, which continues with the last byte of the value that caused the error.
            taken = taken.saturating_sub(1).max(source.offset());
        }
        self.consume(state, taken);
        result
    }

    /// The length of the next value, once it has arrived completely; `None` when the stream ends before.
    fn arrived(&self, py: Python<'_>, state: &mut State, scanner: &mut Scanner) -> PyResult<Option<usize>> {
        let limits = Limits::depth(MAX_DEPTH);
        loop {
            let pending = &state.buffer[state.head..];
            let run = Region::new(&MSGPACK_SKIP, pending.len()).release(state.options.release);
            match run.run(py, |task| Ok::<_, Stopped>(scanner.advance(pending, &limits, task)))? {
                Ok(Some(length)) => return Ok(Some(length)),
                Ok(None) => {}
                Err(error) => {
                    self.consume(state, error.offset);
                    return Err(exception(py, error));
                }
            }
            if !state.read(py)? {
                return Ok(None);
            }
        }
    }

    fn header(&self, py: Python<'_>, wanted: impl Fn(Token<'_>) -> Option<u32>) -> PyResult<u32> {
        let mut state = self.state.lock(py)?;
        state.others_wait(state.source.is_none());
        loop {
            let mut reader = Reader::at(&state.buffer, state.head);
            match reader.token() {
                Ok(token) => {
                    let Some(length) = wanted(token) else { return Err(unexpected_header(reader.peek())) };
                    let taken = reader.pos() - state.head;
                    self.consume(&mut state, taken);
                    return Ok(length);
                }
                // A string or an extension that has not arrived completely is not a header either.
                Err(Error { kind: ErrorKind::Truncated, .. }) if may_be_header(reader.peek()) => {}
                Err(_) => return Err(unexpected_header(reader.peek())),
            }
            if !state.read(py)? {
                return Err(out_of_data(py));
            }
        }
    }

    fn consume(&self, state: &mut State, bytes: usize) {
        state.head += bytes;
        self.offset.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

impl Default for State {
    fn default() -> Self {
        Self {
            options: UnpackOptions::default(),
            source: None,
            max_buffer: DEFAULT_BUFFER,
            buffer: Large::new(Vec::new()),
            head: 0,
            work: Work::default(),
            cache: KeyCache::default(),
        }
    }
}

impl State {
    fn from_arguments(
        file_like: Option<&Bound<'_, PyAny>>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let (mut read_size, mut max_buffer) = (0, DEFAULT_BUFFER);
        let mut state = Self::default();
        if let Some(options) = options {
            state.options = UnpackOptions::from_keywords(options, |name, value| {
                match name {
                    "read_size" => read_size = value.extract()?,
                    "max_buffer_size" => max_buffer = value.extract()?,
                    _ => return Ok(false),
                }
                Ok(true)
            })?;
        }
        if max_buffer == 0 {
            max_buffer = i32::MAX as usize;
        }
        if read_size > max_buffer {
            return Err(PyValueError::with_message("read_size should be less or equal to max_buffer_size"));
        }
        if read_size == 0 {
            read_size = max_buffer.min(DEFAULT_READ);
        }
        state.max_buffer = max_buffer;
        state.source = file_like.map(|file| Source::new(file, read_size)).transpose()?;
        Ok(state)
    }

    fn pending(&self) -> usize {
        self.buffer.len() - self.head
    }

    fn append(&mut self, py: Python<'_>, bytes: &[u8]) -> PyResult<()> {
        if self.pending() + bytes.len() > self.max_buffer {
            return Err(buffer_full(py));
        }
        let Self { buffer, head, options, .. } = self;
        let run = Region::new(&MSGPACK_FEED, bytes.len()).release(options.release);
        run.run(py, |task| {
            if *head > 0 && buffer.len() + bytes.len() > buffer.capacity() {
                buffer.drain(..*head);
                *head = 0;
            }
            // All or nothing: the caller may repeat an interrupted call.
            let before = buffer.len();
            memory::reserve(buffer, bytes.len())?;
            for piece in bytes.chunks(PIECE) {
                buffer.extend_from_slice(piece);
                if let Err(stopped) = task.check() {
                    buffer.truncate(before);
                    return Err(DecodeError(stopped.into()));
                }
            }
            Ok::<_, DecodeError>(())
        })
    }

    /// Whether no code of the program runs while a value is built from the received bytes.
    fn is_plain(&self) -> bool {
        self.source.is_none() && self.options.is_plain()
    }

    /// Reads more from the file. Returns whether there was more.
    fn read(&mut self, py: Python<'_>) -> PyResult<bool> {
        let room = self.max_buffer - self.pending();
        let Some(source) = self.source.as_mut().filter(|source| !source.ended) else { return Ok(false) };
        if room == 0 {
            return Err(buffer_full(py));
        }
        let bytes = source.read.bind(py).call1((Int(source.read_size.min(room)),))?;
        if !bytes.is_truthy()? {
            source.ended = true;
            return Ok(false);
        }
        let input = Input::borrow(&bytes)?;
        self.append(py, input.as_slice())?;
        Ok(true)
    }
}

impl Source {
    fn new(file: &Bound<'_, PyAny>, read_size: usize) -> PyResult<Self> {
        let read = file.getattr(name!("read"))?;
        if !read.is_callable() {
            return Err(PyTypeError::with_message("`file_like.read` must be a callable."));
        }
        Ok(Self { file: file.clone().unbind(), read: read.unbind(), read_size, ended: false })
    }
}

fn may_be_header(head: Option<u8>) -> bool {
    matches!(head, None | Some(0x80..=0x9f | 0xdc..=0xdf))
}

fn unexpected_header(head: Option<u8>) -> PyErr {
    let head = head.map_or_else(String::new, |head| format!(": 0x{head:02x}"));
    PyValueError::with_message(format!("Unexpected type header on stream{head}"))
}

fn out_of_data(py: Python<'_>) -> PyErr {
    of_class(classes::out_of_data(py), "No more data to unpack.")
}

fn buffer_full(py: Python<'_>) -> PyErr {
    of_class(classes::buffer_full(py), "max_buffer_size is reached")
}
