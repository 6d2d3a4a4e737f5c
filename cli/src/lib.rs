//! The `offlock` command as a library, so that the gem's and the wheel's entry points can start it.

/// As the standard library's, but without a panic if standard error is a broken pipe or a full disk: the program that is
/// traced ends as it does, and so does the command.
macro_rules! eprint {
    ($($words:tt)*) => {{
        use std::io::Write as _;
        let _ = write!(std::io::stderr(), $($words)*);
    }};
}

macro_rules! eprintln {
    ($($words:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($words)*);
    }};
}

mod arguments;
mod attach;
mod dump;
mod duration;
mod failure;
mod files;
mod language;
mod look;
mod program;
mod progress;
mod published;
mod record;
mod run;
mod show;
mod signals;
mod tokens;
mod top;
mod trace;

use std::ffi::OsString;
use std::path::Path;

use clap::{CommandFactory, Parser};
use clap_complete::Shell;

use arguments::{Cli, Command};
use failure::Failure;

/// Runs the command with `args` (the program's name first) and returns its exit status.
///
/// `trace` does not return: the process ends the way the traced program did.
pub fn run(args: impl IntoIterator<Item = OsString>) -> u8 {
    let command = match Cli::try_parse_from(args) {
        Ok(cli) => cli.command,
        Err(error) => {
            let _ = error.print();
            return u8::try_from(error.exit_code()).unwrap_or(1);
        }
    };
    let done = match command {
        Command::Trace(arguments) => trace::run(&arguments),
        Command::Run(arguments) => run::run(&arguments),
        Command::Record(arguments) => record::run(&arguments),
        Command::Attach(arguments) => attach::run(&arguments),
        Command::Top(arguments) => top::run(&arguments),
        Command::Dump(arguments) => dump::run(&arguments),
        Command::Summary(arguments) => show::summary(&arguments),
        Command::Report(arguments) => show::report(&arguments),
        Command::Compare(arguments) => show::compare(&arguments),
        Command::Export(arguments) => show::export(&arguments),
        Command::Tokens(arguments) => tokens::run(&arguments),
        Command::Completions(arguments) => completions(arguments.shell),
        Command::Man(arguments) => man(arguments.subcommand.as_deref()),
    };
    match done {
        Ok(()) => 0,
        Err(failure) => {
            eprintln!("offlock: {}", failure.message);
            failure.status
        }
    }
}

fn completions(shell: Shell) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "offlock", &mut script);
    print(&script)
}

fn man(subcommand: Option<&str>) -> Result<(), Failure> {
    let mut command = Cli::command();
    command.build();
    let meant = match subcommand {
        Some(name) => command.find_subcommand(name).cloned(),
        None => Some(command),
    };
    let unknown = || Failure::new(format!("{}: there is no such subcommand", subcommand.unwrap_or_default()));
    let mut page = Vec::new();
    let written = clap_mangen::Man::new(meant.ok_or_else(unknown)?).render(&mut page);
    written.map_err(|error| Failure::new(error.to_string()))?;
    print(&page)
}

fn print(text: &[u8]) -> Result<(), Failure> {
    files::write(Path::new("-"), |out| out.write_all(text))
}
