//! `gets` and `readline`: native, so that a line usually costs one String, and `$_` is that of the caller.

use magnus::typed_data::Obj;
use magnus::value::{LazyId, ReprValue};
use magnus::{Error, Module, Object, RModule, RObject, RString, Ruby, TryConvert, Value, function, method};

use super::forward::forward;
use super::read_buffer::ReadBuffer;
use crate::cruby::string::with_bytes;
use crate::cruby::{self, catch, ractor};

pub(super) fn define(_ruby: &Ruby, zlib: RModule) -> Result<(), Error> {
    zlib.define_singleton_method("native_separator", function!(separator, 0))?;
    let reading = zlib.define_module("LineReading")?;
    reading.define_method("gets", method!(gets, -1))?;
    reading.define_method("readline", method!(readline, -1))
}

/// `$/`, which Ruby programs can read only in the main Ractor.
fn separator(ruby: &Ruby) -> Result<Value, Error> {
    let separator = cruby::line_separator(ruby).value();
    match RString::from_value(separator) {
        // Another Ractor must not get a String that this one could change.
        Some(string) if !ractor::is_main() && !string.is_frozen() => {
            let copy = with_bytes(string, <[u8]>::to_vec);
            Ok(ruby.str_from_slice(&copy).as_value())
        }
        _ => Ok(separator),
    }
}

fn gets(ruby: &Ruby, reader: RObject, arguments: &[Value]) -> Result<Value, Error> {
    let line = read(ruby, reader, arguments)?;
    if !line.is_nil() {
        catch(ruby, |gvl| {
            gvl.set_last_line(cruby::Object::of(line));
            cruby::Object::NIL
        })?;
    }
    Ok(line)
}

fn readline(ruby: &Ruby, reader: RObject, arguments: &[Value]) -> Result<Value, Error> {
    let line = gets(ruby, reader, arguments)?;
    if line.is_nil() {
        return Err(Error::new(ruby.exception_eof_error(), "end of file reached"));
    }
    Ok(line)
}

fn read(ruby: &Ruby, reader: RObject, arguments: &[Value]) -> Result<Value, Error> {
    static OTHERWISE: LazyId = LazyId::new("offlock_read_line");
    match usual(ruby, reader, arguments)? {
        Some(line) => Ok(line.as_value()),
        None => forward(ruby, reader.as_value(), &OTHERWISE, arguments),
    }
}

/// The next line, if the arguments ask for a plain line and all of it is already decompressed.
fn usual(ruby: &Ruby, reader: RObject, arguments: &[Value]) -> Result<Option<RString>, Error> {
    static PLAIN: LazyId = LazyId::new("@offlock_plain");
    if !arguments.is_empty() {
        return Ok(None);
    }
    let plain: Value = reader.ivar_get(LazyId::get_inner_with(&PLAIN, ruby))?;
    let (plain, separator) =
        (Obj::<ReadBuffer>::try_convert(plain).ok(), RString::from_value(separator(ruby)?));
    match (plain, separator) {
        (Some(plain), Some(separator)) if plain.is_direct() => plain.next_line(ruby, separator, false),
        _ => Ok(None),
    }
}
