//! `print` and `puts` of a `GzipWriter`: Ruby's own, which read `$_`, `$,` and `$\\` in every Ractor.

use magnus::{Error, Module, RModule, Ruby, Value, method};

use crate::cruby::{Object, catch};

pub(super) fn define(_ruby: &Ruby, zlib: RModule) -> Result<(), Error> {
    let printing = zlib.define_module("Printing")?;
    printing.define_method("print", method!(print, -1))?;
    printing.define_method("puts", method!(puts, -1))
}

fn print(ruby: &Ruby, writer: Value, objects: &[Value]) -> Result<Value, Error> {
    catch(ruby, |gvl| gvl.print_to(Object::of(writer), Object::all(objects)))
}

fn puts(ruby: &Ruby, writer: Value, objects: &[Value]) -> Result<Value, Error> {
    catch(ruby, |gvl| gvl.puts_to(Object::of(writer), Object::all(objects)))
}
