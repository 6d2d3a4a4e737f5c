//! Strings, keys of maps, and extensions.

use offlock_core::msgpack::{self, ShortKey, Text, Timestamp};
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::types::PyDelta;

use super::builder::Builder;
use crate::cpython::{object, str_header};
use crate::error::WithMessage;
use crate::msgpack::error::exception;
use crate::msgpack::key_cache::intern;
use crate::msgpack::options::TimestampAs;
use crate::msgpack::{classes, long_strings};
use crate::objects::Int;

/// Longer strings and the like take the time of several values.
const LONG: usize = 8 << 10;

impl<'py> Builder<'_, 'py> {
    /// The key of a map, when it is a string.
    #[inline(always)]
    pub(super) fn key_of(&mut self, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
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
    pub(super) fn new_key(&mut self, bytes: &[u8], key: ShortKey) -> PyResult<Bound<'py, PyAny>> {
        match &mut self.cache {
            Some(cache) if bytes.is_ascii() => cache.add(self.py, bytes, key),
            _ => self.str(bytes),
        }
    }

    #[inline(always)]
    pub(super) fn str(&mut self, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        if bytes.len() >= LONG {
            return self.long(bytes, !self.options.raw);
        }
        if self.options.raw {
            return object::bytes(self.py, bytes).map(Bound::into_any);
        }
        if msgpack::is_ascii(bytes) { str_header::ascii(self.py, bytes) } else { self.decode(bytes) }
    }

    /// A str, or a bytes, that takes as long as many short ones.
    #[cold]
    pub(super) fn long(&mut self, bytes: &[u8], is_text: bool) -> PyResult<Bound<'py, PyAny>> {
        self.yielder.charge(bytes.len());
        let (py, release) = (self.py, self.options.release);
        if !is_text {
            return long_strings::bytes(py, bytes, release).map(Bound::into_any);
        }
        match long_strings::text(py, bytes, release)? {
            Some(text) => Ok(text),
            None => self.decode(bytes),
        }
    }

    #[inline(always)]
    pub(super) fn bin(&mut self, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        if bytes.len() >= LONG {
            self.long(bytes, false)
        } else {
            object::bytes(self.py, bytes).map(Bound::into_any)
        }
    }

    #[inline]
    pub(super) fn text(&mut self, bytes: &[u8], text: Text) -> PyResult<Bound<'py, PyAny>> {
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
        if text == Text::Ascii { str_header::ascii(self.py, bytes) } else { self.decode(bytes) }
    }

    #[cold]
    pub(super) fn decode(&self, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        object::utf8(self.py, bytes, self.options.unicode_errors.as_deref())
    }

    #[inline(always)]
    pub(super) fn numbered_key<'s>(
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
    pub(super) fn add_key(&mut self, place: usize, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
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
    pub(super) fn extension(
        &mut self,
        kind: i8,
        payload: &[u8],
        offset: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        if kind == Timestamp::TYPE {
            let timestamp =
                Timestamp::from_payload(payload, offset).map_err(|error| exception(self.py, error))?;
            return self.timestamp(timestamp);
        }
        let arguments = (object::int(self.py, i64::from(kind))?, self.bin(payload)?);
        match &self.options.ext_hook {
            Some(hook) => hook.bind(self.py).call1(arguments),
            None => classes::ext_type(self.py)?.call1(arguments),
        }
    }

    pub(super) fn timestamp(&self, timestamp: Timestamp) -> PyResult<Bound<'py, PyAny>> {
        let Timestamp { seconds, nanoseconds } = timestamp;
        let py = self.py;
        let whole = || classes::timestamp(py)?.call1((object::int(py, seconds)?, Int(nanoseconds as usize)));
        if nanoseconds >= 1_000_000_000 {
            return whole(); // refuses it
        }
        match self.options.timestamp {
            TimestampAs::Timestamp => whole(),
            TimestampAs::Float => object::float(py, f64::from(nanoseconds) / 1e9 + seconds as f64),
            TimestampAs::Nanoseconds => {
                let seconds = object::int(py, seconds)?.mul(object::int(py, 1_000_000_000)?)?;
                seconds.add(Int(nanoseconds as usize))
            }
            TimestampAs::Datetime => {
                let days = i32::try_from(seconds / 86400).map_err(|_| {
                    PyOverflowError::with_message(format!("{seconds} seconds are too many for a datetime"))
                })?;
                let micros = (nanoseconds / 1000).cast_signed();
                let delta = PyDelta::new(py, days, (seconds % 86400) as i32, micros, true)?;
                classes::epoch(py)?.add(delta)
            }
        }
    }
}
