//! `offlock run`: runs a program so that it publishes itself, and `offlock record` can take traces from it.

use std::os::unix::process::CommandExt;

use offlock_core::trace::{LIVE_VARIABLE, switched_off};

use crate::arguments::Run;
use crate::failure::Failure;
use crate::language::wrong_package;
use crate::program::{self, cannot_run};

/// Replaces this process by the program; returns only if that fails.
pub(crate) fn run(arguments: &Run) -> Result<(), Failure> {
    let mut command = program::command(&arguments.program);
    if let Some(reason) = switched_off() {
        eprintln!("offlock: {reason}: the program cannot be recorded");
    } else {
        command.env(LIVE_VARIABLE, "1");
        program::load_offlock(&mut command);
        if let Some(hint) = wrong_package(&arguments.program[0]) {
            eprintln!("offlock: {hint}");
        }
    }
    Err(cannot_run(&arguments.program[0], &command.exec()))
}
