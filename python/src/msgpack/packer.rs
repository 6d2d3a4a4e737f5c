//! `packb` and the class `Packer`.

use std::ffi::c_int;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError};

use offlock_core::msgpack::write;
use pyo3::exceptions::{PyBufferError, PyRuntimeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyMemoryView, PyTuple};

use super::pack::{PackOptions, check_length, pack};
use super::sink::BytesSink;
use super::types::bytes_of;
use crate::region;

/// Packs an object, and returns the message.
pub(super) fn packb<'py>(
    o: &Bound<'py, PyAny>,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    region::yield_between_calls(o.py())?;
    match options {
        None => pack_to_bytes(o, &PackOptions::default()),
        Some(options) => pack_to_bytes(o, &PackOptions::from_keywords(options, only_of_packer)?),
    }
}

#[inline]
fn pack_to_bytes<'py>(object: &Bound<'py, PyAny>, options: &PackOptions) -> PyResult<Bound<'py, PyAny>> {
    BytesSink::collect(object.py(), |sink| pack(object, options, sink))
}

/// Options that say something about the buffer of a `Packer`.
fn only_of_packer(name: &str, value: &Bound<'_, PyAny>) -> PyResult<bool> {
    match name {
        "buf_size" => value.extract::<usize>().map(|_| true),
        "autoreset" => value.is_truthy().map(|_| true),
        _ => Ok(false),
    }
}

/// Packs objects one after the other.
#[pyclass(frozen, subclass, module = "offlock.msgpack")]
pub(super) struct Packer {
    state: Mutex<State>,
    /// How many views of the buffer there are. While there is one the buffer does not change.
    views: AtomicUsize,
}

#[derive(Default)]
struct State {
    options: PackOptions,
    /// With `autoreset=False`, what was packed since the last `reset`.
    keep: bool,
    buffer: Vec<u8>,
}

#[pymethods]
impl Packer {
    #[new]
    #[pyo3(signature = (*_arguments, **_options))]
    fn new(_arguments: &Bound<'_, PyTuple>, _options: Option<&Bound<'_, PyDict>>) -> Self {
        Self { state: Mutex::default(), views: AtomicUsize::new(0) }
    }

    #[pyo3(signature = (**options))]
    fn __init__(&self, options: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        let mut new = State::default();
        if let Some(options) = options {
            let mut buffer_size = 0;
            new.options = PackOptions::from_keywords(options, |name, value| {
                match name {
                    "buf_size" => buffer_size = value.extract()?,
                    "autoreset" => new.keep = !value.is_truthy()?,
                    _ => return Ok(false),
                }
                Ok(true)
            })?;
            if new.keep {
                new.buffer.reserve(buffer_size);
            }
        }
        *self.state()? = new;
        Ok(())
    }

    /// Packs an object. Returns the message, or `None` with `autoreset=False`.
    fn pack<'py>(&self, obj: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
        region::yield_between_calls(obj.py())?;
        let mut state = self.state()?;
        let State { options, keep, buffer } = &mut *state;
        if !*keep {
            return pack_to_bytes(obj, options).map(Some);
        }
        let result = pack(obj, options, buffer);
        if result.is_err() {
            buffer.clear();
        }
        result.map(|()| None)
    }

    /// Writes an extension.
    fn pack_ext_type<'py>(
        &self,
        typecode: i8,
        data: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let payload = bytes_of(data)?;
        check_length(payload.as_slice().len(), "ext data")?;
        self.write(data.py(), |_, out| {
            write::ext(out, typecode, payload.as_slice());
            Ok(())
        })
    }

    /// Writes the header of an array of that many items, which are to be packed after it.
    fn pack_array_header<'py>(&self, py: Python<'py>, size: i64) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let size = header_size(size, "array")?;
        self.write(py, |_, out| {
            write::array_header(out, size);
            Ok(())
        })
    }

    /// Writes the header of a map of that many entries, whose keys and values are to be packed after it.
    fn pack_map_header<'py>(&self, py: Python<'py>, size: i64) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let size = header_size(size, "map")?;
        self.write(py, |_, out| {
            write::map_header(out, size);
            Ok(())
        })
    }

    /// Packs a sequence of pairs as a map.
    fn pack_map_pairs<'py>(&self, pairs: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let length = pairs.len()?;
        check_length(length, "map")?;
        self.write(pairs.py(), |options, out| {
            write::map_header(out, length);
            for pair in pairs.try_iter()? {
                let (key, value) = pair?.extract::<(Bound<'py, PyAny>, Bound<'py, PyAny>)>()?;
                pack(&key, options, out)?;
                pack(&value, options, out)?;
            }
            Ok(())
        })
    }

    /// Empties the buffer; of use with `autoreset=False`.
    fn reset(&self) -> PyResult<()> {
        self.state()?.buffer.clear();
        Ok(())
    }

    /// What is in the buffer.
    fn bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.state_to_look()?.buffer))
    }

    /// A view of the buffer. The packer cannot be changed while it exists.
    fn getbuffer<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyMemoryView>> {
        PyMemoryView::from(slf.as_any())
    }

    /// # Safety
    /// Called by CPython with a `Py_buffer` to fill.
    unsafe fn __getbuffer__(
        slf: PyRef<'_, Self>,
        view: *mut pyo3::ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let this: &Self = &slf;
        let (start, length) = {
            let state = this.state_to_look()?;
            (state.buffer.as_ptr(), state.buffer.len())
        };
        // SAFETY: `view` is CPython's to fill; the memory neither moves nor changes while `views` is not 0, and the
        // view holds a reference to the packer.
        let result = unsafe {
            pyo3::ffi::PyBuffer_FillInfo(
                view,
                slf.as_ptr(),
                start.cast_mut().cast(),
                length.cast_signed(),
                1,
                flags,
            )
        };
        if result < 0 {
            return Err(PyErr::fetch(slf.py()));
        }
        this.views.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    /// # Safety
    /// Called by CPython when a view is given back.
    unsafe fn __releasebuffer__(&self, _view: *mut pyo3::ffi::Py_buffer) {
        self.views.fetch_sub(1, Ordering::AcqRel);
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // A state in use is held by a running method as well.
        self.state.try_lock().map_or(Ok(()), |state| visit.call(&state.options.default))
    }

    fn __clear__(&self) {
        if let Ok(mut state) = self.state.try_lock() {
            state.options.default = None;
        }
    }
}

impl Packer {
    /// The state, to change it.
    fn state(&self) -> PyResult<MutexGuard<'_, State>> {
        let state = self.state_to_look()?;
        if self.views.load(Ordering::Acquire) > 0 {
            return Err(PyBufferError::new_err("Existing exports of data: Packer cannot be changed"));
        }
        Ok(state)
    }

    fn state_to_look(&self) -> PyResult<MutexGuard<'_, State>> {
        match self.state.try_lock() {
            Ok(state) => Ok(state),
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => {
                Err(PyRuntimeError::new_err("the Packer cannot be used while packing is in progress"))
            }
        }
    }

    /// Writes to the buffer, and returns and empties it unless it is kept.
    fn write<'py>(
        &self,
        py: Python<'py>,
        body: impl FnOnce(&PackOptions, &mut Vec<u8>) -> PyResult<()>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let mut state = self.state()?;
        let State { options, keep, buffer } = &mut *state;
        let result = body(options, buffer);
        if result.is_err() {
            buffer.clear();
        }
        result?;
        if *keep {
            return Ok(None);
        }
        let bytes = PyBytes::new(py, buffer);
        buffer.clear();
        Ok(Some(bytes))
    }
}

fn header_size(size: i64, what: &str) -> PyResult<usize> {
    match u32::try_from(size) {
        Ok(size) => Ok(size as usize),
        Err(_) => Err(PyValueError::new_err(format!("{what} too large: {size}"))),
    }
}
