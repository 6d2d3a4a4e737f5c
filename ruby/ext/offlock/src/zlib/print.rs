//! `print` and `puts` of a `GzipWriter`: Ruby's own, which read `$_`, `$,` and `$\\` in every Ractor.

use magnus::rb_sys::{AsRawValue, FromRawValue, protect};
use magnus::{Error, Module, RModule, Ruby, Value, method};

pub(super) fn define(_ruby: &Ruby, zlib: RModule) -> Result<(), Error> {
    let printing = zlib.define_module("Printing")?;
    printing.define_method("print", method!(print, -1))?;
    printing.define_method("puts", method!(puts, -1))
}

fn print(writer: Value, objects: &[Value]) -> Result<Value, Error> {
    with(rb_sys::rb_io_print, writer, objects)
}

fn puts(writer: Value, objects: &[Value]) -> Result<Value, Error> {
    with(rb_sys::rb_io_puts, writer, objects)
}

type Function = unsafe extern "C" fn(std::ffi::c_int, *const rb_sys::VALUE, rb_sys::VALUE) -> rb_sys::VALUE;

/// Calls one of Ruby's functions that write objects by `write`.
fn with(function: Function, writer: Value, objects: &[Value]) -> Result<Value, Error> {
    let count = objects.len() as std::ffi::c_int;
    // SAFETY: called with the lock held, with the arguments of the running method, which its caller keeps alive; `Value` is a
    // reference as Ruby has it. What is raised is caught here.
    let result = protect(|| unsafe { function(count, objects.as_ptr().cast(), writer.as_raw()) })?;
    // SAFETY: Ruby just returned this value.
    Ok(unsafe { Value::from_raw(result) })
}
