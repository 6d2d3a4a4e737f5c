//! Builds Python objects from a message, or from its tape. Needs the lock; runs no deeper than one call,
//! whatever the depth of the message.

use std::time::{Duration, Instant};

use offlock_core::msgpack::{Direct, Error, ErrorKind, Item, Source, Text, Timestamp, Token};
use pyo3::exceptions::PyValueError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDelta, PyDict, PyString, PyTuple};

use super::classes;
use super::errors::exception;
use super::ffi::{self, Sequence};
use super::key_cache::KeyCache;
use super::options::{MAX_DEPTH, MapHook, TimestampAs, UnpackOptions};
use crate::region;

/// Builds one object after the other.
pub(super) struct Builder<'a, 'py> {
    py: Python<'py>,
    options: &'a UnpackOptions,
    cache: Option<&'a mut KeyCache>,
    /// The keys of the tape, as far as they were built.
    keys: Vec<Option<Bound<'py, PyAny>>>,
    pace: Option<Pace>,
}

/// The containers that wait for values, while a message is built or its rest has not arrived.
#[derive(Default)]
pub(super) struct Work {
    /// The outer ones.
    open: Vec<Frame>,
    frame: Frame,
}

/// A container that waits for values.
#[derive(Default)]
enum Frame {
    /// Nothing is open: the next value is the result.
    #[default]
    Root,
    Items(Sequence),
    Entries {
        dict: Py<PyDict>,
        left: u32,
        key: Option<Py<PyAny>>,
    },
    Pairs {
        pairs: Sequence,
        key: Option<Py<PyAny>>,
    },
}

impl Frame {
    #[inline(always)]
    const fn wants_key(&self) -> bool {
        matches!(self, Self::Entries { key: None, .. } | Self::Pairs { key: None, .. })
    }

    /// How many values are missing.
    fn missing(&self) -> u64 {
        match self {
            Self::Root => 1,
            Self::Items(items) => items.missing() as u64,
            Self::Entries { left, key, .. } => u64::from(*left) * 2 - u64::from(key.is_some()),
            Self::Pairs { pairs, key } => pairs.missing() as u64 * 2 - u64::from(key.is_some()),
        }
    }

    fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self {
            Self::Root => Ok(()),
            Self::Items(items) => visit.call(items.object()),
            Self::Entries { dict, key, .. } => visit.call(dict).and_then(|()| visit.call(key)),
            Self::Pairs { pairs, key } => visit.call(pairs.object()).and_then(|()| visit.call(key)),
        }
    }
}

impl Work {
    /// How many values are missing on each level, from the outermost to the innermost.
    pub(super) fn missing(&self) -> Vec<u64> {
        // Each of the outer ones has begun the value that is the next one.
        let outer = self.open.iter().map(|frame| frame.missing() - 1);
        let root = if matches!(self.frame, Frame::Root) { None } else { Some(0) };
        root.into_iter().chain(outer).chain([self.frame.missing()]).collect()
    }

    /// Shows what was built to the garbage collector.
    pub(super) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.open.iter().chain([&self.frame]).try_for_each(|frame| frame.traverse(visit))
    }

    #[inline]
    fn depth(&self) -> usize {
        self.open.len() + usize::from(!matches!(self.frame, Frame::Root))
    }

    #[inline]
    fn push(&mut self, new: Frame) {
        let outer = std::mem::replace(&mut self.frame, new);
        if !matches!(outer, Frame::Root) {
            self.open.push(outer);
        }
    }

    #[inline]
    fn pop(&mut self) -> Frame {
        std::mem::replace(&mut self.frame, self.open.pop().unwrap_or_default())
    }
}

impl<'a, 'py> Builder<'a, 'py> {
    /// A builder that remembers keys in `cache`.
    pub(super) const fn new(
        py: Python<'py>,
        options: &'a UnpackOptions,
        cache: Option<&'a mut KeyCache>,
    ) -> Self {
        Self { py, options, cache, keys: Vec::new(), pace: None }
    }

    /// Lets other threads have the lock now and then.
    pub(super) fn giving_way(mut self) -> Self {
        self.pace = Some(Pace::new());
        self
    }

    /// Builds the next value of `source`.
    #[inline]
    pub(super) fn build<'s>(&mut self, source: &mut impl Source<'s>) -> PyResult<Bound<'py, PyAny>> {
        self.keys.clear(); // numbers count within one source
        let object = self.resume(source, &mut Work::default())?;
        object.ok_or_else(|| self.error(ErrorKind::Truncated, source.offset()))
    }

    /// Goes on with the value begun in `work`. `None` when the rest of it has not arrived yet.
    #[inline]
    pub(super) fn resume<'s, S: Source<'s>>(
        &mut self,
        source: &mut S,
        work: &mut Work,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        loop {
            let item = match source.next() {
                Ok(item) => item,
                Err(Error { kind: ErrorKind::Truncated, .. }) if S::STREAM => return Ok(None),
                Err(error) => return Err(exception(self.py, error)),
            };
            let value = match item {
                Item::Token(Token::Array(length)) => {
                    self.check_container(source, length.into(), work)?;
                    let items =
                        Sequence::new(self.py, length as usize, source.room(), self.options.use_list)?;
                    if length > 0 {
                        work.push(Frame::Items(items));
                        continue;
                    }
                    self.finish_sequence(items)?
                }
                Item::Token(Token::Map(length)) => {
                    self.check_container(source, u64::from(length) * 2, work)?;
                    let entries = self.map(length, source.room())?;
                    if length > 0 {
                        work.push(entries);
                        continue;
                    }
                    self.finish_map(entries)?
                }
                Item::Token(token) => self.scalar(token, source.offset(), work.frame.wants_key())?,
                Item::Text(bytes, text) => self.text(bytes, text)?,
                Item::Key(number) => self.numbered_key(number, source)?,
            };
            self.keep_pace()?;
            if let Some(done) = self.deliver(value, work)? {
                return Ok(Some(done));
            }
        }
    }

    /// Puts a value where it belongs; returns the outermost one when that is complete.
    #[inline(always)]
    fn deliver(&self, mut value: Bound<'py, PyAny>, work: &mut Work) -> PyResult<Option<Bound<'py, PyAny>>> {
        loop {
            let complete = match &mut work.frame {
                Frame::Root => return Ok(Some(value)),
                Frame::Items(items) => items.push(value)?,
                Frame::Entries { dict, left, key } => match key.take() {
                    None => {
                        self.check_key(&value)?;
                        *key = Some(value.unbind());
                        false
                    }
                    Some(key) => {
                        ffi::set_item(dict.bind(self.py), &key.into_bound(self.py), &value)?;
                        *left -= 1;
                        *left == 0
                    }
                },
                Frame::Pairs { pairs, key } => match key.take() {
                    None => {
                        self.check_key(&value)?;
                        *key = Some(value.unbind());
                        false
                    }
                    Some(key) => {
                        pairs.push(PyTuple::new(self.py, [key.into_bound(self.py), value])?.into_any())?
                    }
                },
            };
            if !complete {
                return Ok(None);
            }
            value = match work.pop() {
                Frame::Items(items) => self.finish_sequence(items)?,
                entries => self.finish_map(entries)?,
            };
        }
    }

    #[inline]
    fn check_container<'s, S: Source<'s>>(&self, source: &S, values: u64, work: &Work) -> PyResult<()> {
        if work.depth() >= MAX_DEPTH {
            return Err(self.error(ErrorKind::TooDeep(MAX_DEPTH), source.offset()));
        }
        if !S::STREAM && values > source.room() as u64 {
            return Err(self.error(ErrorKind::Truncated, source.offset()));
        }
        Ok(())
    }

    #[cold]
    fn error(&self, kind: ErrorKind, offset: usize) -> PyErr {
        exception(self.py, Error { kind, offset })
    }

    #[inline]
    fn finish_sequence(&self, items: Sequence) -> PyResult<Bound<'py, PyAny>> {
        let items = items.finish(self.py)?;
        match &self.options.list_hook {
            None => Ok(items),
            Some(hook) => hook.bind(self.py).call1((items,)),
        }
    }

    #[inline]
    fn map(&self, length: u32, room: usize) -> PyResult<Frame> {
        if matches!(self.options.map_hook, MapHook::Pairs(_)) {
            return Ok(Frame::Pairs {
                pairs: Sequence::new(self.py, length as usize, room / 2, true)?,
                key: None,
            });
        }
        let dict = ffi::dict(self.py, (length as usize).min(room / 2))?;
        Ok(Frame::Entries { dict: dict.unbind(), left: length, key: None })
    }

    #[inline]
    fn finish_map(&self, entries: Frame) -> PyResult<Bound<'py, PyAny>> {
        let object = match entries {
            Frame::Entries { dict, .. } => dict.into_bound(self.py).into_any(),
            Frame::Pairs { pairs, .. } | Frame::Items(pairs) => pairs.finish(self.py)?,
            Frame::Root => self.py.None().into_bound(self.py),
        };
        match &self.options.map_hook {
            MapHook::None => Ok(object),
            MapHook::Object(hook) | MapHook::Pairs(hook) => hook.bind(self.py).call1((object,)),
        }
    }

    #[inline(always)]
    fn check_key(&self, key: &Bound<'py, PyAny>) -> PyResult<()> {
        if !self.options.strict_map_key
            || key.is_exact_instance_of::<PyString>()
            || key.is_exact_instance_of::<PyBytes>()
        {
            return Ok(());
        }
        Err(refused_key(key))
    }

    #[inline(always)]
    fn scalar(&mut self, token: Token<'_>, offset: usize, is_key: bool) -> PyResult<Bound<'py, PyAny>> {
        let py = self.py;
        match token {
            Token::Nil => Ok(py.None().into_bound(py)),
            Token::Bool(value) => Ok(pyo3::types::PyBool::new(py, value).to_owned().into_any()),
            Token::UInt(value) => ffi::uint(py, value),
            Token::Int(value) => ffi::int(py, value),
            Token::F32(value) => ffi::float(py, value.into()),
            Token::F64(value) => ffi::float(py, value),
            Token::Str(bytes) => self.str(bytes, is_key),
            Token::Bin(bytes) => ffi::bytes(py, bytes),
            Token::Ext(kind, payload) => self.extension(kind, payload, offset),
            Token::Array(_) | Token::Map(_) => Ok(py.None().into_bound(py)), // never: containers are not scalars
        }
    }

    #[inline(always)]
    fn str(&mut self, bytes: &[u8], is_key: bool) -> PyResult<Bound<'py, PyAny>> {
        if self.options.raw {
            return ffi::bytes(self.py, bytes);
        }
        if is_key
            && let Some(cache) = &mut self.cache
            && let Some(key) = cache.get(self.py, bytes)?
        {
            return Ok(key);
        }
        if bytes.is_ascii() { ffi::ascii(self.py, bytes) } else { self.decode(bytes) }
    }

    #[inline]
    fn text(&self, bytes: &[u8], text: Text) -> PyResult<Bound<'py, PyAny>> {
        if self.options.raw {
            return ffi::bytes(self.py, bytes);
        }
        if text == Text::Ascii { ffi::ascii(self.py, bytes) } else { self.decode(bytes) }
    }

    fn decode(&self, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        ffi::utf8(self.py, bytes, self.options.unicode_errors.as_deref())
    }

    #[inline]
    fn numbered_key<'s>(&mut self, number: u32, source: &impl Source<'s>) -> PyResult<Bound<'py, PyAny>> {
        let place = number as usize;
        if let Some(Some(key)) = self.keys.get(place) {
            return Ok(key.clone());
        }
        let bytes = source.key(number);
        let mut key = self.text(bytes, Text::of(bytes))?;
        if !self.options.raw {
            ffi::intern(&mut key);
        }
        if self.keys.len() <= place {
            self.keys.resize(place + 1, None);
        }
        self.keys[place] = Some(key.clone());
        Ok(key)
    }

    #[cold]
    fn extension(&self, kind: i8, payload: &[u8], offset: usize) -> PyResult<Bound<'py, PyAny>> {
        if kind == Timestamp::TYPE {
            let timestamp =
                Timestamp::from_payload(payload, offset).map_err(|error| exception(self.py, error))?;
            return self.timestamp(timestamp);
        }
        let arguments = (kind, PyBytes::new(self.py, payload));
        match &self.options.ext_hook {
            Some(hook) => hook.bind(self.py).call1(arguments),
            None => classes::ext_type(self.py)?.call1(arguments),
        }
    }

    fn timestamp(&self, timestamp: Timestamp) -> PyResult<Bound<'py, PyAny>> {
        let Timestamp { seconds, nanoseconds } = timestamp;
        let py = self.py;
        match self.options.timestamp {
            TimestampAs::Timestamp => classes::timestamp(py)?.call1((seconds, nanoseconds)),
            TimestampAs::Float => ffi::float(py, f64::from(nanoseconds) / 1e9 + seconds as f64),
            TimestampAs::Nanoseconds => {
                let all = i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds);
                Ok(all.into_pyobject(py)?.into_any())
            }
            TimestampAs::Datetime => {
                let days = i32::try_from(seconds / 86400).map_err(|_| {
                    pyo3::exceptions::PyOverflowError::new_err(format!(
                        "{seconds} seconds are too many for a datetime"
                    ))
                })?;
                let micros = (nanoseconds / 1000).cast_signed();
                let delta = PyDelta::new(py, days, (seconds % 86400) as i32, micros, true)?;
                classes::epoch(py)?.add(delta)
            }
        }
    }

    #[inline(always)]
    fn keep_pace(&mut self) -> PyResult<()> {
        match &mut self.pace {
            None => Ok(()),
            Some(pace) => pace.step(self.py),
        }
    }
}

#[cold]
fn refused_key(key: &Bound<'_, PyAny>) -> PyErr {
    let shown = key.repr().map_or_else(|_| String::from("?"), |shown| shown.to_string());
    let kind = super::types::name_of(key);
    PyValueError::new_err(format!("{kind} is not allowed for map key when strict_map_key=True: {shown}"))
}

/// Cuts a long build into bursts, between which other threads can have the lock.
struct Pace {
    until_look: u32,
    burst_began: Instant,
}

const LOOK_EVERY: u32 = 512;
const BURST: Duration = Duration::from_millis(1);

impl Pace {
    fn new() -> Self {
        Self { until_look: LOOK_EVERY, burst_began: Instant::now() }
    }

    #[inline(always)]
    fn step(&mut self, py: Python<'_>) -> PyResult<()> {
        self.until_look -= 1;
        if self.until_look == 0 { self.look(py) } else { Ok(()) }
    }

    #[cold]
    fn look(&mut self, py: Python<'_>) -> PyResult<()> {
        self.until_look = LOOK_EVERY;
        if self.burst_began.elapsed() >= BURST {
            region::give_way(py)?;
            self.burst_began = Instant::now();
        }
        Ok(())
    }
}

/// Builds the object of a whole message in one pass. Also returns where the message ends.
#[inline]
pub(super) fn direct<'py>(
    py: Python<'py>,
    bytes: &[u8],
    options: &UnpackOptions,
    cache: Option<&mut KeyCache>,
) -> PyResult<(Bound<'py, PyAny>, usize)> {
    let mut source = Direct::<false>::at(bytes, 0, options.limits(bytes.len()));
    let object = Builder::new(py, options, cache).build(&mut source)?;
    Ok((object, source.pos()))
}
