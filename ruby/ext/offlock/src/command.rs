//! The `offlock` command, started by the gem's executable.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use magnus::{Error, Object, RArray, RModule, RString, TryConvert, Value, function};

use crate::borrow::borrowed;

/// Runs the command with `arguments` (the program's name first) and returns its exit status.
fn run_cli(arguments: RArray) -> Result<u8, Error> {
    let arguments: Vec<OsString> = arguments.into_iter().map(os_string).collect::<Result<_, _>>()?;
    Ok(offlock_cli::run(arguments))
}

fn os_string(argument: Value) -> Result<OsString, Error> {
    let bytes = borrowed!(Bytes, RString::try_convert(argument)?);
    Ok(OsString::from_vec(bytes.view().to_vec()))
}

/// Defines `Offlock.run_cli`.
pub(crate) fn define(offlock: RModule) -> Result<(), Error> {
    offlock.define_singleton_method("run_cli", function!(run_cli, 1))
}
