//! Reading traces and writing results, with errors that name the file.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use offlock_core::trace::{Recording, Timeline, files};

use crate::arguments::Window;
use crate::failure::Failure;
use crate::progress;

/// Reads the part of a trace that is meant. If the trace is damaged, prints a warning and returns what is readable.
pub(crate) fn read(path: &Path, window: &Window) -> Result<(Recording, Timeline), Failure> {
    let recording = window.cut(path, load(path)?)?;
    let timeline = timeline(path, &recording);
    Ok((recording, timeline))
}

/// Of a file that a process has claimed for its last seconds.
pub(crate) const NOT_WRITTEN: &str =
    "the process was killed before it wrote its last seconds, could not write them, or still runs";

/// Reads a trace as far as it is readable.
pub(crate) fn load(path: &Path) -> Result<Recording, Failure> {
    let bytes = bytes(path).map_err(|error| Failure::with_file(path, &error))?;
    let reading = format!("reading {}", path.display());
    let recording =
        progress::during(&reading, Some(bytes.len() as u64), |task| Recording::read(&bytes, task));
    let mut recording = recording.map_err(|error| Failure::with_file(path, &error))?;
    if recording.is_claim() {
        return Err(Failure::with_file(path, &NOT_WRITTEN));
    }
    if recording.damage.is_some() && is_being_written(path, &recording) {
        recording.note_running();
    }
    Ok(recording)
}

/// Whether the process that wrote the trace has the file open. Known on systems that have `/proc`.
fn is_being_written(path: &Path, recording: &Recording) -> bool {
    let (Some(pid), Ok(path)) = (recording.about("pid"), path.canonicalize()) else { return false };
    let open = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    open.filter_map(|entry| std::fs::read_link(entry.path()).ok()).any(|target| target == path)
}

impl Window {
    fn cut(&self, path: &Path, mut recording: Recording) -> Result<Recording, Failure> {
        if !self.functions.is_empty() {
            let stacks = recording.code.stacks_with(&self.functions);
            if stacks.is_empty() {
                let problem = format!("no function has {} in its name", self.functions.join(" or "));
                return Err(Failure::with_file(path, &problem));
            }
            recording.looked_at = Some(stacks);
        }
        if self.from.is_none() && self.to.is_none() && self.threads.is_empty() {
            return Ok(recording);
        }
        let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let length = recording.end - recording.start;
        let (from, to) = (self.from.map_or(0, nanoseconds), self.to.map_or(u64::MAX, nanoseconds));
        if from >= length.min(to) {
            let length = Duration::from_nanos(length);
            let problem =
                format!("nothing is left between --from and --to: the recording lasts {length:.3?}");
            return Err(Failure::with_file(path, &problem));
        }
        let is_meant = |name: &str| self.threads.iter().any(|part| name.contains(part));
        let is_there = recording.threads.iter().any(|(id, thread)| is_meant(&thread.name_or(*id)));
        if !self.threads.is_empty() && !is_there {
            let problem = format!("no thread has {} in its name", self.threads.join(" or "));
            return Err(Failure::with_file(path, &problem));
        }
        Ok(recording.cut(from..to, |name| self.threads.is_empty() || is_meant(name)))
    }
}

/// The content of a file, or of standard input if the path is `-`.
fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    if path != Path::new("-") {
        return files::read(path);
    }
    let input = io::stdin().lock();
    if input.is_terminal() {
        return Err(io::Error::other("standard input is a terminal, not a trace"));
    }
    files::read_from(input)
}

/// The timeline of a trace. Prints a warning if the trace could not be read to its end.
pub(crate) fn timeline(path: &Path, recording: &Recording) -> Timeline {
    if let Some(damage) = recording.damage_in_words() {
        eprintln!("offlock: {}: {damage}", path.display());
    }
    let sorting = format!("sorting {} events", recording.events);
    progress::during(&sorting, None, |_| Timeline::of(recording))
}

/// Writes a file that the user has named, or standard output if the path is `-`.
pub(crate) fn write(
    path: &Path,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    let written = if path == Path::new("-") {
        files::write_to(io::stdout().lock(), content)
    } else {
        progress::during(&writing(path), None, |_| files::write_named(path, content))
    };
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(|error| Failure::with_file(path, &error)),
    }
}

/// Writes a file to the path that the user has named or, if there is none, beside the trace under a name that
/// is free. Prints where.
pub(crate) fn write_or_beside(
    named: Option<&Path>,
    trace: &Path,
    extension: &str,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<PathBuf, Failure> {
    let path = match named {
        Some(path) => write(path, content).map(|()| path.to_owned())?,
        None => {
            let path = trace.with_extension(extension);
            let written =
                progress::during(&writing(&path), None, |_| files::write_beside(trace, extension, content));
            written.map_err(|error| Failure::with_file(&path, &error))?
        }
    };
    say_where(&path);
    Ok(path)
}

/// Prints where something was written, unless that is standard output.
pub(crate) fn say_where(path: &Path) {
    if path != Path::new("-") {
        eprintln!("offlock: wrote {}", path.display());
    }
}

fn writing(path: &Path) -> String {
    format!("writing {}", path.display())
}
