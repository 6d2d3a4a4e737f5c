//! `packb` and the class `Packer`.

use std::ffi::c_int;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{RwLock, RwLockReadGuard, TryLockError};

use offlock_core::msgpack::write;
use pyo3::exceptions::{PyBufferError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyMemoryView, PyTuple};

use super::buffer::Buffer;
use super::conversions::bytes_of;
use super::long_strings;
use super::object_lock::{ObjectGuard, ObjectLock};
use super::pack::{PackOptions, pack, pack_ext, pack_pairs};
use super::pack_error::check_length;
use crate::cpython::buffer;
use crate::cpython::bytes_sink::BytesSink;
use crate::error::WithMessage;
use crate::region;

/// Packs an object, and returns the message.
#[inline]
pub(super) fn packb<'py>(
    o: &Bound<'py, PyAny>,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    region::yield_between_calls(o.py(), 0)?;
    match options {
        None => pack_to_bytes(o, &PackOptions::default()),
        Some(options) => pack_to_bytes(o, &PackOptions::from_keywords(options, only_of_packer)?),
    }
}

#[inline]
fn pack_to_bytes<'py>(object: &Bound<'py, PyAny>, options: &PackOptions) -> PyResult<Bound<'py, PyAny>> {
    BytesSink::collect(object.py(), |sink| pack(object, options, sink))
}

/// The options for the buffer of a `Packer`.
fn only_of_packer(name: &str, value: &Bound<'_, PyAny>) -> PyResult<bool> {
    match name {
        "buf_size" => value.extract::<usize>().map(|_| true),
        "autoreset" => value.is_truthy().map(|_| true),
        _ => Ok(false),
    }
}

/// Packs objects one after the other.
///
/// A callback may pack with the packer that called it, and so may other threads meanwhile: each call returns
/// its own message. With `autoreset=False` there is one buffer: calls of other threads wait, those of
/// callbacks raise RuntimeError.
#[pyclass(frozen, subclass, module = "offlock.msgpack")]
pub(super) struct Packer {
    /// Several calls may read them at once: a callback may pack with the packer that called it, and so may
    /// other threads.
    settings: RwLock<Settings>,
    /// With `autoreset=False`, the messages packed since the last `reset`.
    buffer: ObjectLock<Buffer>,
    /// The number of views of the buffer. While there is one the buffer does not change.
    views: AtomicUsize,
}

#[derive(Default)]
struct Settings {
    options: PackOptions,
    /// Whether packed messages stay in the buffer.
    keep: bool,
}

#[pymethods]
impl Packer {
    #[new]
    #[pyo3(
        signature = (*_arguments, **_options),
        text_signature = "(*, default=None, use_single_float=False, autoreset=True, use_bin_type=True, \
                          strict_types=False, datetime=False, unicode_errors=None, buf_size=262144, \
                          dataclasses=False, numpy=False, uuid=False, enum=False, release='auto')"
    )]
    fn new(_arguments: &Bound<'_, PyTuple>, _options: Option<&Bound<'_, PyDict>>) -> Self {
        let buffer = ObjectLock::new("the Packer cannot be used while packing is in progress");
        Self { settings: RwLock::default(), buffer, views: AtomicUsize::new(0) }
    }

    #[pyo3(signature = (**options))]
    fn __init__(&self, py: Python<'_>, options: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        let (mut new, mut room) = (Settings::default(), 0);
        if let Some(options) = options {
            new.options = PackOptions::from_keywords(options, |name, value| {
                match name {
                    "buf_size" => room = value.extract()?,
                    "autoreset" => new.keep = !value.is_truthy()?,
                    _ => return Ok(false),
                }
                Ok(true)
            })?;
        }
        let buffer = if new.keep { Buffer::with_capacity(room)? } else { Buffer::default() };
        let mut old = self.buffer_to_change(py)?;
        let Ok(mut settings) = self.settings.try_write() else { return Err(self.buffer.in_use()) };
        *old = buffer;
        let before = std::mem::replace(&mut *settings, new);
        drop((settings, old));
        drop(before); // may run code of the program
        Ok(())
    }

    /// Packs an object. Returns the message, or `None` with `autoreset=False`.
    fn pack<'py>(&self, obj: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
        region::yield_between_calls(obj.py(), 0)?;
        let settings = self.settings()?;
        if !settings.keep {
            self.check_views()?;
            return pack_to_bytes(obj, &settings.options).map(Some);
        }
        self.keep(obj.py(), &settings, |options, buffer| pack(obj, options, buffer))
    }

    /// Packs an extension of type `typecode` with the payload `data`. Returns as `pack`.
    fn pack_ext_type<'py>(
        &self,
        typecode: i8,
        data: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let payload = bytes_of(data)?;
        check_length(payload.as_slice().len(), "ext data")?;
        self.write(data.py(), |options, out| pack_ext(data, typecode, payload.as_slice(), options, out))
    }

    /// Packs the header of an array of `size` items, which the caller packs next. Returns as `pack`.
    fn pack_array_header<'py>(&self, py: Python<'py>, size: i64) -> PyResult<Option<Bound<'py, PyAny>>> {
        let size = header_size(size, "array")?;
        self.write(py, |_, out| {
            write::array_header(out, size);
            Ok(())
        })
    }

    /// Packs the header of a map of `size` entries, whose keys and values the caller packs next. Returns as
    /// `pack`.
    fn pack_map_header<'py>(&self, py: Python<'py>, size: i64) -> PyResult<Option<Bound<'py, PyAny>>> {
        let size = header_size(size, "map")?;
        self.write(py, |_, out| {
            write::map_header(out, size);
            Ok(())
        })
    }

    /// Packs a sequence of pairs as a map.
    fn pack_map_pairs<'py>(&self, pairs: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let length = pairs.len()?;
        check_length(length, "map")?;
        self.write(pairs.py(), |options, out| pack_pairs(pairs, length, options, out))
    }

    /// Empties the buffer; only useful with `autoreset=False`.
    fn reset(&self, py: Python<'_>) -> PyResult<()> {
        self.buffer_to_change(py)?.clear();
        Ok(())
    }

    /// The contents of the buffer.
    fn bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let release = self.settings()?.options.release;
        let buffer = self.buffer.lock(py)?;
        buffer.others_wait(true);
        long_strings::bytes(py, buffer.as_slice(), release)
    }

    /// A view of the buffer. The packer cannot be changed while it exists.
    fn getbuffer<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyMemoryView>> {
        PyMemoryView::from(slf.as_any())
    }

    /// # Safety
    /// Called by CPython with a `Py_buffer` to fill.
    unsafe fn __getbuffer__(
        slf: &Bound<'_, Self>,
        view: *mut pyo3::ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let this = slf.get();
        let bytes = {
            let buffer = this.buffer.lock(slf.py())?;
            // From here on no code changes it.
            this.views.fetch_add(1, Ordering::AcqRel);
            std::ptr::from_ref(buffer.as_slice())
        };
        // SAFETY: the buffer lives as long as the packer.
        let bytes = unsafe { &*bytes };
        // SAFETY: `view` is for CPython to fill; the memory neither moves nor changes while `views` is not 0.
        let result = unsafe { buffer::export(slf.as_any(), bytes, view, flags) };
        if result.is_err() {
            this.views.fetch_sub(1, Ordering::AcqRel);
        }
        result
    }

    /// # Safety
    /// Called by CPython when a view is released.
    unsafe fn __releasebuffer__(&self, _view: *mut pyo3::ffi::Py_buffer) {
        self.views.fetch_sub(1, Ordering::AcqRel);
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // While settings are being changed, a running method holds them as well.
        self.settings.try_read().map_or(Ok(()), |settings| visit.call(&settings.options.default))
    }

    fn __clear__(&self) {
        let default = self.settings.try_write().map(|mut settings| settings.options.default.take());
        drop(default); // may run code of the program
    }
}

impl Packer {
    fn settings(&self) -> PyResult<RwLockReadGuard<'_, Settings>> {
        match self.settings.try_read() {
            Ok(settings) => Ok(settings),
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => Err(self.buffer.in_use()),
        }
    }

    /// The buffer, for changing it.
    fn buffer_to_change(&self, py: Python<'_>) -> PyResult<ObjectGuard<'_, Buffer>> {
        let buffer = self.buffer.lock(py)?;
        self.check_views()?;
        Ok(buffer)
    }

    fn check_views(&self) -> PyResult<()> {
        if self.views.load(Ordering::Acquire) == 0 {
            return Ok(());
        }
        Err(PyBufferError::with_message("Existing exports of data: Packer cannot be changed"))
    }

    /// Writes a message. Returns it, unless the packer keeps it.
    fn write<'py>(
        &self,
        py: Python<'py>,
        body: impl FnOnce(&PackOptions, &mut Buffer) -> PyResult<()>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let settings = self.settings()?;
        if settings.keep {
            return self.keep(py, &settings, body);
        }
        self.check_views()?;
        let mut message = Buffer::default();
        body(&settings.options, &mut message)?;
        message.check()?;
        long_strings::bytes(py, message.as_slice(), settings.options.release)
            .map(|bytes| Some(bytes.into_any()))
    }

    /// Writes to the buffer.
    fn keep<'py>(
        &self,
        py: Python<'py>,
        settings: &Settings,
        body: impl FnOnce(&PackOptions, &mut Buffer) -> PyResult<()>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let mut buffer = self.buffer_to_change(py)?;
        buffer.others_wait(settings.options.is_plain());
        let result = body(&settings.options, &mut buffer).and_then(|()| buffer.check());
        if result.is_err() {
            buffer.clear();
        }
        result.map(|()| None)
    }
}

fn header_size(size: i64, what: &str) -> PyResult<usize> {
    match u32::try_from(size) {
        Ok(size) => Ok(size as usize),
        Err(_) => Err(PyValueError::with_message(format!("{what} too large: {size}"))),
    }
}
