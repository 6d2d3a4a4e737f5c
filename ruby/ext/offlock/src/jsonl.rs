//! `Offlock::JSONL`: fields of JSON lines, found without the lock.

use magnus::value::ReprValue;
use magnus::{
    Error, Exception, ExceptionClass, Module, RArray, RModule, RString, Ruby, TryConvert, Value, function,
};
use offlock_core::jsonl::{self, ErrorKind, MAX_KEYS, Paths};

use crate::borrow::{borrowed, numbers};
use crate::column;
use crate::cruby::{Object, catch};
use crate::error::{IntoException, no_memory};
use crate::operations::JSONL_EXTRACT;
use crate::region::{Region, Release};

/// Defines the module and its native function, which `lib/offlock/jsonl.rb` wraps.
pub(crate) fn define(offlock: RModule) -> Result<(), Error> {
    let module = offlock.define_module("JSONL")?;
    module.define_module_function("extract_columns", function!(extract, 4))
}

/// Extracts the fields under the paths in every record: `extract_columns(lines, paths, max_doc_bytes, release)`.
fn extract(
    ruby: &Ruby,
    lines: RString,
    paths: RArray,
    max_doc_bytes: usize,
    release: Release,
) -> Result<Value, Error> {
    let share = borrowed!(Bytes, lines);
    let bytes = share.view();
    let paths = numbers(paths, |_| None, |path, _| Vec::<String>::try_convert(path))?;
    let paths = Paths::new(&paths).ok_or_else(|| {
        Error::new(ruby.exception_arg_error(), format!("a field is named by 1 to {MAX_KEYS} keys"))
    })?;
    let found = Region::new(&JSONL_EXTRACT, bytes.len())
        .release(release)
        .run(ruby, |task| jsonl::extract(bytes, &paths, max_doc_bytes, task))?;
    catch(ruby, |gvl| {
        let columns = gvl.array_with_capacity(found.columns.len());
        for fields in &found.columns {
            let values = column::array(gvl, &found.strings, fields);
            gvl.extend(columns, &[values.into()]);
        }
        Object::from(columns)
    })
}

impl IntoException for jsonl::Error {
    fn into_exception(self, ruby: &Ruby) -> Error {
        match self.kind {
            ErrorKind::Stopped => offlock_core::Stopped.into_exception(ruby),
            ErrorKind::OutOfMemory => no_memory(ruby),
            ErrorKind::Unexpected { .. } => Error::new(ruby.exception_type_error(), self.to_string()),
            ErrorKind::IntegerTooLarge => Error::new(ruby.exception_range_error(), self.to_string()),
            _ => decode_error(ruby, &self).map_or_else(|error| error, Error::from),
        }
    }
}

fn decode_error(ruby: &Ruby, error: &jsonl::Error) -> Result<Exception, Error> {
    let class: ExceptionClass = ruby.class_object().funcall("const_get", ("Offlock::JSONL::DecodeError",))?;
    class.funcall("new", (error.to_string(), error.line, error.start + error.column))
}
