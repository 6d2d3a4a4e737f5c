//! A file that is being written.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::Task;
use crate::pipeline::error::ErrorKind;
use crate::pipeline::hex::hex;
use crate::pipeline::summary::Written;

/// The bytes that are collected before they are written.
const BUFFER: usize = 256 << 10;

/// A file that lies in the folder of unfinished files until it is complete.
pub(in crate::pipeline) struct Unfinished {
    file: BufWriter<File>,
    path: PathBuf,
    name: String,
}

impl Unfinished {
    /// Begins a file at `path`, which is later called `name`.
    pub(super) fn create(path: PathBuf, name: String) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&path)?;
        Ok(Self { file: BufWriter::with_capacity(BUFFER, file), path, name })
    }

    /// Overwrites the beginning.
    pub(super) fn patch(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(bytes)?;
        self.file.seek(SeekFrom::End(0)).map(drop)
    }

    /// Calls `take` with one piece of the content after the other.
    pub(super) fn read_back(&mut self, take: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        self.file.flush()?;
        let file = self.file.get_mut();
        file.rewind()?;
        in_pieces(file, take)
    }

    /// Makes the file empty.
    pub(super) fn clear(&mut self) -> io::Result<()> {
        self.file.rewind()?;
        self.file.get_ref().set_len(0)
    }

    /// Removes a file that is no result.
    pub(super) fn remove(self) -> io::Result<()> {
        fs::remove_file(self.path)
    }

    /// Ends the writing. The file is closed, so that there may be any number of them.
    pub(super) fn complete(mut self) -> io::Result<Complete> {
        self.file.flush()?;
        Ok(Complete { path: self.path, name: self.name })
    }
}

/// A file that is complete and has to get its name.
pub(in crate::pipeline) struct Complete {
    path: PathBuf,
    name: String,
}

impl Complete {
    /// Writes everything to the disk and moves the file to its place below `folder`.
    pub(in crate::pipeline) fn finish(self, folder: &Path, task: &Task<'_>) -> Result<Written, ErrorKind> {
        let mut file = File::open(&self.path)?;
        let (mut sum, mut size) = (Sha256::new(), 0);
        in_pieces(&mut file, |piece| {
            sum.update(piece);
            size += piece.len() as u64;
            task.check().map_err(io::Error::other)
        })?;
        file.sync_all()?;
        let place = folder.join(&self.name);
        let parent = place.parent().unwrap_or(folder);
        create_folder(parent)?;
        fs::rename(&self.path, &place)?;
        synced(parent)?;
        Ok(Written { name: self.name, size, sha256: hex(&sum.finalize()) })
    }
}

/// Calls `take` with one piece after the other of what is left of a file.
fn in_pieces(file: &mut File, mut take: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
    let mut piece = vec![0; BUFFER];
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(()),
            length => take(&piece[..length])?,
        }
    }
}

impl Write for Unfinished {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Creates a folder and what is missing above it, so that they are there after a crash of the system, too.
pub(in crate::pipeline) fn create_folder(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let above = path.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
    create_folder(above)?;
    match fs::create_dir(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists || !path.is_dir() => return Err(error),
        _ => {}
    }
    match synced(above) {
        // A folder that may be written but not read.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        result => result,
    }
}

/// Writes the names in a folder to the disk: a renamed file is safe only then.
pub(in crate::pipeline) fn synced(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_is_stopped_gives_no_file_its_name() {
        let folder = std::env::temp_dir().join(format!("offlock-unfinished-{}", std::process::id()));
        create_folder(&folder).unwrap();
        let (path, task) = (folder.join("unfinished"), Task::new());
        let mut file = Unfinished::create(path.clone(), "a/b/c.bin".to_owned()).unwrap();
        file.write_all(&[7; 3 * BUFFER]).unwrap();
        task.stop();
        let stopped = file.complete().unwrap().finish(&folder, &task).unwrap_err();
        assert_eq!(stopped, ErrorKind::Stopped);
        assert!(!folder.join("a").exists());
        let written = Complete { path, name: "a/b/c.bin".to_owned() }.finish(&folder, &Task::new()).unwrap();
        assert_eq!(
            (written.size, fs::read(folder.join("a/b/c.bin")).unwrap()),
            (786_432, vec![7; 3 * BUFFER])
        );
        fs::remove_dir_all(&folder).unwrap();
    }
}
