//! The builder of objects, and its state.

use offlock_core::msgpack::{Direct, Error, ErrorKind, Source};
use pyo3::prelude::*;

use super::work::{ContainerHeader, Work};
use crate::gil_yield::Yielder;
use crate::msgpack::error::exception;
use crate::msgpack::key_cache::KeyCache;
use crate::msgpack::options::UnpackOptions;

/// Containers that are nested deeper do not recurse on the machine's stack.
const RECURSION: usize = 64;

/// Builds one object after the other.
pub(in crate::msgpack) struct Builder<'a, 'py> {
    pub(super) py: Python<'py>,
    pub(super) options: &'a UnpackOptions,
    pub(super) cache: Option<&'a mut KeyCache>,
    /// The keys of the tape that were built so far.
    pub(super) keys: Vec<Option<Bound<'py, PyAny>>>,
    /// The strings of the tape that were laid out before, in its order.
    pub(super) texts: std::vec::IntoIter<Bound<'py, PyAny>>,
    /// The reason why there was no value.
    pub(super) stop: Stop,
    pub(super) yielder: Yielder<'static>,
}

/// The reason why there was no value. Kept outside of the result, so that a built object is returned as a
/// single address.
pub(super) enum Stop {
    None,
    /// A container that has values, which follow.
    Open(ContainerHeader),
    /// An error in the message, or the rest has not arrived yet.
    Failed(Error),
    Raised(PyErr),
    /// A key that is refused, once its value was read.
    Refused(Py<PyAny>),
}

impl<'a, 'py> Builder<'a, 'py> {
    /// A builder that remembers keys in `cache`.
    pub(in crate::msgpack) fn new(
        py: Python<'py>,
        options: &'a UnpackOptions,
        cache: Option<&'a mut KeyCache>,
    ) -> Self {
        Self {
            py,
            options,
            cache,
            keys: Vec::new(),
            texts: Vec::new().into_iter(),
            stop: Stop::None,
            yielder: Yielder::of(options.release),
        }
    }

    /// Takes the strings of the tape that is built next from `texts`.
    pub(in crate::msgpack) fn with(mut self, texts: std::vec::IntoIter<Bound<'py, PyAny>>) -> Self {
        self.texts = texts;
        self
    }

    /// Builds the next value of `source`, which holds it completely.
    #[inline]
    pub(in crate::msgpack) fn build<'s>(
        &mut self,
        source: &mut impl Source<'s>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.keys.clear(); // numbers count within one source
        match self.value(source).or_else(|| self.nested(source, 0)) {
            Some(object) => Ok(object),
            None => Err(self.exception(source.offset())),
        }
    }

    /// Builds the object of a whole message in one pass. Also returns where the message ends.
    #[inline(always)]
    pub(in crate::msgpack) fn message(mut self, bytes: &[u8]) -> PyResult<(Bound<'py, PyAny>, usize)> {
        let mut source = Direct::<false>::at(bytes, 0, self.options.limits(bytes.len()));
        let object = self.build(&mut source)?;
        Ok((object, source.pos()))
    }

    #[cold]
    pub(super) fn exception(&mut self, offset: usize) -> PyErr {
        match std::mem::replace(&mut self.stop, Stop::None) {
            Stop::Raised(exception) => exception,
            Stop::Failed(error) => exception(self.py, error),
            Stop::Open(_) | Stop::Refused(_) | Stop::None => self.error(ErrorKind::Truncated, offset), // unreachable: a reason was set
        }
    }

    /// Builds the container for which `value` returned `None`. `depth` is the number of containers around it.
    #[inline]
    pub(super) fn nested<'s>(
        &mut self,
        source: &mut impl Source<'s>,
        depth: usize,
    ) -> Option<Bound<'py, PyAny>> {
        let at_once =
            |header: ContainerHeader| depth < RECURSION && header.values() <= source.most_values() as u64;
        match self.stop {
            Stop::Open(header @ ContainerHeader::Array(length)) if at_once(header) => {
                self.stop = Stop::None;
                self.list(source, length, depth)
            }
            Stop::Open(header @ ContainerHeader::Map(length)) if at_once(header) && !self.wants_pairs() => {
                self.stop = Stop::None;
                self.dict(source, length, depth)
            }
            Stop::Open(_) => {
                let object = self.resume(source, &mut Work::inside(depth));
                let object = object.transpose()?;
                self.keep(object)
            }
            _ => None,
        }
    }

    /// Returns the built object, or keeps the exception in `stop`.
    #[inline(always)]
    pub(super) fn keep(&mut self, result: PyResult<Bound<'py, PyAny>>) -> Option<Bound<'py, PyAny>> {
        self.kept(result)
    }

    #[inline(always)]
    pub(super) fn kept<T>(&mut self, result: PyResult<T>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(exception) => {
                self.stop = Stop::Raised(exception);
                None
            }
        }
    }

    #[cold]
    pub(super) fn error(&self, kind: ErrorKind, offset: usize) -> PyErr {
        exception(self.py, Error { kind, offset })
    }

    #[inline(always)]
    pub(super) fn keep_pace(&mut self) -> PyResult<()> {
        self.yielder.tick(self.py)
    }
}
