//! Reading traces and writing results, with errors that name the file.

use std::io::{self, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};

use offlock_core::trace::{Recording, Timeline, files};

use crate::{Failure, progress};

/// Reads a trace. If it is damaged, prints a warning and returns the part that is readable.
pub(crate) fn read(path: &Path) -> Result<(Recording, Timeline), Failure> {
    let recording = load(path)?;
    let timeline = timeline(path, &recording);
    Ok((recording, timeline))
}

/// Reads a trace as far as it is readable.
pub(crate) fn load(path: &Path) -> Result<Recording, Failure> {
    let bytes = bytes(path).map_err(|error| Failure::with_file(path, &error))?;
    let reading = format!("reading {}", path.display());
    let recording =
        progress::during(&reading, Some(bytes.len() as u64), |task| Recording::read(&bytes, task));
    recording.map_err(|error| Failure::with_file(path, &error))
}

/// The content of a file, or of standard input if the path is `-`.
fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    if path != Path::new("-") {
        return files::read(path);
    }
    let mut input = io::stdin().lock();
    if input.is_terminal() {
        return Err(io::Error::other("standard input is a terminal, not a trace"));
    }
    let mut bytes = Vec::new();
    input.read_to_end(&mut bytes).map(|_| bytes)
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
