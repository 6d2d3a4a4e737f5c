//! The processes that publish themselves, as the user names and sees them.

use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use offlock_core::trace::{printable_line, published};

use crate::failure::Failure;

/// What a user does so that a process can be found here.
const HOW_TO_PUBLISH: &str = "Start it with `offlock run -- PROGRAM`, or with OFFLOCK_LIVE=1 if it loads offlock. \
                              CPython 3.14 and newer need neither: `offlock attach PID`";

/// The process that publishes itself, if it is only one.
pub(crate) fn the_only_one() -> Result<u32, Failure> {
    match published().as_slice() {
        [] => Err(there_is_none()),
        [pid] => Ok(*pid),
        several => {
            let pids: Vec<_> = several.iter().map(|pid| format!("  {pid} {}", command_of(*pid))).collect();
            Err(Failure::new(format!("which process? These can be recorded:\n{}", pids.join("\n"))))
        }
    }
}

/// Says that no process publishes itself.
pub(crate) fn there_is_none() -> Failure {
    Failure::new(format!("no process can be recorded. {HOW_TO_PUBLISH}"))
}

/// The command line of a process, without the folder of the program, as far as the system tells it.
pub(crate) fn command_of(pid: u32) -> String {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let line = String::from_utf8_lossy(&line).replace('\0', " ");
    let (program, arguments) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
    let program = program.rsplit('/').next().unwrap_or_default();
    printable_line(format!("{program} {arguments}").trim())
}

/// Says why a process cannot be connected to.
pub(crate) fn cannot_connect(pid: u32, error: &io::Error) -> Failure {
    Failure::new(format!("process {pid}: {}", why_not(pid, error)))
}

/// Why this user cannot `act` on a process, if the system tells: there is none, or it is another user's.
pub(crate) fn out_of_reach(pid: u32, act: &str) -> Option<String> {
    let owner = |process: &str| Some(std::fs::metadata(Path::new("/proc").join(process)).ok()?.uid());
    match (owner("self")?, owner(&pid.to_string())) {
        (_, None) => Some("there is no such process".into()),
        (own, Some(other)) if own != other && own != 0 => {
            Some(format!("it belongs to the user {other}: {act} as that user, or as root"))
        }
        _ => None,
    }
}

/// Why a process cannot be connected to.
pub(crate) fn why_not(pid: u32, error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => out_of_reach(pid, "ask").unwrap_or_else(|| {
            format!("no process of this user and number can be recorded. {HOW_TO_PUBLISH}")
        }),
        ErrorKind::TimedOut | ErrorKind::WouldBlock => "the process does not answer: is it stopped?".into(),
        ErrorKind::UnexpectedEof => "the process is being recorded by as many commands as it serves".into(),
        _ => error.to_string(),
    }
}
