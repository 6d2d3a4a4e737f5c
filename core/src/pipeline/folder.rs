//! The folder of results: which shards are finished, and that one run at a time writes to it.
//!
//! ```text
//! out/part-0.bin, out/part-0.idx, …   results, complete
//! out/manifest.json                   all shards with sizes and checksums, once the run is complete
//! out/.offlock/settings.json          what the results were made with
//! out/.offlock/done/0.json, …         a finished shard
//! out/.offlock/unfinished/            files that are being written
//! out/.offlock/lock                   locked by the run that writes
//! ```
//!
//! A shard is finished by the file that says so, which is written after its results are in their places and on the
//! disk. A run that is killed before that leaves a shard that the next one makes anew, under the same names.

use std::fs::{self, File, TryLockError};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::error::{Error, ErrorKind};
use super::output::synced;
use super::shard::Shard;
use super::summary::{Done, Summary, Totals, Written};

pub(super) struct Folder {
    path: PathBuf,
    /// The lock is released when the file is closed, however the process ends.
    _lock: File,
    /// How many files were written here.
    records: AtomicU64,
}

impl Folder {
    /// Opens the folder for a run with these settings, and creates it if there is none.
    pub(super) fn open(path: &Path, settings: &Value, resume: bool) -> Result<Self, Error> {
        let wrong = |error: io::Error| Error::new(path, error);
        check_is_ours(path)?;
        fs::create_dir_all(path.join(".offlock/done")).map_err(wrong)?;
        let folder = Self { path: path.to_owned(), _lock: lock(path)?, records: AtomicU64::new(0) };
        let unfinished = folder.unfinished();
        if unfinished.exists() {
            fs::remove_dir_all(&unfinished).map_err(wrong)?;
        }
        fs::create_dir_all(&unfinished).map_err(wrong)?;
        if folder.has_results().map_err(wrong)? {
            let earlier = folder.read("settings.json").map_err(wrong)?.unwrap_or_default();
            folder.check_settings(&earlier, settings, resume)?;
        } else {
            folder.write(".offlock/settings.json", settings).map_err(wrong)?;
        }
        Ok(folder)
    }

    fn has_results(&self) -> io::Result<bool> {
        Ok(fs::read_dir(self.path.join(".offlock/done"))?.next().is_some())
    }

    fn check_settings(&self, earlier: &Value, settings: &Value, resume: bool) -> Result<(), Error> {
        let invalid = |message| Error::new(&self.path, ErrorKind::Invalid { message });
        if !resume {
            return Err(invalid(
                "the folder has the results of an earlier run; resume it, or name another folder".to_owned(),
            ));
        }
        let differs = |name: &&String| earlier.get(name.as_str()) != settings.get(name.as_str());
        match settings.as_object().and_then(|settings| settings.keys().find(differs)) {
            None => Ok(()),
            Some(name) => {
                let (earlier, now) = (&earlier[name], &settings[name]);
                Err(invalid(format!(
                    "the results in the folder were made with another {name}: {earlier}, not {now}"
                )))
            }
        }
    }

    /// Where files lie until they are complete.
    pub(super) fn unfinished(&self) -> PathBuf {
        self.path.join(".offlock/unfinished")
    }

    /// The folder.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// What an earlier run has made of a shard, if the shard and the results are as they were.
    pub(super) fn done(&self, shard: &Shard) -> Option<Done> {
        let done: Done = self.read(&record_of(shard)).ok()??;
        let is_there = |file: &Written| {
            fs::metadata(self.path.join(&file.name)).is_ok_and(|about| about.len() == file.size)
        };
        let same = done.path == shard.path && done.size == shard.size && done.modified == shard.modified;
        (same && done.files.iter().all(is_there)).then_some(done)
    }

    /// Notes that a shard is finished.
    pub(super) fn finish(&self, shard: &Shard, done: &Done) -> io::Result<()> {
        self.write(&format!(".offlock/{}", record_of(shard)), done)
    }

    /// Writes the list of all results, and removes what only an unfinished run needs.
    pub(super) fn complete(&self, settings: &Value, summary: &Summary) -> io::Result<()> {
        let Totals { documents, bytes, tokens, errors, .. } = summary.totals();
        let manifest = json!({
            "settings": settings,
            "totals": { "documents": documents, "bytes": bytes, "tokens": tokens, "errors": errors },
            "shards": summary.shards,
        });
        self.write("manifest.json", &manifest)?;
        fs::remove_dir_all(self.unfinished())
    }

    fn read<T: DeserializeOwned>(&self, name: &str) -> io::Result<Option<T>> {
        match fs::read(self.path.join(".offlock").join(name)) {
            Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes a file below the folder so that its name always stands for a whole one.
    fn write(&self, name: &str, value: &impl Serialize) -> io::Result<()> {
        let number = self.records.fetch_add(1, Ordering::Relaxed);
        let unfinished = self.unfinished().join(format!("record-{number}.json"));
        let mut file = BufWriter::new(File::create(&unfinished)?);
        serde_json::to_writer_pretty(&mut file, value)?;
        file.flush()?;
        file.get_ref().sync_all()?;
        let place = self.path.join(name);
        let parent = place.parent().unwrap_or(&self.path);
        fs::create_dir_all(parent)?;
        fs::rename(&unfinished, &place)?;
        synced(parent)
    }
}

/// The file that says that a shard is finished.
fn record_of(shard: &Shard) -> String {
    format!("done/{}.json", shard.name)
}

/// A folder with other files may hold some that results would overwrite.
fn check_is_ours(path: &Path) -> Result<(), Error> {
    let is_other = !path.join(".offlock").exists()
        && fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some());
    if !is_other {
        return Ok(());
    }
    let message = "the folder has other files; name an empty or a new one".to_owned();
    Err(Error::new(path, ErrorKind::Invalid { message }))
}

/// Locks the folder for this run.
fn lock(path: &Path) -> Result<File, Error> {
    let wrong = |error: io::Error| Error::new(path, error);
    let file = File::create(path.join(".offlock/lock")).map_err(wrong)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            let message = "another run writes to this folder".to_owned();
            Err(Error::new(path, ErrorKind::Invalid { message }))
        }
        Err(TryLockError::Error(error)) => Err(wrong(error)),
    }
}
