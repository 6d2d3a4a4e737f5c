//! The `offlock` command, started by the package's entry point.

use std::ffi::OsString;

use pyo3::prelude::*;

/// Runs the command with `arguments` (the program's name first) and returns its exit status.
#[pyfunction]
pub(crate) fn run_cli(arguments: Vec<OsString>) -> u8 {
    offlock_cli::run(arguments)
}
