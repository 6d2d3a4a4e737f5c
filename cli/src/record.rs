//! `offlock record`: takes a trace from a process that publishes itself.

use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use offlock_core::trace::files::{check_named, write_beside, write_named};
use offlock_core::trace::{Connection, Format, stacks_from, write_report};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::arguments::{self, Record, Recording, Window};
use crate::failure::Failure;
use crate::published::{cannot_connect, the_only_one};
use crate::{files, show};

/// The default path of the trace.
const DEFAULT_OUTPUT: &str = "record.offlock";

pub(crate) fn run(arguments: &Record) -> Result<(), Failure> {
    take(|| arguments.pid.map_or_else(the_only_one, Ok), &arguments.recording)
}

/// Takes a trace from the process that `pid` returns.
pub(crate) fn take(pid: impl FnOnce() -> Result<u32, Failure>, arguments: &Recording) -> Result<(), Failure> {
    let named = arguments.output.as_deref();
    if let Some(path) = named {
        check_named(path).map_err(|error| Failure::with_file(path, &error))?;
        if Format::of_path(path).is_some() {
            let problem =
                "a trace is recorded; `offlock export` then writes it in the format of another tool";
            return Err(Failure::with_file(path, &problem));
        }
    }
    let pid = pid()?;
    let stacks = arguments.stacks.as_deref().unwrap_or("1ms");
    let stacks = stacks_from(stacks).map_err(Failure::new)?;
    let connection = Connection::open(pid, stacks).map_err(|error| cannot_connect(pid, &error))?;
    eprintln!("offlock: recording process {pid} for {:?}; Ctrl-C ends it earlier", arguments.period);
    let trace = receive(connection, arguments.period, named)?;
    files::say_where(&trace);
    if arguments.report {
        report(&trace)?;
    }
    if arguments.no_summary {
        return Ok(());
    }
    show::summary(&arguments::Summary { window: Window::default(), files: vec![trace], json: false })
}

/// Writes the trace of a process to the file that the user has named, or to one with a name that is free, until the
/// period is over, the process ends, or the user interrupts.
fn receive(connection: Connection, period: Duration, named: Option<&Path>) -> Result<PathBuf, Failure> {
    let path = named.unwrap_or(Path::new(DEFAULT_OUTPUT));
    let content = |out: &mut dyn Write| copy(connection, period, out);
    let saved = match named {
        Some(path) => write_named(path, content).map(|()| path.to_owned()),
        None => write_beside(path, "offlock", content),
    };
    saved.map_err(|error| Failure::with_file(path, &error))
}

fn copy(mut connection: Connection, period: Duration, out: &mut dyn Write) -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let (interrupts, handle) = (signals.handle(), connection.handle()?);
    let (ended, has_ended) = mpsc::channel::<()>();
    let copied = std::thread::scope(|scope| {
        let interrupted = ended.clone();
        scope.spawn(move || signals.forever().next().map(|_| interrupted.send(())));
        scope.spawn(move || {
            let _ = has_ended.recv_timeout(period);
            let _ = handle.finish();
        });
        let copied = io::copy(&mut connection, out);
        let _ = ended.send(());
        interrupts.close();
        copied
    });
    match copied? {
        0 => Err(io::Error::new(ErrorKind::UnexpectedEof, "the process ended before it was recorded")),
        _ => Ok(()),
    }
}

fn report(trace: &Path) -> Result<(), Failure> {
    let (recording, timeline) = files::read(trace, &Window::default())?;
    files::write_or_beside(None, trace, "html", |out| write_report(&[(&recording, &timeline)], out)).map(drop)
}
