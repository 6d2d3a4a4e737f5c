//! Makes objects of the values and map keys that the core finds in a message.

use offlock_core::msgpack::{self, Error, Source, Text, Visitor};
use pyo3::prelude::*;
use pyo3::types::PyBool;

use super::builder::{Builder, Stop};
use super::work::ContainerHeader;
use crate::cpython::object;

impl<'py> Builder<'_, 'py> {
    /// The next value. With `None`, `stop` has the reason: the value is a container that has values of its
    /// own, or there is none.
    #[inline(never)]
    pub(super) fn value<'s>(&mut self, source: &mut impl Source<'s>) -> Option<Bound<'py, PyAny>> {
        source.visit(&mut Value(self))
    }

    /// As `value`, for the key of a map.
    #[inline(never)]
    pub(super) fn key<'s>(&mut self, source: &mut impl Source<'s>) -> Option<Bound<'py, PyAny>> {
        source.visit(&mut Key(self))
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
        self.0.keep(object::uint(self.0.py, value))
    }

    #[inline(always)]
    fn int(&mut self, value: i64) -> Self::Out {
        self.0.keep(object::int(self.0.py, value))
    }

    #[inline(always)]
    fn f32(&mut self, value: f32) -> Self::Out {
        self.f64(value.into())
    }

    #[inline(always)]
    fn f64(&mut self, value: f64) -> Self::Out {
        self.0.keep(object::float(self.0.py, value))
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
        self.0.container(ContainerHeader::Array(items))
    }

    #[inline(always)]
    fn map(&mut self, entries: u32) -> Self::Out {
        self.0.container(ContainerHeader::Map(entries))
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
