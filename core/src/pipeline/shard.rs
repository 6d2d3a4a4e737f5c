//! The files to read: their names, and what is in them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};

use super::error::{Error, ErrorKind};

/// What a shard's records are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Format {
    /// A JSON object on each line.
    Jsonl,
    /// One MessagePack map after another, or in one array.
    Msgpack,
    /// A text on each line.
    Lines,
    /// A text: the whole file.
    Text,
    /// A table, with a column of texts.
    Parquet,
}

impl Format {
    /// All formats with their names.
    pub const NAMES: [(&'static str, Self); 5] = [
        ("jsonl", Self::Jsonl),
        ("msgpack", Self::Msgpack),
        ("lines", Self::Lines),
        ("text", Self::Text),
        ("parquet", Self::Parquet),
    ];

    /// The name.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, format)| *format == self).map_or("", |(name, _)| name)
    }

    /// The format that a file's name implies.
    fn of_name(name: &str) -> Option<Self> {
        let (_, extension) = uncompressed(name).rsplit_once('.')?;
        match extension.to_ascii_lowercase().as_str() {
            "jsonl" | "ndjson" | "jsonlines" => Some(Self::Jsonl),
            "msgpack" | "mpk" => Some(Self::Msgpack),
            "log" => Some(Self::Lines),
            "txt" | "text" | "md" => Some(Self::Text),
            "parquet" => Some(Self::Parquet),
            _ => None,
        }
    }

    /// The format of a file that begins with these bytes, as far as they tell.
    pub(super) fn of_content(bytes: &[u8]) -> Option<Self> {
        let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace())?;
        match first {
            b'{' => Some(Self::Jsonl),
            // A map, or an array.
            0x80..=0x9f | 0xdc..=0xdf => Some(Self::Msgpack),
            _ => None,
        }
    }
}

/// A file to read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shard {
    /// The file.
    pub path: PathBuf,
    /// What results made from it are called: its path below the folder that was named, without the extensions.
    pub name: String,
    /// The format that the name implies.
    pub format: Option<Format>,
    /// Its size in bytes.
    pub size: u64,
    /// When it was last changed, in nanoseconds since 1970; 0 if the system does not say.
    pub modified: u64,
}

/// The shards that `paths` name. A folder stands for the files below it whose names imply a format, in the order
/// of their names; hidden ones, and links to folders, are left out.
///
/// # Errors
///
/// `Io` for what cannot be read; `Invalid` for a folder without shards, and for what is no regular file.
pub fn find(paths: &[PathBuf]) -> Result<Vec<Shard>, Error> {
    let mut shards = Vec::new();
    for path in paths {
        if path.is_dir() {
            let before = shards.len();
            below(path, path, &mut shards)?;
            if shards.len() == before {
                let message =
                    "no file in this folder has the name of a shard, such as part.jsonl.gz".to_owned();
                return Err(Error::new(path, ErrorKind::Invalid { message }));
            }
        } else {
            let folder = path.parent().unwrap_or(Path::new(""));
            shards.push(Shard::of(path, folder)?);
        }
    }
    Ok(shards)
}

/// Shards as bytes, from which another process gets the same ones, whatever has become of the folders meanwhile.
///
/// # Errors
///
/// `Invalid` for a path that is not UTF-8.
pub fn pack(shards: &[Shard]) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(shards).map_err(|error| not_packed(&error))
}

/// The shards that [`pack`] has packed.
///
/// # Errors
///
/// `Invalid` for other bytes.
pub fn unpack(bytes: &[u8]) -> Result<Vec<Shard>, Error> {
    serde_json::from_slice(bytes).map_err(|error| not_packed(&error))
}

fn not_packed(error: &serde_json::Error) -> Error {
    Error::new(Path::new("the shards"), ErrorKind::Invalid { message: error.to_string() })
}

fn below(folder: &Path, root: &Path, shards: &mut Vec<Shard>) -> Result<(), Error> {
    let wrong = |error: std::io::Error| Error::new(folder, error);
    let entries = fs::read_dir(folder).map_err(wrong)?;
    let mut entries = entries.collect::<Result<Vec<_>, _>>().map_err(wrong)?;
    entries.sort_unstable_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (name, path) = (entry.file_name(), entry.path());
        let name = name.to_string_lossy();
        if name.starts_with('.') {
            continue;
        }
        // Links to folders are not followed: they may lead back.
        if entry.file_type().map_err(wrong)?.is_dir() {
            below(&path, root, shards)?;
        } else if is_shard(&name) && !path.is_dir() && !is_manifest(&name, folder) {
            shards.push(Shard::of(&path, root)?);
        }
    }
    Ok(())
}

impl Shard {
    fn of(path: &Path, folder: &Path) -> Result<Self, Error> {
        let about = fs::metadata(path).map_err(|error| Error::new(path, error))?;
        if !about.is_file() {
            let message = "this is not a regular file".to_owned();
            return Err(Error::new(path, ErrorKind::Invalid { message }));
        }
        let name = path.strip_prefix(folder).unwrap_or(path).to_string_lossy();
        let modified = about.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        Ok(Self {
            path: path.to_owned(),
            name: bare(&name).to_owned(),
            format: Format::of_name(&name),
            size: about.len(),
            modified: modified.map_or(0, |time| time.as_nanos() as u64),
        })
    }
}

/// The name without the extension of a compression.
fn uncompressed(name: &str) -> &str {
    without_extension(name, |extension| matches!(extension, "gz" | "gzip" | "zst" | "zstd"))
}

/// The name without the extensions of a format and of a compression.
fn bare(name: &str) -> &str {
    let uncompressed = uncompressed(name);
    let is_known = |extension: &str| Format::of_name(&format!("x.{extension}")).is_some();
    without_extension(uncompressed, |extension| extension == "json" || is_known(extension))
}

/// The name without its extension if that is one of those meant. Something is left of the name.
fn without_extension(name: &str, is_meant: impl Fn(&str) -> bool) -> &str {
    match name.rsplit_once('.') {
        Some((rest, extension))
            if is_meant(&extension.to_ascii_lowercase()) && !rest.is_empty() && !rest.ends_with('/') =>
        {
            rest
        }
        _ => name,
    }
}

/// Whether a file of a folder is taken for a shard. What a `.json` holds, its content tells.
fn is_shard(name: &str) -> bool {
    Format::of_name(name).is_some() || uncompressed(name).to_ascii_lowercase().ends_with(".json")
}

/// Whether a file is the list of the results in its folder, which can be shards themselves.
fn is_manifest(name: &str, folder: &Path) -> bool {
    name == "manifest.json" && folder.join(".offlock").is_dir()
}

/// Refuses shards whose results would overwrite each other, or lie where no results belong.
pub(super) fn check_names(shards: &[Shard]) -> Result<(), Error> {
    let mut names: BTreeMap<&str, &Shard> = BTreeMap::new();
    for shard in shards {
        let invalid =
            |message: &str| Error::new(&shard.path, ErrorKind::Invalid { message: message.to_owned() });
        if shard.path.to_str().is_none() {
            return Err(invalid("the name is not UTF-8, so results cannot be named after it"));
        }
        if shard
            .name
            .split('/')
            .any(|part| matches!(part, "." | ".." | "manifest.json") || part.starts_with(".offlock"))
        {
            return Err(invalid("results cannot be named after this file; give it another name"));
        }
        if let Some(other) = names.insert(&shard.name, shard) {
            return Err(clash(shard, other));
        }
    }
    // A folder may have the name of another shard's results: a.bin/x.jsonl beside a.jsonl.
    for shard in shards {
        let folders = shard.name.match_indices('/').map(|(end, _)| &shard.name[..end]);
        let beginnings = folders.flat_map(|folder| folder.match_indices('.').map(|(end, _)| &folder[..end]));
        if let Some(other) = beginnings.filter_map(|name| names.get(name)).next() {
            return Err(clash(shard, other));
        }
    }
    Ok(())
}

fn clash(shard: &Shard, other: &Shard) -> Error {
    let message = format!(
        "results would have the same name as those of {}; give one of the files another name",
        other.path.display()
    );
    Error::new(&shard.path, ErrorKind::Invalid { message })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_imply_formats() {
        for (name, format, bare) in [
            ("a.jsonl.gz", Some(Format::Jsonl), "a"),
            ("a.b.NDJSON", Some(Format::Jsonl), "a.b"),
            ("x/a.msgpack.zst", Some(Format::Msgpack), "x/a"),
            ("access.log", Some(Format::Lines), "access"),
            ("book.txt", Some(Format::Text), "book"),
            ("train-00000-of-00002.parquet", Some(Format::Parquet), "train-00000-of-00002"),
            ("a.gz", None, "a"),
            ("part-00001", None, "part-00001"),
            ("A.JSONL.GZ", Some(Format::Jsonl), "A"),
            ("c4.00001-of-01024", None, "c4.00001-of-01024"),
            ("a.json.gz", None, "a"),
            (".gz", None, ".gz"),
        ] {
            assert_eq!((Format::of_name(name), super::bare(name)), (format, bare), "{name}");
        }
    }

    #[test]
    fn content_tells_where_the_name_does_not() {
        assert_eq!(Format::of_content(b"\n {\"text\": 1}"), Some(Format::Jsonl));
        assert_eq!(Format::of_content(b"\x81\xa4text"), Some(Format::Msgpack));
        assert_eq!(Format::of_content(b"text"), None);
        assert_eq!(Format::of_content(b""), None);
    }
}
