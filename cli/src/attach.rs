//! `offlock attach`: makes a process publish itself that was not started for it, then takes a trace from it.
//!
//! CPython 3.14 and newer execute a script that another process has left them (PEP 768). Leaving it takes an
//! interpreter of the same version: the process's own executable runs `request.py` of the Python package.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::arguments::Attach;
use crate::failure::Failure;
use crate::language::find;
use crate::published::out_of_reach;
use crate::record;

pub(crate) fn run(arguments: &Attach) -> Result<(), Failure> {
    let pid = arguments.pid;
    let publish = || {
        let published = publish(pid).map(|()| pid);
        published.map_err(|problem| Failure::new(format!("process {pid}: {problem}")))
    };
    record::take(publish, &arguments.recording)
}

/// Makes the process publish itself; the error says why that is not possible.
fn publish(pid: u32) -> Result<(), String> {
    let script = request_script()?;
    check_that_it_can_be_reached(pid)?;
    let interpreter = interpreter_of(pid)?;
    let done = Command::new(&interpreter).args(["-I", "-S"]).arg(script).arg(pid.to_string()).output();
    let done = done.map_err(|error| format!("{}: {error}", interpreter.display()))?;
    if done.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&done.stderr);
    let message = message.trim().lines().last().unwrap_or("it could not be asked");
    Err(message.to_owned())
}

/// The script that asks the process, beside the folder that the package's entry point names.
fn request_script() -> Result<PathBuf, String> {
    let folder = std::env::var_os("OFFLOCK_PYTHONPATH").map(PathBuf::from);
    let script = folder.and_then(|folder| Some(folder.parent()?.join("_attach/request.py")));
    let script = script.filter(|script| script.is_file());
    script
        .ok_or_else(|| "attach needs the `offlock` command of the Python package: pip install offlock".into())
}

/// The process has to find the script, and the command the process's socket.
fn check_that_it_can_be_reached(pid: u32) -> Result<(), String> {
    let (own, process) = (Path::new("/proc/self"), PathBuf::from(format!("/proc/{pid}")));
    if !own.is_dir() {
        return Err("attach needs Linux".into());
    }
    if let Some(problem) = out_of_reach(pid, "attach") {
        return Err(problem);
    }
    let files = |process: &Path| ["ns/mnt", "root"].map(|link| fs::read_link(process.join(link)).ok());
    if files(own) != files(&process) {
        return Err(format!(
            "it sees other files (in a container, or with a /tmp of its own): run the command where it runs, for \
             example by `nsenter --target {pid} --mount`"
        ));
    }
    Ok(())
}

/// An interpreter of the version that the process runs: its own executable or, where that has been replaced or has another
/// name, the one that is found by its version.
fn interpreter_of(pid: u32) -> Result<PathBuf, String> {
    let executable = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
    let name = executable.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let version = version_in(&name).or_else(|| version_in(&maps));
    match version {
        Some((3, 14..)) => {}
        Some((major, minor)) => {
            return Err(format!(
                "it runs CPython {major}.{minor}, and attach needs CPython 3.14 or newer: start the program with `offlock \
                 run -- PROGRAM` instead"
            ));
        }
        None if name.starts_with("python") => {}
        None => {
            return Err(
                "it is not a process of CPython; programs of others can be recorded if they were started with `offlock \
                 run -- PROGRAM`"
                    .into(),
            );
        }
    }
    if name.starts_with("python") && executable.is_file() {
        return Ok(executable);
    }
    let (major, minor) = version.unwrap_or_default();
    let free_threaded = if maps.contains(&format!("python{major}.{minor}t")) { "t" } else { "" };
    let wanted = OsString::from(format!("python{major}.{minor}{free_threaded}"));
    find(&wanted).ok_or_else(|| format!("asking it takes a {}, which is not on PATH", wanted.display()))
}

/// The version in the name of an interpreter or of its library, such as `python3.14` and `libpython3.14.so.1.0`.
fn version_in(names: &str) -> Option<(u32, u32)> {
    let number = |text: &str| text.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok();
    names.match_indices("python").find_map(|(at, name)| {
        let (major, rest) = names[at + name.len()..].split_once('.')?;
        Some((major.parse().ok()?, number(rest)?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_names_of_files() {
        for (names, version) in [
            ("python3.14", Some((3, 14))),
            ("python3.14t (deleted)", Some((3, 14))),
            ("python2.7", Some((2, 7))),
            ("7f00-7f10 r--p 0 fe:00 1 /usr/lib/libpython3.15.so.1.0\n", Some((3, 15))),
            ("/usr/lib/python3/dist-packages/a.so\n/opt/lib/libpython3.12.so\n", Some((3, 12))),
            ("python", None),
            ("python3", None),
            ("ruby3.4", None),
            ("/usr/lib/python-is.so", None),
        ] {
            assert_eq!(version_in(names), version, "{names}");
        }
    }

    #[test]
    fn what_cannot_be_attached_to_is_named() {
        let own = std::process::id();
        assert!(interpreter_of(own).is_err_and(|problem| problem.contains("not a process of CPython")));
        assert_eq!(check_that_it_can_be_reached(own), Ok(()));
        assert_eq!(check_that_it_can_be_reached(u32::MAX), Err("there is no such process".into()));
    }
}
