//! `offlock trace`: runs a program so that it traces itself.
//!
//! The program is told by its environment:
//!
//! - `OFFLOCK_TRACE` holds the absolute path of the trace file;
//!   [`Trace::from_environment`](offlock_core::trace::Trace::from_environment) reads it and says which process
//!   writes where.
//! - For Ruby, `RUBYOPT` gets `-rofflock/autotrace` (the file `offlock/autotrace.rb` of the gem), and
//!   `RUBYLIB` the folders in `OFFLOCK_RUBYLIB`.
//! - For Python, `PYTHONPATH` gets the folders in `OFFLOCK_PYTHONPATH`, which hold a `sitecustomize.py`
//!   that starts the trace and then runs the one it hides, if there is one.
//!
//! The entry points of the gem and of the wheel set `OFFLOCK_RUBYLIB` and `OFFLOCK_PYTHONPATH`, each its
//! own. Both autostarts must leave the program alone when they cannot load the extension: say so on standard
//! error and go on.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::time::SystemTime;

use offlock_core::trace::{Format, Summary, TRACE_VARIABLE};
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGALRM, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH};
use signal_hook::iterator::Signals;

use crate::{Failure, Trace, files, show};

/// Signals that are sent to us but meant for the program. A terminal sends SIGINT, SIGQUIT and
/// SIGWINCH to both; those we only survive.
const FORWARDED: [i32; 5] = [SIGHUP, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM];
const SURVIVED: [i32; 3] = [SIGINT, SIGQUIT, SIGWINCH];

pub(crate) fn run(arguments: &Trace) -> Result<(), Failure> {
    let output =
        std::path::absolute(&arguments.output).map_err(|e| Failure::with_file(&arguments.output, &e))?;
    let asked = Format::of_path(&output);
    let trace = if asked.is_some() { output.with_extension("offlock") } else { output.clone() };
    let page = arguments.report.then(|| (Format::Html, trace.with_extension("html")));
    let exports: Vec<(Format, PathBuf)> =
        asked.map(|format| (format, output)).into_iter().chain(page).collect();
    let began = make_room(&trace)?;
    let mut command = command(arguments, &trace);
    if arguments.no_summary && exports.is_empty() {
        return Err(cannot_run(&arguments.program[0], &command.exec()));
    }
    let mut child = command.spawn().map_err(|error| cannot_run(&arguments.program[0], &error))?;
    let status = wait(&mut child).map_err(|error| cannot_run(&arguments.program[0], &error))?;
    if let Err(failure) = afterwards(arguments, &trace, &exports, began) {
        eprintln!("offlock: {}", failure.message);
    }
    end_like(status)
}

/// A trace of an earlier run must not look like one of this run. The time returned is that of a file written
/// now: files are stamped by a clock of their own, some milliseconds behind [`SystemTime::now`].
fn make_room(trace: &Path) -> Result<SystemTime, Failure> {
    let written_now = || {
        std::fs::write(trace, [])?;
        let now = std::fs::metadata(trace)?.modified()?;
        std::fs::remove_file(trace).map(|()| now)
    };
    match std::fs::remove_file(trace) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => written_now(),
    }
    .map_err(|error| Failure::with_file(trace, &error))
}

fn command(arguments: &Trace, trace: &Path) -> Command {
    let mut command = Command::new(&arguments.program[0]);
    command.args(&arguments.program[1..]).env(TRACE_VARIABLE, trace);
    if let Some(folders) = std::env::var_os("OFFLOCK_RUBYLIB") {
        command.env("RUBYLIB", before(folders, std::env::var_os("RUBYLIB"), ":"));
        command.env("RUBYOPT", before("-rofflock/autotrace".into(), std::env::var_os("RUBYOPT"), " "));
    }
    if let Some(folders) = std::env::var_os("OFFLOCK_PYTHONPATH") {
        command.env("PYTHONPATH", before(folders, std::env::var_os("PYTHONPATH"), ":"));
    }
    command
}

fn before(mut ours: OsString, theirs: Option<OsString>, separator: &str) -> OsString {
    if let Some(theirs) = theirs.filter(|theirs| !theirs.is_empty()) {
        ours.push(separator);
        ours.push(theirs);
    }
    ours
}

/// The statuses are those of a shell.
fn cannot_run(program: &OsStr, error: &io::Error) -> Failure {
    let status = if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 };
    Failure { status, ..Failure::with_file(Path::new(program), error) }
}

/// Waits for the program and passes signals on to it.
fn wait(child: &mut Child) -> io::Result<ExitStatus> {
    let mut signals = Signals::new(FORWARDED.iter().chain(&SURVIVED))?;
    let handle = signals.handle();
    let pid = Pid::from_child(child);
    let forwarder = std::thread::spawn(move || {
        for signal in signals.forever().filter(|signal| FORWARDED.contains(signal)) {
            let _ = Signal::from_named_raw(signal).map(|signal| kill_process(pid, signal));
        }
    });
    let status = child.wait();
    handle.close();
    let _ = forwarder.join();
    status
}

/// Ends this process with the program's exit status or by the signal that ended it.
fn end_like(status: ExitStatus) -> ! {
    if let Some(signal) = status.signal() {
        let _ = signal_hook::low_level::emulate_default_handler(signal);
    }
    std::process::exit(status.code().unwrap_or(1))
}

fn afterwards(
    arguments: &Trace,
    trace: &Path,
    exports: &[(Format, PathBuf)],
    began: SystemTime,
) -> Result<(), Failure> {
    let children = traces_of_children(trace, began);
    if !trace.exists() && children.is_empty() {
        return Err(Failure::new(format!(
            "{}: no trace was written: the program ran no Ruby or Python that could load offlock",
            trace.display()
        )));
    }
    if trace.exists() {
        let (recording, timeline) = files::read(trace)?;
        if !arguments.no_summary {
            eprint!("\n{}", Summary::of(&recording, &timeline).to_text());
        }
        eprintln!();
        show::say_where(trace);
        for (format, output) in exports {
            files::write(output, |out| format.write(&recording, &timeline, out))?;
            show::say_where(output);
        }
    }
    children.iter().for_each(|path| show::say_where(path));
    Ok(())
}

/// The files beside the trace that bear its name and a process id and are as new as this run.
fn traces_of_children(trace: &Path, began: SystemTime) -> Vec<PathBuf> {
    let folder = trace.parent().unwrap_or(Path::new("."));
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let is_new = |entry: &std::fs::DirEntry| {
        entry.metadata().and_then(|m| m.modified()).is_ok_and(|time| time >= began)
    };
    let mut files: Vec<PathBuf> = entries.filter(is_new).map(|entry| entry.path()).collect();
    files.retain(|path| is_child_of(trace, path));
    files.sort();
    files
}

fn is_child_of(trace: &Path, path: &Path) -> bool {
    let pid = path.file_stem().and_then(|stem| Path::new(stem).extension()).and_then(OsStr::to_str);
    let pid = pid.and_then(|pid| pid.parse().ok());
    pid.is_some_and(|pid| offlock_core::trace::path_of(trace, pid) == path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_written_at_once_is_of_this_run() {
        let folder = std::env::temp_dir().join(format!("offlock-at-once-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("created");
        let trace = folder.join("trace.offlock");
        let child = offlock_core::trace::path_of(&trace, 7);
        for _ in 0..100 {
            let began = make_room(&trace).expect("there is room");
            std::fs::write(&child, []).expect("written");
            assert_eq!(traces_of_children(&trace, began), [child.as_path()]);
        }
        std::fs::remove_dir_all(&folder).expect("removed");
    }
}
