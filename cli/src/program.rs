//! The program that `offlock trace` and `offlock run` start: how its interpreters come to load offlock.
//!
//! - For Ruby, `RUBYOPT` gets `-rofflock/autotrace` (the file `offlock/autotrace.rb` of the gem), and
//!   `RUBYLIB` the folders in `OFFLOCK_RUBYLIB`.
//! - For Python, `PYTHONPATH` gets the folders in `OFFLOCK_PYTHONPATH`, which hold a `sitecustomize.py` that
//!   starts the trace and then runs the one that it hides, if there is one.
//!
//! The entry points of the gem and of the wheel set `OFFLOCK_RUBYLIB` and `OFFLOCK_PYTHONPATH`, each its own.
//! If an autostart cannot load the extension, it must not disturb the program: it prints a message to
//! standard error and continues. An extension is built for one version of its interpreter, but a program may
//! start another version: the gem's entry point states its Ruby in `OFFLOCK_RUBY`, and Python looks for a
//! file for its own version.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::process::Command;

use crate::failure::Failure;
use crate::language::with_interpreter;

/// The command that runs a program with its arguments.
pub(crate) fn command(program: &[OsString]) -> Command {
    let mut command = Command::new(&program[0]);
    command.args(&program[1..]);
    command
}

/// Makes the program's interpreters load offlock when they start.
pub(crate) fn load_offlock(command: &mut Command) {
    if let Some(folders) = std::env::var_os("OFFLOCK_RUBYLIB") {
        command.env("RUBYLIB", before(folders, std::env::var_os("RUBYLIB"), ":"));
        command.env("RUBYOPT", before("-rofflock/autotrace".into(), std::env::var_os("RUBYOPT"), " "));
    }
    if let Some(folders) = std::env::var_os("OFFLOCK_PYTHONPATH") {
        command.env("PYTHONPATH", before(folders, std::env::var_os("PYTHONPATH"), ":"));
    }
}

fn before(mut ours: OsString, theirs: Option<OsString>, separator: &str) -> OsString {
    if let Some(theirs) = theirs.filter(|theirs| !theirs.is_empty()) {
        ours.push(separator);
        ours.push(theirs);
    }
    ours
}

/// The exit statuses are those of a shell.
pub(crate) fn cannot_run(program: &OsStr, error: &io::Error) -> Failure {
    let status = if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 };
    let hint = with_interpreter(program).map(|hint| format!("\nDid you mean: {hint}")).unwrap_or_default();
    Failure { status, ..Failure::with_file(Path::new(program), &format!("{error}{hint}")) }
}
