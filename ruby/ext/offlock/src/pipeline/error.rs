//! Errors of the pipeline as Ruby's exceptions.

use magnus::value::ReprValue;
use magnus::{Error, Exception, ExceptionClass, RArray, Ruby};
use offlock_core::Stopped;
use offlock_core::pipeline::{self, ErrorKind};

use crate::error::{IntoException, no_memory};

impl IntoException for pipeline::Error {
    fn into_exception(self, ruby: &Ruby) -> Error {
        match &self.kind {
            ErrorKind::Stopped => Stopped.into_exception(ruby),
            ErrorKind::OutOfMemory => no_memory(ruby),
            ErrorKind::Io { code: Some(code), .. } => {
                let path = self.path.display().to_string();
                made(ruby.exception_system_call_error().funcall("new", (path, *code)))
            }
            ErrorKind::Io { .. } => Error::new(ruby.exception_io_error(), self.to_string()),
            ErrorKind::Invalid { .. } => Error::new(ruby.exception_arg_error(), self.to_string()),
            _ => made(record_error(ruby, &self)),
        }
    }
}

fn made(exception: Result<Exception, Error>) -> Error {
    exception.map_or_else(|error| error, Error::from)
}

/// The `RecordError` of an input that is at fault.
fn record_error(ruby: &Ruby, error: &pipeline::Error) -> Result<Exception, Error> {
    let class: ExceptionClass =
        ruby.class_object().funcall("const_get", ("Offlock::Pipeline::RecordError",))?;
    let place = error.record.map(|place| (place.number, place.offset));
    let (record, offset) = place.unzip();
    class.funcall("new", (error.to_string(), error.path.display().to_string(), record, offset))
}

/// An Array of `RecordError`s.
pub(super) fn record_errors(ruby: &Ruby, errors: &[pipeline::Error]) -> Result<RArray, Error> {
    let array = ruby.ary_new_capa(errors.len());
    for error in errors {
        array.push(record_error(ruby, error)?)?;
    }
    Ok(array)
}
