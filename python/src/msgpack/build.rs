//! Builds Python objects from a message, or from its tape. Needs the lock. What is nested deep, or has not arrived as a
//! whole, is kept in a list of its own (`Work`), and takes no more of the machine's stack.

use offlock_core::msgpack::{self, Direct, Error, ErrorKind, ShortKey, Source, Text, Timestamp, Visitor};
use pyo3::exceptions::PyValueError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDelta, PyDict, PyString};

use super::classes;
use super::errors::exception;
use super::ffi::{self, Sequence};
use super::key_cache::{KeyCache, intern};
use super::long;
use super::options::{MAX_DEPTH, MapHook, TimestampAs, UnpackOptions};
use crate::errors::WithMessage;
use crate::objects::{Int, tuple};
use crate::pace::Pace;

/// Containers that are nested deeper take no more of the machine's stack.
const RECURSION: usize = 64;

/// Longer strings and the like count as more than one value in the time they take.
const LONG: usize = 8 << 10;

/// Of so many values a container takes a part of a millisecond to make.
const MANY: u32 = 1 << 16;

/// Builds one object after the other.
pub(super) struct Builder<'a, 'py> {
    py: Python<'py>,
    options: &'a UnpackOptions,
    cache: Option<&'a mut KeyCache>,
    /// The keys of the tape, as far as they were built.
    keys: Vec<Option<Bound<'py, PyAny>>>,
    /// The strings of the tape that were laid out before, in its order.
    texts: std::vec::IntoIter<Bound<'py, PyAny>>,
    /// Why there was no value.
    stop: Stop,
    pace: Pace,
}

/// The containers that wait for values, while a message is built or its rest has not arrived.
#[derive(Default)]
pub(super) struct Work {
    /// How many are around all of them.
    outer: usize,
    open: Vec<Frame>,
    /// The innermost one.
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
    /// How many values are missing.
    fn missing(&self) -> u64 {
        match self {
            Self::Root => 1,
            Self::Items(items) => items.missing() as u64,
            Self::Entries { left, key, .. } => u64::from(*left) * 2 - u64::from(key.is_some()),
            Self::Pairs { pairs, key } => pairs.missing() as u64 * 2 - u64::from(key.is_some()),
        }
    }

    /// Keeps a key, in a map, until its value is there.
    fn wait_for_value(&mut self, of: Py<PyAny>) {
        if let Self::Entries { key, .. } | Self::Pairs { key, .. } = self {
            *key = Some(of);
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
        self.outer + self.open.len() + usize::from(!matches!(self.frame, Frame::Root))
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

/// What a container begins with.
#[derive(Clone, Copy)]
enum Header {
    Array(u32),
    Map(u32),
}

impl Header {
    /// How many values follow.
    fn values(self) -> u64 {
        match self {
            Self::Array(length) => length.into(),
            Self::Map(length) => u64::from(length) * 2,
        }
    }
}

/// Why there was no value. Kept beside, so that what is built is returned as no more than an address.
enum Stop {
    None,
    /// A container that has values, which follow.
    Open(Header),
    /// Something is wrong with the message, or the rest has not arrived yet.
    Failed(Error),
    Raised(PyErr),
    /// A key that is refused, once its value is there.
    Refused(Py<PyAny>),
}

impl<'a, 'py> Builder<'a, 'py> {
    /// A builder that remembers keys in `cache`.
    pub(super) fn new(py: Python<'py>, options: &'a UnpackOptions, cache: Option<&'a mut KeyCache>) -> Self {
        Self {
            py,
            options,
            cache,
            keys: Vec::new(),
            texts: Vec::new().into_iter(),
            stop: Stop::None,
            pace: Pace::of(options.release),
        }
    }

    /// Takes the strings of the tape that is built next from `texts`.
    pub(super) fn with(mut self, texts: std::vec::IntoIter<Bound<'py, PyAny>>) -> Self {
        self.texts = texts;
        self
    }

    /// Builds the next value of `source`, all of which is there.
    #[inline]
    pub(super) fn build<'s>(&mut self, source: &mut impl Source<'s>) -> PyResult<Bound<'py, PyAny>> {
        self.keys.clear(); // numbers count within one source
        match self.value(source).or_else(|| self.nested(source, 0)) {
            Some(object) => Ok(object),
            None => Err(self.exception(source.offset())),
        }
    }

    /// Builds the object of a whole message in one pass. Also returns where the message ends.
    #[inline(always)]
    pub(super) fn message(mut self, bytes: &[u8]) -> PyResult<(Bound<'py, PyAny>, usize)> {
        let mut source = Direct::<false>::at(bytes, 0, self.options.limits(bytes.len()));
        let object = self.build(&mut source)?;
        Ok((object, source.pos()))
    }

    #[cold]
    fn exception(&mut self, offset: usize) -> PyErr {
        match std::mem::replace(&mut self.stop, Stop::None) {
            Stop::Raised(exception) => exception,
            Stop::Failed(error) => exception(self.py, error),
            Stop::Open(_) | Stop::Refused(_) | Stop::None => self.error(ErrorKind::Truncated, offset), // never: there is a reason
        }
    }

    /// Builds the container that was no `value`. `depth` is the number of those around it.
    #[inline]
    fn nested<'s>(&mut self, source: &mut impl Source<'s>, depth: usize) -> Option<Bound<'py, PyAny>> {
        let at_once = |header: Header| depth < RECURSION && header.values() <= source.room() as u64;
        match self.stop {
            Stop::Open(header @ Header::Array(length)) if at_once(header) => {
                self.stop = Stop::None;
                self.list(source, length, depth)
            }
            Stop::Open(header @ Header::Map(length)) if at_once(header) && !self.wants_pairs() => {
                self.stop = Stop::None;
                self.dict(source, length, depth)
            }
            Stop::Open(_) => {
                let object = self.resume(source, &mut Work { outer: depth, ..Work::default() });
                let object = object.transpose()?;
                self.keep(object)
            }
            _ => None,
        }
    }

    fn wants_pairs(&self) -> bool {
        matches!(self.options.map_hook, MapHook::Pairs(_))
    }

    #[inline(never)]
    fn list<'s>(
        &mut self,
        source: &mut impl Source<'s>,
        length: u32,
        depth: usize,
    ) -> Option<Bound<'py, PyAny>> {
        let begun = self.begin(length);
        let room = source.share(depth);
        let items = begun.and_then(|()| Sequence::new(self.py, length as usize, room, self.options.use_list));
        let mut items = self.kept(items)?;
        loop {
            let item = self.value(source).or_else(|| self.nested(source, depth + 1))?;
            let pushed = self.keep_pace().and_then(|()| items.push(item));
            if self.kept(pushed)? {
                let list = self.finish(Frame::Items(items));
                return self.keep(list);
            }
        }
    }

    #[inline(never)]
    fn dict<'s>(
        &mut self,
        source: &mut impl Source<'s>,
        length: u32,
        depth: usize,
    ) -> Option<Bound<'py, PyAny>> {
        let begun = self.begin(length);
        let room = (length as usize).min(source.share(depth) / 2);
        let dict = begun.and_then(|()| ffi::dict(self.py, room));
        let dict = self.kept(dict)?;
        for _ in 0..length {
            let key = match self.key(source) {
                Some(key) => key,
                None => self.nested_key(source, depth + 1)?,
            };
            let value = self.value(source).or_else(|| self.nested(source, depth + 1))?;
            let set = self.keep_pace().and_then(|()| ffi::set_item(&dict, &key, &value));
            self.kept(set)?;
        }
        let dict = self.mapped(dict.into_any());
        self.keep(dict)
    }

    #[cold]
    fn nested_key<'s>(&mut self, source: &mut impl Source<'s>, depth: usize) -> Option<Bound<'py, PyAny>> {
        let key = match self.refused() {
            Some(key) => key,
            None => self.nested(source, depth)?,
        };
        if self.accepts(&key) {
            return Some(key);
        }
        self.value(source).or_else(|| self.nested(source, depth))?;
        self.keep(Err(refused_key(&key)))
    }

    /// The key that the build stopped at as such keys are refused. As in msgpack, it is told of only after its value.
    fn refused(&mut self) -> Option<Bound<'py, PyAny>> {
        match std::mem::replace(&mut self.stop, Stop::None) {
            Stop::Refused(key) => Some(key.into_bound(self.py)),
            other => {
                self.stop = other;
                None
            }
        }
    }

    /// Goes on with the value begun in `work`. `None` when the rest of it has not arrived yet.
    pub(super) fn resume<'s, S: Source<'s>>(
        &mut self,
        source: &mut S,
        work: &mut Work,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        loop {
            let complete = match &mut work.frame {
                Frame::Root if matches!(self.stop, Stop::Open(_)) => false,
                Frame::Root => match self.value(source) {
                    Some(value) => return Ok(Some(value)),
                    None => false,
                },
                Frame::Items(items) => self.items(source, items)?,
                Frame::Entries { dict, left, key } => self.entries(source, dict, left, key)?,
                Frame::Pairs { pairs, key } => self.pairs(source, pairs, key)?,
            };
            if complete {
                if let Some(done) = self.close(work)? {
                    return Ok(Some(done));
                }
                continue;
            }
            match std::mem::replace(&mut self.stop, Stop::None) {
                Stop::Open(header) => {
                    let frame = self.open(source, header, work)?;
                    work.push(frame);
                }
                Stop::Failed(Error { kind: ErrorKind::Truncated, .. }) if S::STREAM => return Ok(None),
                Stop::Failed(error) => return Err(exception(self.py, error)),
                Stop::Raised(exception) => return Err(exception),
                Stop::Refused(key) => work.frame.wait_for_value(key),
                Stop::None => return Ok(None), // never: there is a reason
            }
        }
    }

    /// Fills a list up to the first container in it; whether it is complete.
    #[inline]
    fn items<'s>(&mut self, source: &mut impl Source<'s>, items: &mut Sequence) -> PyResult<bool> {
        while let Some(value) = self.value(source) {
            self.keep_pace()?;
            if items.push(value)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Fills a dict up to the first container in it; whether it is complete.
    #[inline]
    fn entries<'s>(
        &mut self,
        source: &mut impl Source<'s>,
        dict: &Py<PyDict>,
        left: &mut u32,
        waiting: &mut Option<Py<PyAny>>,
    ) -> PyResult<bool> {
        if let Some(key) = waiting.take() {
            let Some(value) = self.value(source) else {
                *waiting = Some(key);
                return Ok(false);
            };
            self.keep_pace()?;
            self.check_key(key.bind(self.py))?;
            if self.add(dict, left, key.bind(self.py), &value)? {
                return Ok(true);
            }
        }
        while let Some(key) = self.key(source) {
            let Some(value) = self.value(source) else {
                *waiting = Some(key.unbind());
                return Ok(false);
            };
            self.keep_pace()?;
            if self.add(dict, left, &key, &value)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Adds an entry; whether it is the last one.
    #[inline]
    fn add(
        &self,
        dict: &Py<PyDict>,
        left: &mut u32,
        key: &Bound<'py, PyAny>,
        value: &Bound<'py, PyAny>,
    ) -> PyResult<bool> {
        ffi::set_item(dict.bind(self.py), key, value)?;
        *left -= 1;
        Ok(*left == 0)
    }

    /// Fills a list of pairs up to the first container in one of them; whether it is complete.
    #[cold]
    fn pairs<'s>(
        &mut self,
        source: &mut impl Source<'s>,
        pairs: &mut Sequence,
        waiting: &mut Option<Py<PyAny>>,
    ) -> PyResult<bool> {
        while let Some(value) = if waiting.is_some() { self.value(source) } else { self.key(source) } {
            self.keep_pace()?;
            match waiting.take() {
                None => *waiting = Some(value.unbind()),
                Some(key) => {
                    self.check_key(key.bind(self.py))?;
                    if pairs.push(self.pair(key, value)?)? {
                        return Ok(true);
                    }
                }
            }
        }
        Ok(false)
    }

    fn pair(&self, key: Py<PyAny>, value: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        tuple(self.py, [key.into_bound(self.py), value])
    }

    /// The next value. `None`, and `stop` says why: it is a container that has values of its own, or there is none.
    #[inline(never)]
    fn value<'s>(&mut self, source: &mut impl Source<'s>) -> Option<Bound<'py, PyAny>> {
        source.visit(&mut Value(self))
    }

    /// As `value`, for the key of a map.
    #[inline(never)]
    fn key<'s>(&mut self, source: &mut impl Source<'s>) -> Option<Bound<'py, PyAny>> {
        source.visit(&mut Key(self))
    }

    /// What was built; the exception is kept.
    #[inline(always)]
    fn keep(&mut self, result: PyResult<Bound<'py, PyAny>>) -> Option<Bound<'py, PyAny>> {
        self.kept(result)
    }

    #[inline(always)]
    fn kept<T>(&mut self, result: PyResult<T>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(exception) => {
                self.stop = Stop::Raised(exception);
                None
            }
        }
    }

    /// A container that is to be opened; an empty one is complete at once.
    #[inline]
    fn container(&mut self, header: Header) -> Option<Bound<'py, PyAny>> {
        if header.values() > 0 {
            self.stop = Stop::Open(header);
            return None;
        }
        self.empty(header)
    }

    #[inline(never)]
    fn empty(&mut self, header: Header) -> Option<Bound<'py, PyAny>> {
        let object = self.frame(header, 0).and_then(|frame| self.finish(frame));
        self.keep(object)
    }

    #[inline]
    fn open<'s, S: Source<'s>>(&self, source: &S, header: Header, work: &Work) -> PyResult<Frame> {
        if work.depth() >= MAX_DEPTH {
            return Err(self.error(ErrorKind::TooDeep(MAX_DEPTH), source.offset()));
        }
        self.frame(header, source.share(work.depth()))
    }

    /// Puts a complete container where it belongs; returns the outermost one.
    #[inline]
    fn close(&mut self, work: &mut Work) -> PyResult<Option<Bound<'py, PyAny>>> {
        loop {
            self.keep_pace()?;
            let done = work.pop();
            let value = self.finish(done)?;
            let complete = match &mut work.frame {
                Frame::Root => return Ok(Some(value)),
                Frame::Items(items) => items.push(value)?,
                Frame::Entries { dict, left, key } => match key.take() {
                    None => {
                        *key = Some(value.unbind());
                        false
                    }
                    Some(key) => {
                        self.check_key(key.bind(self.py))?;
                        self.add(dict, left, key.bind(self.py), &value)?
                    }
                },
                Frame::Pairs { pairs, key } => match key.take() {
                    None => {
                        *key = Some(value.unbind());
                        false
                    }
                    Some(key) => {
                        self.check_key(key.bind(self.py))?;
                        pairs.push(self.pair(key, value)?)?
                    }
                },
            };
            if !complete {
                return Ok(None);
            }
        }
    }

    #[cold]
    fn error(&self, kind: ErrorKind, offset: usize) -> PyErr {
        exception(self.py, Error { kind, offset })
    }

    /// An empty container for what follows the header.
    #[inline]
    fn frame(&self, header: Header, room: usize) -> PyResult<Frame> {
        match header {
            Header::Array(length) => {
                let items = Sequence::new(self.py, length as usize, room, self.options.use_list)?;
                Ok(Frame::Items(items))
            }
            Header::Map(length) if matches!(self.options.map_hook, MapHook::Pairs(_)) => {
                let pairs = Sequence::new(self.py, length as usize, room / 2, true)?;
                Ok(Frame::Pairs { pairs, key: None })
            }
            Header::Map(length) => {
                let dict = ffi::dict(self.py, (length as usize).min(room / 2))?;
                Ok(Frame::Entries { dict: dict.unbind(), left: length, key: None })
            }
        }
    }

    /// The object of a container that is complete.
    #[inline]
    fn finish(&self, frame: Frame) -> PyResult<Bound<'py, PyAny>> {
        let (object, hook) = match frame {
            Frame::Items(items) => (items.finish(self.py)?, self.options.list_hook.as_ref()),
            Frame::Entries { dict, .. } => return self.mapped(dict.into_bound(self.py).into_any()),
            Frame::Pairs { pairs, .. } => return self.mapped(pairs.finish(self.py)?),
            Frame::Root => (self.py.None().into_bound(self.py), None), // never: there is nothing to complete
        };
        self.hooked(hook, object)
    }

    /// What becomes of a dict, or list of pairs, that is complete.
    #[inline]
    fn mapped(&self, entries: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.hooked(self.options.map_hook.callable(), entries)
    }

    #[inline]
    fn hooked(&self, hook: Option<&Py<PyAny>>, object: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        match hook {
            None => Ok(object),
            Some(hook) => hook.bind(self.py).call1((object,)),
        }
    }

    fn check_key(&self, key: &Bound<'py, PyAny>) -> PyResult<()> {
        if self.accepts(key) { Ok(()) } else { Err(refused_key(key)) }
    }

    fn accepts(&self, key: &Bound<'py, PyAny>) -> bool {
        !self.options.strict_map_key
            || key.is_exact_instance_of::<PyString>()
            || key.is_exact_instance_of::<PyBytes>()
    }

    /// The key, unless keys like this one are refused.
    fn checked(&mut self, key: Option<Bound<'py, PyAny>>) -> Option<Bound<'py, PyAny>> {
        let key = key?;
        if self.accepts(&key) {
            return Some(key);
        }
        self.stop = Stop::Refused(key.unbind());
        None
    }

    /// The key of a map, when it is a string.
    #[inline(always)]
    fn key_of(&mut self, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        if let Some(cache) = &self.cache
            && let Some(key) = ShortKey::of(bytes)
            && !self.options.raw
        {
            return match cache.get(self.py, &key) {
                Some(text) => Ok(text),
                None => self.new_key(bytes, key),
            };
        }
        self.str(bytes)
    }

    #[cold]
    fn new_key(&mut self, bytes: &[u8], key: ShortKey) -> PyResult<Bound<'py, PyAny>> {
        match &mut self.cache {
            Some(cache) if bytes.is_ascii() => cache.add(self.py, bytes, key),
            _ => self.str(bytes),
        }
    }

    #[inline(always)]
    fn str(&mut self, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        if bytes.len() >= LONG {
            return self.long(bytes, !self.options.raw);
        }
        if self.options.raw {
            return ffi::bytes(self.py, bytes);
        }
        if msgpack::is_ascii(bytes) { ffi::ascii(self.py, bytes) } else { self.decode(bytes) }
    }

    /// A str, or a bytes, that takes as long as many short ones.
    #[cold]
    fn long(&mut self, bytes: &[u8], is_text: bool) -> PyResult<Bound<'py, PyAny>> {
        self.pace.weigh(bytes.len());
        let (py, release) = (self.py, self.options.release);
        if !is_text {
            return long::bytes(py, bytes, release);
        }
        match long::text(py, bytes, release)? {
            Some(text) => Ok(text),
            None => self.decode(bytes),
        }
    }

    #[inline(always)]
    fn bin(&mut self, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        if bytes.len() >= LONG { self.long(bytes, false) } else { ffi::bytes(self.py, bytes) }
    }

    #[inline]
    fn text(&mut self, bytes: &[u8], text: Text) -> PyResult<Bound<'py, PyAny>> {
        if self.options.raw {
            return self.bin(bytes);
        }
        if text != Text::Invalid
            && let Some(ready) = self.texts.next()
        {
            return Ok(ready);
        }
        if bytes.len() >= LONG {
            return self.long(bytes, true);
        }
        if text == Text::Ascii { ffi::ascii(self.py, bytes) } else { self.decode(bytes) }
    }

    #[cold]
    fn decode(&self, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        ffi::utf8(self.py, bytes, self.options.unicode_errors.as_deref())
    }

    #[inline(always)]
    fn numbered_key<'s>(
        &mut self,
        number: u32,
        bytes: impl FnOnce() -> &'s [u8],
    ) -> PyResult<Bound<'py, PyAny>> {
        let place = number as usize;
        match self.keys.get(place) {
            Some(Some(key)) => Ok(key.clone()),
            _ => self.add_key(place, bytes()),
        }
    }

    #[cold]
    fn add_key(&mut self, place: usize, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        let mut key = self.str(bytes)?;
        if !self.options.raw {
            intern(&mut key);
        }
        if self.keys.len() <= place {
            self.keys.resize(place + 1, None);
        }
        self.keys[place] = Some(key.clone());
        Ok(key)
    }

    #[cold]
    fn extension(&mut self, kind: i8, payload: &[u8], offset: usize) -> PyResult<Bound<'py, PyAny>> {
        if kind == Timestamp::TYPE {
            let timestamp =
                Timestamp::from_payload(payload, offset).map_err(|error| exception(self.py, error))?;
            return self.timestamp(timestamp);
        }
        let arguments = (ffi::int(self.py, i64::from(kind))?, self.bin(payload)?);
        match &self.options.ext_hook {
            Some(hook) => hook.bind(self.py).call1(arguments),
            None => classes::ext_type(self.py)?.call1(arguments),
        }
    }

    fn timestamp(&self, timestamp: Timestamp) -> PyResult<Bound<'py, PyAny>> {
        let Timestamp { seconds, nanoseconds } = timestamp;
        let py = self.py;
        let whole = || classes::timestamp(py)?.call1((ffi::int(py, seconds)?, Int(nanoseconds as usize)));
        if nanoseconds >= 1_000_000_000 {
            return whole(); // which refuses it
        }
        match self.options.timestamp {
            TimestampAs::Timestamp => whole(),
            TimestampAs::Float => ffi::float(py, f64::from(nanoseconds) / 1e9 + seconds as f64),
            TimestampAs::Nanoseconds => {
                let seconds = ffi::int(py, seconds)?.mul(ffi::int(py, 1_000_000_000)?)?;
                seconds.add(Int(nanoseconds as usize))
            }
            TimestampAs::Datetime => {
                let days = i32::try_from(seconds / 86400).map_err(|_| {
                    pyo3::exceptions::PyOverflowError::with_message(format!(
                        "{seconds} seconds are too many for a datetime"
                    ))
                })?;
                let micros = (nanoseconds / 1000).cast_signed();
                let delta = PyDelta::new(py, days, (seconds % 86400) as i32, micros, true)?;
                classes::epoch(py)?.add(delta)
            }
        }
    }

    /// To be called before a container of so many values is made, which takes time if they are many.
    #[inline(always)]
    fn begin(&mut self, values: u32) -> PyResult<()> {
        if values < MANY { Ok(()) } else { self.pace.look(self.py) }
    }

    #[inline(always)]
    fn keep_pace(&mut self) -> PyResult<()> {
        self.pace.keep(self.py)
    }
}

/// Builds values.
struct Value<'b, 'a, 'py>(&'b mut Builder<'a, 'py>);

impl<'py> Visitor<'_> for Value<'_, '_, 'py> {
    type Out = Option<Bound<'py, PyAny>>;

    #[inline(always)]
    fn nil(&mut self) -> Self::Out {
        Some(self.0.py.None().into_bound(self.0.py))
    }

    #[inline(always)]
    fn bool(&mut self, value: bool) -> Self::Out {
        Some(PyBool::new(self.0.py, value).to_owned().into_any())
    }

    #[inline(always)]
    fn uint(&mut self, value: u64) -> Self::Out {
        self.0.keep(ffi::uint(self.0.py, value))
    }

    #[inline(always)]
    fn int(&mut self, value: i64) -> Self::Out {
        self.0.keep(ffi::int(self.0.py, value))
    }

    #[inline(always)]
    fn f32(&mut self, value: f32) -> Self::Out {
        self.f64(value.into())
    }

    #[inline(always)]
    fn f64(&mut self, value: f64) -> Self::Out {
        self.0.keep(ffi::float(self.0.py, value))
    }

    #[inline(always)]
    fn str(&mut self, bytes: &[u8]) -> Self::Out {
        let text = self.0.str(bytes);
        self.0.keep(text)
    }

    #[inline(always)]
    fn bin(&mut self, bytes: &[u8]) -> Self::Out {
        let bytes = self.0.bin(bytes);
        self.0.keep(bytes)
    }

    #[inline(always)]
    fn ext(&mut self, kind: i8, payload: &[u8], offset: usize) -> Self::Out {
        let extension = self.0.extension(kind, payload, offset);
        self.0.keep(extension)
    }

    #[inline(always)]
    fn array(&mut self, items: u32) -> Self::Out {
        self.0.container(Header::Array(items))
    }

    #[inline(always)]
    fn map(&mut self, entries: u32) -> Self::Out {
        self.0.container(Header::Map(entries))
    }

    #[cold]
    fn error(&mut self, error: Error) -> Self::Out {
        self.0.stop = Stop::Failed(error);
        None
    }
}

impl<'s> msgpack::Builder<'s> for Value<'_, '_, '_> {
    #[inline(always)]
    fn text(&mut self, bytes: &'s [u8], text: Text) -> Self::Out {
        let text = self.0.text(bytes, text);
        self.0.keep(text)
    }

    #[inline(always)]
    fn key(&mut self, number: u32, bytes: impl FnOnce() -> &'s [u8]) -> Self::Out {
        let key = self.0.numbered_key(number, bytes);
        self.0.keep(key)
    }
}

/// Builds the keys of maps.
struct Key<'b, 'a, 'py>(&'b mut Builder<'a, 'py>);

impl<'py> Visitor<'_> for Key<'_, '_, 'py> {
    type Out = Option<Bound<'py, PyAny>>;

    #[cold]
    fn nil(&mut self) -> Self::Out {
        let key = Value(self.0).nil();
        self.0.checked(key)
    }

    #[cold]
    fn bool(&mut self, value: bool) -> Self::Out {
        let key = Value(self.0).bool(value);
        self.0.checked(key)
    }

    #[cold]
    fn uint(&mut self, value: u64) -> Self::Out {
        let key = Value(self.0).uint(value);
        self.0.checked(key)
    }

    #[cold]
    fn int(&mut self, value: i64) -> Self::Out {
        let key = Value(self.0).int(value);
        self.0.checked(key)
    }

    #[cold]
    fn f32(&mut self, value: f32) -> Self::Out {
        let key = Value(self.0).f32(value);
        self.0.checked(key)
    }

    #[cold]
    fn f64(&mut self, value: f64) -> Self::Out {
        let key = Value(self.0).f64(value);
        self.0.checked(key)
    }

    #[inline(always)]
    fn str(&mut self, bytes: &[u8]) -> Self::Out {
        let key = self.0.key_of(bytes);
        self.0.keep(key)
    }

    #[cold]
    fn bin(&mut self, bytes: &[u8]) -> Self::Out {
        let key = Value(self.0).bin(bytes);
        self.0.checked(key)
    }

    #[cold]
    fn ext(&mut self, kind: i8, payload: &[u8], offset: usize) -> Self::Out {
        let key = Value(self.0).ext(kind, payload, offset);
        self.0.checked(key)
    }

    #[cold]
    fn array(&mut self, items: u32) -> Self::Out {
        let key = Value(self.0).array(items);
        self.0.checked(key)
    }

    #[cold]
    fn map(&mut self, entries: u32) -> Self::Out {
        let key = Value(self.0).map(entries);
        self.0.checked(key)
    }

    #[cold]
    fn error(&mut self, error: Error) -> Self::Out {
        Value(self.0).error(error)
    }
}

impl<'s> msgpack::Builder<'s> for Key<'_, '_, '_> {
    #[inline(always)]
    fn text(&mut self, bytes: &'s [u8], text: Text) -> Self::Out {
        Value(self.0).text(bytes, text)
    }

    #[inline(always)]
    fn key(&mut self, number: u32, bytes: impl FnOnce() -> &'s [u8]) -> Self::Out {
        Value(self.0).key(number, bytes)
    }
}

#[cold]
fn refused_key(key: &Bound<'_, PyAny>) -> PyErr {
    let shown = key.repr().map_or_else(|_| String::from("?"), |shown| shown.to_string());
    let kind = super::types::name_of(key);
    PyValueError::with_message(format!("{kind} is not allowed for map key when strict_map_key=True: {shown}"))
}
