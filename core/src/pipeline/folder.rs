//! The folder of results: which shards are finished, and that one run at a time writes to it, or the parts of one.
//!
//! ```text
//! out/part-0.bin, out/part-0.idx, …   results, complete
//! out/manifest.json                   all shards with sizes and checksums, once the run is complete
//! out/.offlock/settings.json          what the results were made with
//! out/.offlock/done/0.json, …         a finished shard
//! out/.offlock/unfinished/            files that are being written; each part has a folder of its own there
//! out/.offlock/lock                   locked by the run that writes; its parts share the lock
//! ```
//!
//! A shard is finished by the file that says so, which is written after its results are in their places and on the
//! disk. A run that is killed before that leaves a shard that the next one makes anew, under the same names. So two
//! parts may even make the same shard at a time, as when the process of the first was given up too early: their files
//! are equal, and each takes its place as a whole.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::error::{Error, ErrorKind};
use super::output::{create_folder, synced};
use super::shard::Shard;
use super::summary::{Done, Summary, Totals, Written};

/// What a run keeps for itself, and its parts.
const OURS: &str = ".offlock";
const SETTINGS: &str = ".offlock/settings.json";
const DONE: &str = ".offlock/done";
const UNFINISHED: &str = ".offlock/unfinished";
const MANIFEST: &str = "manifest.json";

pub(super) struct Folder {
    path: PathBuf,
    /// Where files lie until they are complete.
    unfinished: PathBuf,
    /// Whether others write to the folder as well.
    is_shared: bool,
    /// The lock is released when the file is closed, however the process ends.
    _lock: File,
    /// How many files were written here.
    records: AtomicU64,
}

impl Folder {
    /// Opens the folder for a run over `shards` with these settings, and creates it if there is none.
    pub(super) fn open(path: &Path, shards: &[Shard], settings: &Value, resume: bool) -> Result<Self, Error> {
        let wrong = |error: io::Error| Error::new(path, error);
        let folder = Self::new(path, lock(path, false)?, None);
        // Asked again, as another run may just have ended.
        let has_results = has_results(path).map_err(wrong)?;
        if has_results {
            folder.check_settings(settings, resume)?;
            folder.check_shards(shards)?;
        }
        folder.begin(has_results, settings).map_err(wrong)?;
        Ok(folder)
    }

    /// Opens the folder for a part of a run with these settings, and creates it if there is none.
    pub(super) fn join(path: &Path, settings: &Value) -> Result<Self, Error> {
        let wrong = |error: io::Error| Error::new(path, error);
        let lock = lock(path, true)?;
        let unfinished = folder_of_its_own(&path.join(UNFINISHED)).map_err(wrong)?;
        let folder = Self::new(path, lock, Some(unfinished));
        folder.propose(settings).map_err(wrong)?;
        folder.check_settings(settings, true)?;
        Ok(folder)
    }

    /// `unfinished` is the folder that a part has of its own.
    fn new(path: &Path, lock: File, unfinished: Option<PathBuf>) -> Self {
        Self {
            path: path.to_owned(),
            is_shared: unfinished.is_some(),
            unfinished: unfinished.unwrap_or_else(|| path.join(UNFINISHED)),
            _lock: lock,
            records: AtomicU64::new(0),
        }
    }

    /// Removes what an earlier run has not finished, and the list of its results.
    fn begin(&self, has_results: bool, settings: &Value) -> io::Result<()> {
        removed(fs::remove_dir_all(&self.unfinished))?;
        create_folder(&self.unfinished)?;
        removed(fs::remove_file(self.path.join(MANIFEST)))?;
        if has_results { Ok(()) } else { self.write(SETTINGS, settings) }
    }

    /// Writes down the settings unless another part has, perhaps with others. A link is made only if there is no file.
    fn propose(&self, settings: &Value) -> io::Result<()> {
        if self.path.join(SETTINGS).exists() {
            return Ok(());
        }
        let proposal = self.unfinished.join("settings.json");
        written(&proposal, settings)?;
        match fs::hard_link(&proposal, self.path.join(SETTINGS)) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => synced(&self.path.join(OURS)),
        }
    }

    /// Refuses results of shards that are not there any more: programs that read the folder would use them.
    fn check_shards(&self, shards: &[Shard]) -> Result<(), Error> {
        let known: HashSet<PathBuf> = shards.iter().map(|shard| self.path.join(record_of(shard))).collect();
        let mut folders = vec![self.path.join(DONE)];
        while let Some(folder) = folders.pop() {
            let entries = fs::read_dir(&folder).map_err(|error| Error::new(&folder, error))?;
            for entry in entries.flatten().map(|entry| entry.path()) {
                if entry.is_dir() {
                    folders.push(entry);
                } else if !known.contains(&entry) {
                    let name = entry.strip_prefix(self.path.join(DONE)).unwrap_or(&entry).with_extension("");
                    let message = format!(
                        "the folder has results of a shard that is not among those named: {}",
                        name.display()
                    );
                    return Err(Error::new(&self.path, ErrorKind::Invalid { message }));
                }
            }
        }
        Ok(())
    }

    fn check_settings(&self, settings: &Value, resume: bool) -> Result<(), Error> {
        let earlier: io::Result<Option<Value>> = self.read(SETTINGS);
        let earlier = earlier.and_then(|earlier| earlier.ok_or(io::ErrorKind::NotFound.into()));
        let earlier = earlier.map_err(|error| Error::new(&self.path.join(SETTINGS), error))?;
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
    pub(super) fn unfinished(&self) -> &Path {
        &self.unfinished
    }

    /// The folder.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// What an earlier run has made of a shard, if the shard and the results are as they were. If they are not,
    /// what it has made is removed, and the list that has it.
    pub(super) fn done(&self, shard: &Shard) -> io::Result<Option<Done>> {
        let record = record_of(shard);
        let done: Option<Done> = self.read(&record).unwrap_or_default();
        let is_there = |file: &Written| {
            fs::metadata(self.path.join(&file.name)).is_ok_and(|about| about.len() == file.size)
        };
        match done {
            Some(done)
                if done.size == shard.size
                    && done.modified == shard.modified
                    && done.files.iter().all(is_there) =>
            {
                // The shard's name tells which one it is; another run may call the file by another path.
                Ok(Some(Done { path: shard.path.clone(), ..done }))
            }
            done => {
                removed(fs::remove_file(self.path.join(MANIFEST)))?;
                removed(fs::remove_file(self.path.join(record)))?;
                for file in done.into_iter().flat_map(|done| done.files) {
                    removed(fs::remove_file(self.path.join(file.name)))?;
                }
                Ok(None)
            }
        }
    }

    /// Notes that a shard is finished.
    pub(super) fn finish(&self, shard: &Shard, done: &Done) -> io::Result<()> {
        self.write(&record_of(shard), done)
    }

    /// Writes the list of all results, and removes what only an unfinished run needs.
    pub(super) fn complete(&self, settings: &Value, summary: &Summary) -> io::Result<()> {
        let Totals { documents, bytes, tokens, errors, .. } = summary.totals();
        let manifest = json!({
            "settings": settings,
            "totals": { "documents": documents, "bytes": bytes, "tokens": tokens, "errors": errors },
            "shards": summary.shards,
        });
        self.write(MANIFEST, &manifest)?;
        fs::remove_dir_all(&self.unfinished)
    }

    fn read<T: DeserializeOwned>(&self, name: &str) -> io::Result<Option<T>> {
        match fs::read(self.path.join(name)) {
            Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes a file below the folder so that its name always stands for a whole one.
    fn write(&self, name: &str, value: &impl Serialize) -> io::Result<()> {
        let number = self.records.fetch_add(1, Ordering::Relaxed);
        let unfinished = self.unfinished.join(format!("record-{number}.json"));
        written(&unfinished, value)?;
        let place = self.path.join(name);
        let parent = place.parent().unwrap_or(&self.path);
        create_folder(parent)?;
        fs::rename(&unfinished, &place)?;
        synced(parent)
    }
}

impl Drop for Folder {
    /// What a part has not finished is of no use, and nobody else removes it before all parts are written.
    fn drop(&mut self) {
        if self.is_shared {
            let _ = fs::remove_dir_all(&self.unfinished);
        }
    }
}

/// Writes a file of JSON to the disk.
fn written(path: &Path, value: &impl Serialize) -> io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    serde_json::to_writer_pretty(&mut file, value)?;
    file.flush()?;
    file.get_ref().sync_all()
}

/// Makes a folder below `parent` that no other process has, on no machine.
fn folder_of_its_own(parent: &Path) -> io::Result<PathBuf> {
    create_folder(parent)?;
    let process = process::id();
    let mut number = 0;
    loop {
        let path = parent.join(format!("{process}-{number}"));
        match fs::create_dir(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            made => return made.map(|()| path),
        }
    }
}

/// The file that says that a shard is finished.
fn record_of(shard: &Shard) -> String {
    format!("{DONE}/{}.json", shard.name)
}

/// Whether the folder has anything besides what a run keeps for itself. That counts even if no shard is finished:
/// a run may have been killed in between.
fn has_results(path: &Path) -> io::Result<bool> {
    match fs::read_dir(path) {
        Ok(entries) => Ok(entries.flatten().any(|entry| entry.file_name() != OURS)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// That there was nothing to remove is no error.
fn removed(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

/// Locks the folder for this run, or with others for a part of it, and creates it if there is none.
fn lock(path: &Path, is_shared: bool) -> Result<File, Error> {
    let wrong = |error: io::Error| Error::new(path, error);
    if has_results(path).map_err(wrong)? && !path.join(SETTINGS).exists() {
        let message = "the folder has other files; name an empty or a new one".to_owned();
        return Err(Error::new(path, ErrorKind::Invalid { message }));
    }
    create_folder(&path.join(DONE)).map_err(wrong)?;
    let mut options = OpenOptions::new();
    // Network file systems demand both: to write for a lock of one's own, to read for a shared one.
    let options = options.read(true).write(true).create(true).truncate(true);
    let file = options.open(path.join(OURS).join("lock")).map_err(wrong)?;
    match if is_shared { file.try_lock_shared() } else { file.try_lock() } {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            let message = "another run writes to this folder".to_owned();
            Err(Error::new(path, ErrorKind::Invalid { message }))
        }
        Err(TryLockError::Error(error)) => Err(wrong(error)),
    }
}
