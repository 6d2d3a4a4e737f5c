//! Reading traces and writing results, with errors that name the file.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use offlock_core::trace::{Recording, Timeline};

use crate::{Failure, progress};

/// Reads a trace. If it is damaged, what could be read of it is returned and a warning printed.
pub(crate) fn read(path: &Path) -> Result<(Recording, Timeline), Failure> {
    let bytes = std::fs::read(path).map_err(|error| Failure::with_file(path, &error))?;
    let reading = format!("reading {}", path.display());
    let recording =
        progress::during(&reading, Some(bytes.len() as u64), |task| Recording::read(&bytes, task));
    let recording = recording.map_err(|error| Failure::with_file(path, &error))?;
    if let Some(damage) = recording.damage {
        eprintln!("offlock: {}: {damage}", path.display());
    }
    let sorting = format!("sorting {} events", recording.events);
    let timeline = progress::during(&sorting, None, |_| Timeline::of(&recording));
    Ok((recording, timeline))
}

/// Writes a file, or standard output if the path is `-`.
pub(crate) fn write(
    path: &Path,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    let written = if path == Path::new("-") {
        write_to(io::stdout().lock(), content)
    } else {
        let writing = format!("writing {}", path.display());
        progress::during(&writing, None, |_| File::create(path).and_then(|file| write_to(file, content)))
    };
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(|error| Failure::with_file(path, &error)),
    }
}

fn write_to(out: impl Write, content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 16, out);
    content(&mut out)?;
    out.flush()
}
