//! How `offlock trace` tells a program to trace itself, and its children.
//!
//! The variable `OFFLOCK_TRACE` holds the path of the trace file. The first process that can create
//! that file writes to it. Every other process, such as a child or a forked worker, finds the file
//! taken and writes to one beside it, with its process id before the extension: `app.offlock`,
//! `app.4711.offlock`. A process that has replaced itself (exec) takes its own file again.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use super::recording::Recording;
use super::session::{Options, Trace};
use crate::Task;

/// The environment variable with the path of the trace file.
pub const TRACE_VARIABLE: &str = "OFFLOCK_TRACE";

impl Trace {
    /// Starts the trace that the environment asks for, if it asks for one, and says where it goes.
    /// Call it when the interpreter starts, and again in the child of a fork.
    pub fn from_environment(options: &Options) -> Option<io::Result<(Self, PathBuf)>> {
        let asked = PathBuf::from(std::env::var_os(TRACE_VARIABLE).filter(|path| !path.is_empty())?);
        Some(claim(&asked).and_then(|(file, path)| Ok((Self::start(Box::new(file), options)?, path))))
    }
}

/// The file of this process: the one asked for, unless another process has it.
fn claim(asked: &Path) -> io::Result<(File, PathBuf)> {
    match File::create_new(asked) {
        Ok(file) => Ok((file, asked.to_owned())),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let path = if is_ours(asked) { asked.to_owned() } else { path_of(asked, std::process::id()) };
            Ok((File::create(&path)?, path))
        }
        Err(error) => Err(error),
    }
}

/// Whether the file was written by this process, before it replaced itself.
fn is_ours(path: &Path) -> bool {
    let Ok(bytes) = std::fs::read(path) else { return false };
    let recording = Recording::read(&bytes, &Task::new());
    recording.is_ok_and(|recording| recording.about("pid") == Some(std::process::id().to_string().as_str()))
}

/// The trace file of another process than the first: the id goes before the extension.
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
    fn the_process_id_goes_before_the_extension() {
        assert_eq!(path_of(Path::new("/tmp/app.offlock"), 7), Path::new("/tmp/app.7.offlock"));
        assert_eq!(path_of(Path::new("app"), 7), Path::new("app.7"));
    }

    #[test]
    fn the_first_process_gets_the_file_and_an_exec_gets_it_again() {
        let folder = std::env::temp_dir().join(format!("offlock-claim-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("writable");
        let asked = folder.join("app.offlock");
        let pid = std::process::id();
        assert_eq!(claim(&asked).expect("writable").1, asked);
        assert_eq!(
            claim(&asked).expect("writable").1,
            path_of(&asked, pid),
            "taken by somebody who has not written yet"
        );
        for (writer, gets) in [(pid, asked.clone()), (pid + 1, path_of(&asked, pid))] {
            let about = vec![("pid".to_owned(), writer.to_string())];
            std::fs::write(&asked, Recording { about, ..Recording::default() }.to_bytes()).expect("writable");
            assert_eq!(claim(&asked).expect("writable").1, gets);
        }
        std::fs::remove_dir_all(&folder).expect("ours");
    }
}
