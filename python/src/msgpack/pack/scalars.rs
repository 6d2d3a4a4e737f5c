//! Strings, numbers and the like.

use offlock_core::msgpack::Timestamp;
use offlock_core::msgpack::write::{self, Sink};
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt};

use super::frame::Outcome;
use super::options::PackOptions;
use super::writer::Writer;
use crate::cpython::object::{self, Wide};
use crate::cpython::str_header;
use crate::error::WithMessage;
use crate::msgpack::conversions;
use crate::msgpack::pack_error::{PackError, PackResult, check_length};
use crate::objects::{Text, name};
use crate::utf8;

/// Longer strings and the like take the time of several values.
const LONG: usize = 8 << 10;

/// How many bytes of a long value are copied at once.
const PIECE: usize = 256 << 10;

impl<'py, S: Sink> Writer<'_, 'py, S> {
    /// Writes a value of one of the commonest types, which is short and runs no Python code. Returns whether
    /// it was one.
    #[inline(always)]
    pub(super) fn leaf(&mut self, object: Borrowed<'_, 'py, PyAny>) -> PackResult<bool> {
        if let Some(text) = object::exact_str(object) {
            match str_header::ascii_of(text) {
                _ if !self.options.plain_str => return Ok(false),
                Some(ascii) if ascii.len() < LONG => write::str(self.out, ascii),
                None if object::characters(&object) < LONG / 4 => {
                    write::str(self.out, object::utf8_of(&object)?)
                }
                // Writing it lets other threads run, which may remove the dict entry that it comes from.
                _ => return Ok(false),
            }
        } else if object.is_exact_instance_of::<PyInt>() {
            match object::int_value(&object)? {
                Wide::Signed(value) => write::int(self.out, value),
                Wide::Unsigned(value) => write::uint(self.out, value),
                Wide::Neither => return Ok(false),
            }
        } else if object.is_exact_instance_of::<PyFloat>() {
            float(self.out, self.options, object::float_value(&object))?;
        } else if object.is_none() {
            write::nil(self.out);
        } else if object.is_exact_instance_of::<PyBool>() {
            write::bool(self.out, object::is_true(&object));
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    #[cold]
    pub(super) fn str(&mut self, object: &Bound<'py, PyAny>) -> PackResult<()> {
        match &self.options.unicode_errors {
            None => self.text(object),
            Some(errors) => {
                let encoded =
                    object.call_method1(name!("encode"), (name!("utf-8"), Text(errors.to_string_lossy())))?;
                let bytes = encoded.cast::<PyBytes>().map_err(PyErr::from)?.as_bytes();
                self.text_of(&encoded, bytes)
            }
        }
    }

    #[inline]
    pub(super) fn text(&mut self, object: &Bound<'py, PyAny>) -> PackResult<()> {
        let long = utf8::of_long(object.cast().map_err(PyErr::from)?, self.options.release);
        if let Some(text) = long.map_err(PackError::interrupt)? {
            return self.text_of(object, text.as_bytes());
        }
        let bytes = object::utf8_of(object)?;
        if bytes.len() >= LONG || self.options.old_raw {
            return self.text_of(object, bytes);
        }
        write::str(self.out, bytes);
        Ok(())
    }

    #[cold]
    pub(super) fn text_of(&mut self, owner: &Bound<'py, PyAny>, bytes: &[u8]) -> PackResult<()> {
        check_length(bytes.len(), "unicode string")?;
        if self.options.old_raw || bytes.len() >= LONG {
            write::raw_header(self.out, bytes.len());
            return self.content(owner, bytes);
        }
        write::str(self.out, bytes);
        Ok(())
    }

    pub(super) fn bin(&mut self, owner: &Bound<'py, PyAny>, bytes: &[u8], what: &str) -> PackResult<()> {
        check_length(bytes.len(), what)?;
        if self.options.old_raw {
            write::raw_header(self.out, bytes.len());
        } else {
            write::bin_header(self.out, bytes.len());
        }
        self.content(owner, bytes)
    }

    /// Writes bytes that belong to the owner or to the caller alone.
    #[inline]
    pub(super) fn content(&mut self, owner: &Bound<'py, PyAny>, bytes: &[u8]) -> PackResult<()> {
        if bytes.len() >= LONG {
            return self.long(&owner.clone(), bytes);
        }
        self.out.put(bytes);
        Ok(())
    }

    /// The owner is held: other threads may run between two pieces.
    #[cold]
    pub(super) fn long(&mut self, _owner: &Bound<'py, PyAny>, bytes: &[u8]) -> PackResult<()> {
        self.out.expect(bytes.len());
        for piece in bytes.chunks(PIECE) {
            self.out.put(piece);
            self.look()?;
        }
        Ok(())
    }

    pub(super) fn int(&mut self, object: &Bound<'py, PyAny>) -> PackResult<Outcome<'py>> {
        match object::int_value(object)? {
            Wide::Signed(value) => write::int(self.out, value),
            Wide::Unsigned(value) => write::uint(self.out, value),
            Wide::Neither => return Ok(Outcome::TooWide),
        }
        Ok(Outcome::Written)
    }

    pub(super) fn ext(&mut self, object: &Bound<'py, PyAny>) -> PackResult<()> {
        let kind: u8 = object.getattr(name!("code"))?.extract()?;
        let data = object.getattr(name!("data"))?;
        let payload = conversions::bytes_of(&data)?;
        check_length(payload.as_slice().len(), "EXT data")?;
        write::ext_header(self.out, kind.cast_signed(), payload.as_slice().len());
        self.content(&data, payload.as_slice())
    }

    pub(super) fn timestamp(&mut self, object: &Bound<'py, PyAny>) -> PackResult<()> {
        let seconds = object.getattr(name!("seconds"))?.extract()?;
        let nanoseconds = object.getattr(name!("nanoseconds"))?.extract()?;
        write::timestamp(self.out, Timestamp { seconds, nanoseconds });
        Ok(())
    }
}

#[inline(always)]
pub(super) fn float(out: &mut impl Sink, options: &PackOptions, value: f64) -> PackResult<()> {
    if options.use_single_float {
        return single_float(out, value);
    }
    write::f64(out, value);
    Ok(())
}

#[cold]
fn single_float(out: &mut impl Sink, value: f64) -> PackResult<()> {
    let single = value as f32;
    if single.is_infinite() && value.is_finite() {
        return Err(PackError::new(PyOverflowError::with_message, "float too large to pack with f format"));
    }
    write::f32(out, single);
    Ok(())
}
