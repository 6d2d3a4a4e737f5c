//! `offlock trace`: runs a program so that it traces itself.
//!
//! Environment variables tell the program to do so:
//!
//! - `OFFLOCK_TRACE` holds the absolute path of the trace file;
//!   [`Trace::from_environment`](offlock_core::trace::Trace::from_environment) reads it and decides which
//!   process writes to which file.
//! - `OFFLOCK_TRACE_UNTIL` holds the time at which all recordings end by themselves (`--for`).
//! - `OFFLOCK_TRACE_KEEP` holds how much of the past to keep (`--keep`), `OFFLOCK_TRACE_DUMP_WAIT` and
//!   `OFFLOCK_TRACE_DUMP_HOLD` when to write that before the end.
//! - `OFFLOCK_SIGNAL` names the signal at which the program starts and stops recording (`--signal`).
//!
//! With `OFFLOCK_LOCK=off` in its own environment, `offlock trace` says so and runs the program without any of these.
//!
//! How the program's interpreters come to load offlock is in [`program`](crate::program).

use std::fs;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, SystemTime};

use offlock_core::Task;
use offlock_core::trace::files::{check_named, create_new, free_name_beside};
use offlock_core::trace::{
    ARGUMENTS_VARIABLE, DUMP_HOLD_VARIABLE, DUMP_WAIT_VARIABLE, Flaw, Format, KEEP_VARIABLE, NotATrace,
    Process, Recording, Run, STACKS_VARIABLE, TRACE_VARIABLE, Timeline, UNTIL_VARIABLE, is_path_of_child,
    note_signal, switched_off, until, write_report,
};

use crate::arguments::Trace;
use crate::failure::Failure;
use crate::language::wrong_package;
use crate::program::{self, cannot_run};
use crate::show::summed_up;
use crate::signals::Running;
use crate::{files, look};

/// The default path of the trace.
const DEFAULT_OUTPUT: &str = "trace.offlock";

/// The files to write.
struct Outputs {
    trace: PathBuf,
    /// The exports to write at the end, each with its path; without one, beside the trace.
    exports: Vec<(Format, Option<PathBuf>)>,
}

pub(crate) fn run(arguments: &Trace) -> Result<(), Failure> {
    if let Some(reason) = switched_off() {
        eprintln!("offlock: {reason}: the program runs without a trace");
        return Err(cannot_run(&arguments.program[0], &program::command(&arguments.program).exec()));
    }
    let outputs = outputs(arguments)?;
    let trace = &outputs.trace;
    let began =
        make_room(trace, arguments.output.is_some()).map_err(|error| Failure::with_file(trace, &error))?;
    let mut command = command(arguments, trace);
    if let Some(hint) = wrong_package(&arguments.program[0]) {
        eprintln!("offlock: {hint}");
    }
    if arguments.no_summary && outputs.exports.is_empty() {
        return Err(cannot_run(&arguments.program[0], &command.exec()));
    }
    let cannot_run = |error| cannot_run(&arguments.program[0], &error);
    let running = Running::start(&mut command, arguments.signal).map_err(cannot_run)?;
    let pid = running.child.id();
    let show = &|ended| {
        if let Err(failure) = afterwards(arguments, &outputs, began, ended) {
            eprintln!("offlock: {}", failure.message);
        }
    };
    let status = std::thread::scope(|scope| {
        let (program_ended, has_ended) = mpsc::channel::<()>();
        let shower = scope.spawn(move || show_in_time(arguments.period, &has_ended, || show(None)));
        let status = running.wait().map_err(cannot_run)?;
        drop(program_ended);
        let is_shown = shower.join().unwrap_or(false);
        Ok::<_, Failure>((status, is_shown))
    });
    let (status, is_shown) = status?;
    if !is_shown {
        show(Some((pid, status)));
    }
    end_like(status)
}

/// Shows the results when recording is over, while the program goes on; returns whether it did. Not if the program
/// ends before.
fn show_in_time(period: Option<Duration>, has_ended: &mpsc::Receiver<()>, show: impl Fn()) -> bool {
    let Some(period) = period else { return false };
    let is_over = has_ended.recv_timeout(period + GRACE) == Err(RecvTimeoutError::Timeout);
    if is_over {
        eprintln!("\nofflock: recording is over after {period:?}, the program goes on");
        show();
    }
    is_over
}

/// The time that a program is given to complete its traces.
const GRACE: Duration = Duration::from_millis(200);

fn outputs(arguments: &Trace) -> Result<Outputs, Failure> {
    let output = arguments.output.as_deref().unwrap_or(Path::new(DEFAULT_OUTPUT));
    let output = std::path::absolute(output).map_err(|error| Failure::with_file(output, &error))?;
    let mut exports: Vec<(Format, Option<PathBuf>)> =
        Format::of_path(&output).map(|format| (format, Some(output.clone()))).into_iter().collect();
    let trace = if exports.is_empty() {
        output
    } else {
        check_named(&output).map_err(|error| Failure::with_file(&output, &error))?;
        free_name_beside(&output, "offlock")
    };
    if arguments.report {
        exports.push((Format::Html, None));
    }
    Ok(Outputs { trace, exports })
}

/// Removes the trace of an earlier run, which could be mistaken for one of this run. Returns the modification
/// time of a file written now: the clock that stamps files is some milliseconds behind [`SystemTime::now`].
fn make_room(trace: &Path, is_named: bool) -> io::Result<SystemTime> {
    match fs::symlink_metadata(trace) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
        Ok(found) if !found.is_file() => {
            return Err(io::Error::other("it is not a regular file, which offlock does not replace"));
        }
        Ok(_) if !is_named && !is_trace(trace) => {
            return Err(io::Error::other("it exists and is not a trace: name a file with --output"));
        }
        Ok(_) => fs::remove_file(trace)?,
    }
    let now = create_new(trace)?.metadata()?.modified()?;
    fs::remove_file(trace).map(|()| now)
}

/// Whether a file is a trace, of any version, or the beginning of one.
fn is_trace(path: &Path) -> bool {
    let is_foreign =
        |bytes: &[u8]| matches!(Recording::read(bytes, &Task::new()), Err(NotATrace::Foreign(_)));
    offlock_core::trace::files::read(path).is_ok_and(|bytes| !is_foreign(&bytes))
}

fn command(arguments: &Trace, trace: &Path) -> Command {
    let mut command = program::command(&arguments.program);
    command.env(TRACE_VARIABLE, trace);
    if let Some(period) = arguments.period {
        command.env(UNTIL_VARIABLE, until(period));
    }
    if let Some(signal) = arguments.signal {
        command.env("OFFLOCK_SIGNAL", signal.name());
    }
    let flight = [
        (KEEP_VARIABLE, arguments.keep),
        (DUMP_WAIT_VARIABLE, arguments.dump_on_wait),
        (DUMP_HOLD_VARIABLE, arguments.dump_on_hold),
    ];
    for (variable, time) in flight.into_iter().filter_map(|(variable, time)| Some((variable, time?))) {
        command.env(variable, format!("{}us", time.as_micros()));
    }
    if arguments.keep_arguments {
        command.env(ARGUMENTS_VARIABLE, "1");
    }
    if let Some(wait) = &arguments.stacks {
        command.env(STACKS_VARIABLE, wait);
    }
    program::load_offlock(&mut command);
    command
}

/// Ends this process with the program's exit status, or by the signal that ended the program.
fn end_like(status: ExitStatus) -> ! {
    if let Some(signal) = status.signal() {
        let _ = signal_hook::low_level::emulate_default_handler(signal);
    }
    std::process::exit(status.code().unwrap_or(1))
}

fn afterwards(
    arguments: &Trace,
    outputs: &Outputs,
    began: SystemTime,
    ended: Option<(u32, ExitStatus)>,
) -> Result<(), Failure> {
    let trace = &outputs.trace;
    let traces = traces_of_run(trace, began);
    if traces.is_empty() {
        let problem = match arguments.signal {
            Some(signal) => format!(
                "no trace was written: no process of the program got the signal {}, or the program uses it itself",
                signal.name()
            ),
            None => "no trace was written: the program ran no Ruby or Python that could load offlock".into(),
        };
        return Err(Failure::with_file(trace, &problem));
    }
    let (claims, traces): (Vec<_>, Vec<_>) = traces.into_iter().partition(|path| is_claim(path));
    for path in claims {
        eprintln!("offlock: {}", Failure::with_file(&path, &files::NOT_WRITTEN).message);
    }
    let run = run_of(&traces, trace, ended);
    if !arguments.no_summary {
        eprint!("\n{}", run.to_text_as(look::of(&io::stderr())));
    }
    eprintln!();
    traces.iter().for_each(|path| files::say_where(path));
    export(&run, trace, &outputs.exports)
}

/// Whether a process has claimed the file, but written no recording to it.
fn is_claim(path: &Path) -> bool {
    const LONGEST: u64 = 4096;
    fs::metadata(path).is_ok_and(|metadata| metadata.len() <= LONGEST)
        && match offlock_core::trace::files::read(path).map(|bytes| Recording::read(&bytes, &Task::new())) {
            Ok(Ok(recording)) => recording.is_claim(),
            Ok(Err(problem)) => problem == NotATrace::Empty,
            Err(_) => false,
        }
}

/// The processes of the run. A trace that cannot be read is reported and left out.
fn run_of(traces: &[PathBuf], first: &Path, ended: Option<(u32, ExitStatus)>) -> Run {
    let process = |path: &PathBuf| {
        let mut recording = files::load(path)?;
        if let Some(ended) = ended.filter(|_| path == first) {
            note_how_it_ended(&mut recording, path, ended);
        }
        let timeline = files::timeline(path, &recording);
        Ok(Process { file: path.display().to_string(), summary: summed_up(&recording, &timeline) })
    };
    let report = |failure: Failure| eprintln!("offlock: {}", failure.message);
    Run::new(traces.iter().filter_map(|path| process(path).map_err(report).ok()).collect())
}

/// Writes the exports: a page of all processes, and in other tools' formats the one that lost most.
fn export(run: &Run, trace: &Path, exports: &[(Format, Option<PathBuf>)]) -> Result<(), Failure> {
    let has_page = exports.iter().any(|(format, _)| *format == Format::Html);
    let count = if exports.is_empty() {
        0
    } else if has_page {
        usize::MAX
    } else {
        1
    };
    let read = |process: &Process| files::load(Path::new(&process.file));
    let recordings: Vec<Recording> =
        run.processes().iter().take(count).map(read).collect::<Result<_, _>>()?;
    let timelines: Vec<Timeline> = recordings.iter().map(Timeline::of).collect();
    let processes: Vec<_> = recordings.iter().zip(&timelines).collect();
    let Some((recording, timeline)) = processes.first() else { return Ok(()) };
    for (format, output) in exports {
        let content = |out: &mut dyn io::Write| match format {
            Format::Html => write_report(&processes, out),
            _ => format.write(recording, timeline, out),
        };
        files::write_or_beside(output.as_deref(), trace, format.extension(), content)?;
    }
    Ok(())
}

/// Notes the signal that ended the program, which the program itself cannot do. Not if another process wrote
/// the trace, because that one may still run.
fn note_how_it_ended(recording: &mut Recording, trace: &Path, (pid, status): (u32, ExitStatus)) {
    let is_its_own = recording.about("pid") == Some(pid.to_string().as_str());
    let is_open = recording.damage.is_some_and(|damage| damage.flaw == Flaw::NoEnd);
    if let Some(signal) = status.signal().filter(|_| is_its_own && is_open) {
        let name = signal_hook::low_level::signal_name(signal).unwrap_or("a signal");
        if note_signal(trace, name).is_ok() {
            recording.note_signal(name);
        }
    }
}

/// The trace, if it exists, and the files beside it that have its name and a process id and are as new as this
/// run.
fn traces_of_run(trace: &Path, began: SystemTime) -> Vec<PathBuf> {
    let own = Some(trace.to_owned()).filter(|own| own.exists());
    own.into_iter().chain(traces_of_children(trace, began)).collect()
}

fn traces_of_children(trace: &Path, began: SystemTime) -> Vec<PathBuf> {
    let folder = trace.parent().unwrap_or(Path::new("."));
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_new = |entry: &fs::DirEntry| {
        let metadata = entry.metadata().ok().filter(fs::Metadata::is_file);
        metadata.and_then(|metadata| metadata.modified().ok()).is_some_and(|time| time >= began)
    };
    let mut files: Vec<PathBuf> = entries.filter(is_new).map(|entry| entry.path()).collect();
    files.retain(|path| is_path_of_child(trace, path));
    files.sort();
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_written_at_once_is_of_this_run() {
        let folder = std::env::temp_dir().join(format!("offlock-at-once-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("created");
        let trace = folder.join("trace.offlock");
        let child = offlock_core::trace::path_of(&trace, 7);
        for _ in 0..100 {
            let began = make_room(&trace, true).expect("there is room");
            fs::write(&child, []).expect("written");
            assert_eq!(traces_of_children(&trace, began), [child.as_path()]);
        }
        fs::remove_dir_all(&folder).expect("removed");
    }
}
