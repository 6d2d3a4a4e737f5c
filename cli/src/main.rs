//! The `offlock` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(offlock_cli::run(std::env::args_os()))
}
