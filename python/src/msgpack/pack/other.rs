//! Objects of the rarer types: those that the options cover, and all others, which `default` converts.

use offlock_core::msgpack::write::{self, Sink};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDateTime, PyDict, PyList};

use super::frame::{OpenContainer, Outcome};
use super::options::PackOptions;
use super::scalars::float;
use super::writer::Writer;
use crate::cpython::object::{self, tuple_of};
use crate::error::WithMessage;
use crate::msgpack::conversions::{self, Replacement};
use crate::msgpack::options::MAX_DEPTH;
use crate::msgpack::pack_error::{PackError, PackResult, out_of_range, too_deep};
use crate::objects::type_name;

impl<'py, S: Sink> Writer<'_, 'py, S> {
    /// Writes an object that is not exactly of one of the commonest types: the object itself, its
    /// replacement, or that of its replacement. `default` is called once for each of them.
    #[cold]
    #[inline(never)]
    pub(super) fn other(&mut self, object: &Bound<'py, PyAny>) -> PackResult<Option<OpenContainer<'py>>> {
        let mut object = object.clone();
        let mut default = self.options.default.as_ref();
        for _ in 0..MAX_DEPTH {
            let outcome = self.try_other(&object)?;
            object = match (outcome, default) {
                (Outcome::Written, _) => return Ok(None),
                (Outcome::Open(frame), _) => return Ok(Some(frame)),
                (Outcome::Replaced(stand), _) => {
                    default = self.options.default.as_ref();
                    stand
                }
                (Outcome::Unknown | Outcome::TooWide, Some(function)) => {
                    default = None;
                    function.bind(self.py).call1((object,))?
                }
                (Outcome::Unknown, None) => return Err(unsupported(self.options, &object)),
                (Outcome::TooWide, None) => return Err(out_of_range()),
            };
            if self.leaf(object.as_borrowed())? {
                return Ok(None);
            }
            if object.is_exact_instance_of::<PyDict>() {
                return self.open_dict(&object);
            }
            if object.is_exact_instance_of::<PyList>() {
                return self.open_list(&object);
            }
        }
        Err(too_deep())
    }

    pub(super) fn try_other(&mut self, object: &Bound<'py, PyAny>) -> PackResult<Outcome<'py>> {
        match conversions::family(object, self.options.strict_types)? {
            conversions::Family::Int => return self.int(object),
            conversions::Family::Float => float(self.out, self.options, object::float_value(object))?,
            conversions::Family::Str => self.str(object)?,
            conversions::Family::Bytes => {
                self.bin(object, conversions::bytes_of(object)?.as_slice(), "bytes")?
            }
            conversions::Family::Dict => return self.open_pairs(object).map(Outcome::Open),
            conversions::Family::Ext => self.ext(object)?,
            conversions::Family::Timestamp => self.timestamp(object)?,
            conversions::Family::List => return self.open_tuple(tuple_of(object)?).map(Outcome::Open),
            conversions::Family::Tuple => return self.open_tuple(object.clone()).map(Outcome::Open),
            conversions::Family::Other => return self.extra(object),
        }
        Ok(Outcome::Written)
    }

    /// The replacement for an object that msgpack itself does not write, according to the options.
    pub(super) fn extra(&mut self, object: &Bound<'py, PyAny>) -> PackResult<Outcome<'py>> {
        if let Some(replacement) = self.options.datetime.replacement(object)? {
            return self.replacement(replacement);
        }
        match self.options.extra.replacement(object)? {
            Some(replacement) => self.replacement(replacement),
            None => Ok(Outcome::Unknown),
        }
    }

    pub(super) fn replacement(&mut self, replacement: Replacement<'py>) -> PackResult<Outcome<'py>> {
        match replacement {
            Replacement::Object(object) => return Ok(Outcome::Replaced(object)),
            Replacement::Timestamp(timestamp) => write::timestamp(self.out, timestamp),
            Replacement::Pieces(pieces) => return self.open_pieces(pieces).map(Outcome::Open),
            Replacement::Memory(memory) => {
                let Self { py, options, out, yielder } = self;
                memory.write(
                    *out,
                    |out, value| float(out, options, value),
                    || yielder.check_now(*py).map_err(PackError::interrupt),
                )?;
            }
        }
        Ok(Outcome::Written)
    }
}

#[cold]
fn unsupported(options: &PackOptions, object: &Bound<'_, PyAny>) -> PackError {
    let kind = type_name(object);
    if options.datetime == conversions::Datetime::Timestamp && object.is_exact_instance_of::<PyDateTime>() {
        let message = format!("can not serialize '{kind}' object where tzinfo=None");
        return PackError::new(PyValueError::with_message, message);
    }
    PackError::new(PyTypeError::with_message, format!("can not serialize '{kind}' object"))
}
