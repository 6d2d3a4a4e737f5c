//! How `offlock trace` tells a program to trace itself and its children.
//!
//! The variable `OFFLOCK_TRACE` holds the path of the trace file. The first process that can create that file
//! writes to it. Every other process, such as a child or a forked worker, finds that the file exists and
//! writes to one beside it, with its process id before the extension: `app.offlock`, `app.4711.offlock`; if
//! that name is taken, `app.4711-2.offlock` and so on. A process that has replaced itself (exec) takes its
//! own file again, but one that starts several traces, one after the other, gets a file for each.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::analyze::recording::Recording;
use super::files;
use super::flight_recorder::{FlightOptions, FlightRecorder};
use super::record::session::{Options, Trace};
use crate::{Task, os};

/// The environment variable that switches tracing off; see [`switched_off`].
pub const LOCK_VARIABLE: &str = "OFFLOCK_LOCK";

/// The values of [`LOCK_VARIABLE`] that switch tracing off, in capitals or not. Any other value leaves it on: a typing
/// error must not silently lose a trace.
const OFF: [&str; 4] = ["off", "0", "no", "false"];

/// The reason why this process traces and measures nothing, if the environment says that it must not; `None` if it
/// may.
///
/// Everything that starts something asks, each time: traces, flight recorders and live numbers then hook nothing,
/// start no thread and write no file. What runs already goes on.
pub fn switched_off() -> Option<String> {
    let value = std::env::var(LOCK_VARIABLE).ok()?;
    is_off(&value).then(|| format!("tracing is switched off by {LOCK_VARIABLE}={value}"))
}

fn is_off(value: &str) -> bool {
    OFF.iter().any(|off| value.eq_ignore_ascii_case(off))
}

/// The environment variable that makes a program publish itself for `offlock record`, unless it is empty or says
/// [`off`](OFF).
pub const LIVE_VARIABLE: &str = "OFFLOCK_LIVE";

/// Whether the environment asks this process to publish itself.
pub fn is_live_requested() -> bool {
    std::env::var(LIVE_VARIABLE).is_ok_and(|value| !value.is_empty() && !is_off(&value))
}

/// If this environment variable is not empty, traces include the program's arguments.
pub const ARGUMENTS_VARIABLE: &str = "OFFLOCK_TRACE_ARGUMENTS";

/// The environment variable with the path of the trace file.
pub const TRACE_VARIABLE: &str = "OFFLOCK_TRACE";

/// The environment variable with the wait from which on stacks are recorded; see [`stacks_from`].
pub const STACKS_VARIABLE: &str = "OFFLOCK_TRACE_STACKS";

/// The wait that a text like `1ms`, `0.5s` or `200us` names, for [`Options::stacks`]; `None` for `off`.
///
/// # Errors
///
/// A sentence that says what is wrong with the text.
pub fn stacks_from(text: &str) -> Result<Option<Duration>, String> {
    match text {
        "off" => Ok(None),
        _ => duration(text).map(Some).map_err(|wrong| format!("{wrong}, nor `off`")),
    }
}

/// The duration that a text like `1ms`, `0.5s` or `200us` names.
fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let seconds = match unit {
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        _ => return Err(format!("{text:?} is not a duration such as 1ms, 0.5s or 200us")),
    };
    let time = number.parse().ok().and_then(|number: f64| Duration::try_from_secs_f64(number * seconds).ok());
    time.ok_or_else(|| format!("{text:?} does not begin with a number that is a possible duration"))
}

/// What the environment says about stacks, for a feed that can record them; otherwise `asked`.
fn stacks(asked: Option<Duration>) -> io::Result<Option<Duration>> {
    match std::env::var(STACKS_VARIABLE) {
        Ok(text) if asked.is_some() => {
            stacks_from(&text).map_err(|wrong| io::Error::other(format!("{STACKS_VARIABLE}: {wrong}")))
        }
        _ => Ok(asked),
    }
}

/// The environment variable with the time to keep, such as `30s`: the program keeps the last seconds and writes
/// them to its trace file when it ends.
pub const KEEP_VARIABLE: &str = "OFFLOCK_TRACE_KEEP";

/// The environment variable with the wait for the lock after which a program that keeps the last seconds also
/// writes them at once.
pub const DUMP_WAIT_VARIABLE: &str = "OFFLOCK_TRACE_DUMP_WAIT";

/// The environment variable with the hold, while another thread waits, after which it does.
pub const DUMP_HOLD_VARIABLE: &str = "OFFLOCK_TRACE_DUMP_HOLD";

/// The duration that an environment variable names, if it is set.
fn duration_in(variable: &str) -> io::Result<Option<Duration>> {
    let Ok(text) = std::env::var(variable) else { return Ok(None) };
    duration(&text).map(Some).map_err(|wrong| io::Error::other(format!("{variable}: {wrong}")))
}

/// Starts the flight recorder that the environment asks for, if any, and returns it with the path of the trace that
/// is to be written at the end.
pub(super) fn flight_from_environment(options: &Options) -> Option<io::Result<(FlightRecorder, PathBuf)>> {
    let asked = asked()?;
    let keep = duration_in(KEEP_VARIABLE).transpose()?;
    Some(keep.and_then(|keep| {
        let options = Options { stacks: stacks(options.stacks)?, ..options.clone() };
        let (wait, hold) = (duration_in(DUMP_WAIT_VARIABLE)?, duration_in(DUMP_HOLD_VARIABLE)?);
        let (mut file, path) = claim(&asked)?;
        // If the disk is full now, then it may have room at the end.
        let _ = file.write_all(&Recording::claim(std::process::id()));
        let flight = FlightOptions { keep, wait, hold, path: Some(path.clone()), ..FlightOptions::default() };
        Ok((FlightRecorder::start(&options, &flight)?, path))
    }))
}

/// The environment variable with the time at which all recordings of the run end; see [`until`].
pub const UNTIL_VARIABLE: &str = "OFFLOCK_TRACE_UNTIL";

/// The value of [`UNTIL_VARIABLE`] for recordings that end after this time from now.
pub fn until(duration: Duration) -> String {
    let nanoseconds = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    os::monotonic_nanoseconds().saturating_add(nanoseconds).to_string()
}

fn deadline() -> Option<u64> {
    std::env::var(UNTIL_VARIABLE).ok()?.parse().ok()
}

/// The path of the trace that the environment asks for; `None` if it also switches tracing off.
fn asked() -> Option<PathBuf> {
    let path = std::env::var_os(TRACE_VARIABLE).filter(|path| !path.is_empty())?;
    switched_off().is_none().then(|| path.into())
}

/// Whether the environment asks for a trace of this process: it names a file, tracing is not switched off, and the
/// time to record is not over.
pub fn is_requested() -> bool {
    asked().is_some() && deadline().is_none_or(|deadline| os::monotonic_nanoseconds() < deadline)
}

impl Trace {
    /// Starts the trace that the environment asks for, if any, and returns it with its path. Call it when the
    /// interpreter starts, and again in the child of a fork.
    pub fn from_environment(options: &Options) -> Option<io::Result<(Self, PathBuf)>> {
        let asked = asked()?;
        Some(stacks(options.stacks).and_then(|stacks| {
            let (file, path) = claim(&asked)?;
            let options = Options { stacks, ..options.clone() };
            Ok((Self::start_until(Box::new(file), &options, deadline())?, path))
        }))
    }
}

/// The process that has claimed a file last, in this program or in the one that was forked from.
static CLAIMANT: AtomicU32 = AtomicU32::new(0);

/// Creates the file of this process: the one asked for, unless it belongs to another process or to an earlier
/// trace of this program.
fn claim(asked: &Path) -> io::Result<(File, PathBuf)> {
    let pid = std::process::id();
    let is_first = CLAIMANT.swap(pid, Ordering::Relaxed) != pid;
    claim_for(pid, is_first, asked)
}

fn claim_for(pid: u32, is_first: bool, asked: &Path) -> io::Result<(File, PathBuf)> {
    let own = files::numbered(&path_of(asked, pid));
    for path in std::iter::once(asked.to_owned()).chain(own) {
        match files::create_new(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            created => return created.map(|file| (file, path)),
        }
        if is_first && was_written_by(pid, &path) {
            return Ok((files::replace(&path)?, path));
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// The process id is within this many bytes from the beginning of a trace.
const BEGINNING: u64 = 1 << 16;

/// Whether this process wrote the file, before it replaced itself.
fn was_written_by(pid: u32, path: &Path) -> bool {
    let Ok(bytes) = files::read_own(path, BEGINNING) else { return false };
    let recording = Recording::read(&bytes, &Task::new());
    recording.is_ok_and(|recording| recording.about("pid") == Some(pid.to_string().as_str()))
}

/// Whether `path` is the trace of a process other than the first, whose trace is `asked`.
pub fn is_path_of_child(asked: &Path, path: &Path) -> bool {
    let numbers = path.file_stem().and_then(|stem| Path::new(stem).extension()).and_then(OsStr::to_str);
    let Some(pid) = numbers.and_then(|numbers| numbers.split('-').next()?.parse().ok()) else { return false };
    files::numbered(&path_of(asked, pid)).any(|name| name == path)
}

/// The path of the trace of a process other than the first: the process id goes before the extension.
pub fn path_of(asked: &Path, pid: u32) -> PathBuf {
    let mut name = OsString::from(asked.file_stem().unwrap_or_default());
    name.push(format!(".{pid}"));
    if let Some(extension) = asked.extension() {
        name.push(".");
        name.push(extension);
    }
    asked.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_says_off_switches_tracing_off() {
        for value in ["off", "OFF", "0", "no", "No", "false", "False"] {
            assert!(is_off(value), "{value}");
        }
        for value in ["", "on", "1", "yes", "true", "of", "off ", "none"] {
            assert!(!is_off(value), "{value:?}");
        }
    }

    #[test]
    fn waits_have_units() {
        for (text, microseconds) in [("1ms", 1_000), ("0.5s", 500_000), ("200us", 200), ("0ms", 0)] {
            assert_eq!(stacks_from(text), Ok(Some(Duration::from_micros(microseconds))), "{text}");
        }
        assert_eq!(stacks_from("off"), Ok(None));
        for text in ["", "1", "ms", "-1ms", "1 ms", "1.2.3ms", "never", "99999999999999999999s"] {
            assert!(stacks_from(text).unwrap_err().contains(&format!("{text:?}")), "{text}");
        }
    }

    #[test]
    fn the_process_id_goes_before_the_extension() {
        assert_eq!(path_of(Path::new("/tmp/app.offlock"), 7), Path::new("/tmp/app.7.offlock"));
        assert_eq!(path_of(Path::new("app"), 7), Path::new("app.7"));
    }

    #[test]
    fn a_childs_path_is_told_from_others() {
        let asked = Path::new("/tmp/app.offlock");
        for child in ["app.7.offlock", "app.7-2.offlock"] {
            assert!(is_path_of_child(asked, &asked.with_file_name(child)), "{child}");
        }
        for other in ["app.offlock", "app.x.offlock", "app.7-x.offlock", "other.7.offlock", "app.7.json"] {
            assert!(!is_path_of_child(asked, &asked.with_file_name(other)), "{other}");
        }
    }

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("offlock-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("writable");
        folder
    }

    #[test]
    fn the_first_process_gets_the_file_and_an_exec_gets_it_again() {
        let folder = folder("claim");
        let asked = folder.join("app.offlock");
        let pid = std::process::id();
        let own = path_of(&asked, pid);
        assert_eq!(claim_for(pid, true, &asked).expect("writable").1, asked);
        assert_eq!(
            claim_for(pid, true, &asked).expect("writable").1,
            own,
            "taken by somebody who has not written yet"
        );
        std::fs::remove_file(&own).expect("ours");
        for (writer, gets) in [(pid, asked.clone()), (pid + 1, own.clone())] {
            let about = vec![("pid".to_owned(), writer.to_string())];
            std::fs::write(&asked, Recording { about, ..Recording::default() }.to_bytes()).expect("writable");
            assert_eq!(claim_for(pid, true, &asked).expect("writable").1, gets);
        }
        for number in [2, 3] {
            let next = files::numbered(&own).nth(number - 1).expect("a name");
            assert_eq!(claim_for(pid, false, &asked).expect("writable").1, next, "an earlier trace stays");
        }
        std::fs::remove_dir_all(&folder).expect("ours");
    }

    #[test]
    #[cfg(unix)]
    fn a_planted_file_is_left_alone() {
        let folder = folder("planted");
        let (asked, victim) = (folder.join("app.offlock"), folder.join("victim"));
        let planted = path_of(&asked, std::process::id());
        let trace =
            Recording { about: vec![("pid".into(), std::process::id().to_string())], ..Recording::default() };
        std::fs::write(&asked, "of another process").expect("writable");
        std::fs::write(&victim, trace.to_bytes()).expect("writable");
        std::os::unix::fs::symlink(&victim, &planted).expect("writable");
        let (_, path) = claim_for(std::process::id(), true, &asked).expect("another name");
        assert_eq!(path, files::numbered(&planted).nth(1).expect("a second name"));
        assert_eq!(std::fs::read(&victim).expect("there"), trace.to_bytes());
        assert_eq!(std::fs::read_to_string(&asked).expect("there"), "of another process");
        std::fs::remove_dir_all(&folder).expect("ours");
    }
}
