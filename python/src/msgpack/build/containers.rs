//! Lists and dicts.

use offlock_core::msgpack::{Error, ErrorKind, Source};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};

use super::builder::{Builder, Stop};
use super::work::{ContainerHeader, PendingContainer, Work};
use crate::cpython::object;
use crate::cpython::partial_sequence::PartialSequence;
use crate::error::WithMessage;
use crate::msgpack::error::exception;
use crate::msgpack::options::{MAX_DEPTH, MapHook};
use crate::objects::{tuple, type_name};

/// A container of this many values takes a fraction of a millisecond to make.
const MANY: u32 = 1 << 16;

impl<'py> Builder<'_, 'py> {
    #[inline(never)]
    pub(super) fn list<'s>(
        &mut self,
        source: &mut impl Source<'s>,
        length: u32,
        depth: usize,
    ) -> Option<Bound<'py, PyAny>> {
        let begun = self.begin(length);
        let room = source.share(depth);
        let items =
            begun.and_then(|()| PartialSequence::new(self.py, length as usize, room, self.options.use_list));
        let mut items = self.kept(items)?;
        loop {
            let item = self.value(source).or_else(|| self.nested(source, depth + 1))?;
            let pushed = self.keep_pace().and_then(|()| items.push(item));
            if self.kept(pushed)? {
                let list = self.finish(PendingContainer::Items(items));
                return self.keep(list);
            }
        }
    }

    #[inline(never)]
    pub(super) fn dict<'s>(
        &mut self,
        source: &mut impl Source<'s>,
        length: u32,
        depth: usize,
    ) -> Option<Bound<'py, PyAny>> {
        let begun = self.begin(length);
        let room = (length as usize).min(source.share(depth) / 2);
        let dict = begun.and_then(|()| object::dict(self.py, room));
        let dict = self.kept(dict)?;
        for _ in 0..length {
            let key = match self.key(source) {
                Some(key) => key,
                None => self.nested_key(source, depth + 1)?,
            };
            let value = self.value(source).or_else(|| self.nested(source, depth + 1))?;
            let set = self.keep_pace().and_then(|()| object::set_item(&dict, &key, &value));
            self.kept(set)?;
        }
        let dict = self.mapped(dict.into_any());
        self.keep(dict)
    }

    #[cold]
    pub(super) fn nested_key<'s>(
        &mut self,
        source: &mut impl Source<'s>,
        depth: usize,
    ) -> Option<Bound<'py, PyAny>> {
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

    /// The refused key that stopped the build. As in msgpack, it is reported only after its value.
    pub(super) fn refused(&mut self) -> Option<Bound<'py, PyAny>> {
        match std::mem::replace(&mut self.stop, Stop::None) {
            Stop::Refused(key) => Some(key.into_bound(self.py)),
            other => {
                self.stop = other;
                None
            }
        }
    }

    /// Continues the value begun in `work`. `None` when the rest of it has not arrived yet.
    pub(in crate::msgpack) fn resume<'s, S: Source<'s>>(
        &mut self,
        source: &mut S,
        work: &mut Work,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        loop {
            let complete = match &mut work.frame {
                PendingContainer::Root if matches!(self.stop, Stop::Open(_)) => false,
                PendingContainer::Root => match self.value(source) {
                    Some(value) => return Ok(Some(value)),
                    None => false,
                },
                PendingContainer::Items(items) => self.items(source, items)?,
                PendingContainer::Entries { dict, left, key } => self.entries(source, dict, left, key)?,
                PendingContainer::Pairs { pairs, key } => self.pairs(source, pairs, key)?,
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
                Stop::None => return Ok(None), // unreachable: a reason was set
            }
        }
    }

    /// Fills a list up to its first container. Returns whether it is complete.
    #[inline]
    pub(super) fn items<'s>(
        &mut self,
        source: &mut impl Source<'s>,
        items: &mut PartialSequence,
    ) -> PyResult<bool> {
        while let Some(value) = self.value(source) {
            self.keep_pace()?;
            if items.push(value)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Fills a dict up to its first container. Returns whether it is complete.
    #[inline]
    pub(super) fn entries<'s>(
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

    /// Adds an entry. Returns whether it is the last one.
    #[inline]
    pub(super) fn add(
        &self,
        dict: &Py<PyDict>,
        left: &mut u32,
        key: &Bound<'py, PyAny>,
        value: &Bound<'py, PyAny>,
    ) -> PyResult<bool> {
        object::set_item(dict.bind(self.py), key, value)?;
        *left -= 1;
        Ok(*left == 0)
    }

    /// Fills a list of pairs up to the first container in one of them. Returns whether it is complete.
    #[cold]
    pub(super) fn pairs<'s>(
        &mut self,
        source: &mut impl Source<'s>,
        pairs: &mut PartialSequence,
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

    pub(super) fn pair(&self, key: Py<PyAny>, value: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        tuple(self.py, [key.into_bound(self.py), value])
    }

    /// Sets `stop` to open a container; returns an empty one at once.
    #[inline]
    pub(super) fn container(&mut self, header: ContainerHeader) -> Option<Bound<'py, PyAny>> {
        if header.values() > 0 {
            self.stop = Stop::Open(header);
            return None;
        }
        self.empty(header)
    }

    #[inline(never)]
    pub(super) fn empty(&mut self, header: ContainerHeader) -> Option<Bound<'py, PyAny>> {
        let object = self.frame(header, 0).and_then(|frame| self.finish(frame));
        self.keep(object)
    }

    #[inline]
    pub(super) fn open<'s, S: Source<'s>>(
        &self,
        source: &S,
        header: ContainerHeader,
        work: &Work,
    ) -> PyResult<PendingContainer> {
        if work.depth() >= MAX_DEPTH {
            return Err(self.error(ErrorKind::TooDeep(MAX_DEPTH), source.offset()));
        }
        self.frame(header, source.share(work.depth()))
    }

    /// Stores a complete container in the one around it; returns the outermost one.
    #[inline]
    pub(super) fn close(&mut self, work: &mut Work) -> PyResult<Option<Bound<'py, PyAny>>> {
        loop {
            self.keep_pace()?;
            let done = work.pop();
            let value = self.finish(done)?;
            let complete = match &mut work.frame {
                PendingContainer::Root => return Ok(Some(value)),
                PendingContainer::Items(items) => items.push(value)?,
                PendingContainer::Entries { dict, left, key } => match key.take() {
                    None => {
                        *key = Some(value.unbind());
                        false
                    }
                    Some(key) => {
                        self.check_key(key.bind(self.py))?;
                        self.add(dict, left, key.bind(self.py), &value)?
                    }
                },
                PendingContainer::Pairs { pairs, key } => match key.take() {
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

    /// An empty container for the values that follow the header.
    #[inline]
    pub(super) fn frame(&self, header: ContainerHeader, room: usize) -> PyResult<PendingContainer> {
        match header {
            ContainerHeader::Array(length) => {
                let items = PartialSequence::new(self.py, length as usize, room, self.options.use_list)?;
                Ok(PendingContainer::Items(items))
            }
            ContainerHeader::Map(length) if matches!(self.options.map_hook, MapHook::Pairs(_)) => {
                let pairs = PartialSequence::new(self.py, length as usize, room / 2, true)?;
                Ok(PendingContainer::Pairs { pairs, key: None })
            }
            ContainerHeader::Map(length) => {
                let dict = object::dict(self.py, (length as usize).min(room / 2))?;
                Ok(PendingContainer::Entries { dict: dict.unbind(), left: length, key: None })
            }
        }
    }

    /// The object of a container that is complete.
    #[inline]
    pub(super) fn finish(&self, frame: PendingContainer) -> PyResult<Bound<'py, PyAny>> {
        let (object, hook) = match frame {
            PendingContainer::Items(items) => (items.finish(self.py)?, self.options.list_hook.as_ref()),
            PendingContainer::Entries { dict, .. } => {
                return self.mapped(dict.into_bound(self.py).into_any());
            }
            PendingContainer::Pairs { pairs, .. } => return self.mapped(pairs.finish(self.py)?),
            PendingContainer::Root => (self.py.None().into_bound(self.py), None), // unreachable: there is nothing to complete
        };
        self.hooked(hook, object)
    }

    /// Passes a complete dict, or list of pairs, to the hook, if there is one.
    #[inline]
    pub(super) fn mapped(&self, entries: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.hooked(self.options.map_hook.callable(), entries)
    }

    #[inline]
    pub(super) fn hooked(
        &self,
        hook: Option<&Py<PyAny>>,
        object: Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match hook {
            None => Ok(object),
            Some(hook) => hook.bind(self.py).call1((object,)),
        }
    }

    pub(super) fn check_key(&self, key: &Bound<'py, PyAny>) -> PyResult<()> {
        if self.accepts(key) { Ok(()) } else { Err(refused_key(key)) }
    }

    pub(super) fn accepts(&self, key: &Bound<'py, PyAny>) -> bool {
        !self.options.strict_map_key
            || key.is_exact_instance_of::<PyString>()
            || key.is_exact_instance_of::<PyBytes>()
    }

    /// The key, unless keys like this one are refused.
    pub(super) fn checked(&mut self, key: Option<Bound<'py, PyAny>>) -> Option<Bound<'py, PyAny>> {
        let key = key?;
        if self.accepts(&key) {
            return Some(key);
        }
        self.stop = Stop::Refused(key.unbind());
        None
    }

    /// Called before a container of `values` values is made, which takes time if there are many.
    #[inline(always)]
    pub(super) fn begin(&mut self, values: u32) -> PyResult<()> {
        if values < MANY { Ok(()) } else { self.yielder.check_now(self.py) }
    }

    pub(super) fn wants_pairs(&self) -> bool {
        matches!(self.options.map_hook, MapHook::Pairs(_))
    }
}

#[cold]
fn refused_key(key: &Bound<'_, PyAny>) -> PyErr {
    let shown = key.repr().map_or_else(|_| String::from("?"), |shown| shown.to_string());
    let kind = type_name(key);
    PyValueError::with_message(format!("{kind} is not allowed for map key when strict_map_key=True: {shown}"))
}
