//! MosaicML Streaming's datasets: `NAME/shard.00000.mds`, …, and `NAME/index.json`.
//!
//! A sample is a document: the length of its column `tokens` in bytes as u32, and an array of one dimension: a
//! byte that says so and how wide the number of items is, that number, and the tokens, 16 bits each, or 32 if the
//! vocabulary has more than 65,536. A file has the number of samples as u32, their offsets and the end as u32, a
//! description of the columns in JSON, and the samples; it has at most 64 MB. The index describes all files.
//! Source: `streaming/base/format/mds/writer.py` and `encodings.py` of mosaicml-streaming 0.13.
//!
//! The samples are kept in a file until one is full, because their offsets come first.

use std::io::{self, Write};

use serde_json::{Value, json};

use super::unfinished::{Complete, Unfinished};
use super::width::Width;
use super::writer::{Target, Writer};
use crate::Task;
use crate::pipeline::documents::Document;
use crate::tokens::TokenId;

/// The most bytes of a file, the default of the format's own writer.
const SIZE_LIMIT: u64 = 1 << 26;

/// The most bytes of a document. The end of the last one in a file must be less than 2^32.
const LONGEST: u32 = 1 << 31;

pub(super) struct Files {
    target: Target,
    width: Width,
    columns: String,
    /// The samples of the next file, and their sizes.
    samples: Unfinished,
    sizes: Vec<u32>,
    /// The bytes of the next file so far, and the most that it may have.
    size: u64,
    limit: u64,
    complete: Vec<Complete>,
    index: Vec<Value>,
}

impl Files {
    pub(super) fn begin(target: &Target, n_vocab: usize) -> io::Result<Self> {
        let width = Width::for_vocabulary(n_vocab);
        let columns = python_json(&columns(width));
        Ok(Self {
            target: target.clone(),
            width,
            samples: target.create("samples")?,
            sizes: Vec::new(),
            size: size_without_samples(&columns),
            limit: SIZE_LIMIT,
            columns,
            complete: Vec::new(),
            index: Vec::new(),
        })
    }

    /// Writes the file of the samples that were collected.
    fn complete_file(&mut self) -> io::Result<()> {
        let name = format!("shard.{:05}.mds", self.complete.len());
        let mut file = self.target.create_below(&name)?;
        let count = self.sizes.len() as u32;
        file.write_all(&count.to_le_bytes())?;
        // One offset for each sample, and the end.
        let mut offset = 4 + 4 * (count + 1) + self.columns.len() as u32;
        file.write_all(&offset.to_le_bytes())?;
        for size in &self.sizes {
            offset += size;
            file.write_all(&offset.to_le_bytes())?;
        }
        file.write_all(self.columns.as_bytes())?;
        self.samples.read_back(|piece| file.write_all(piece))?;
        self.index.push(describe(self.width, &name, offset, count));
        self.complete.push(file.complete()?);
        self.samples.clear()?;
        self.sizes.clear();
        self.size = size_without_samples(&self.columns);
        Ok(())
    }
}

impl Writer for Files {
    fn write(&mut self, tokens: &[TokenId], _: &Document, _: &Task<'_>) -> io::Result<()> {
        let head = array_head(tokens.len())?;
        let array = head.len() as u64 + tokens.len() as u64 * self.width.bytes();
        // The length, the array, and the offset of the sample.
        let size = 4 + array + 4;
        if self.size + size > self.limit && !self.sizes.is_empty() {
            self.complete_file()?;
        }
        let array = u32::try_from(array).ok().filter(|array| *array <= LONGEST).ok_or_else(too_long)?;
        self.samples.write_all(&array.to_le_bytes())?;
        self.samples.write_all(&head)?;
        self.width.write(tokens, &mut self.samples)?;
        self.sizes.push(4 + array);
        self.size += size;
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> io::Result<Vec<Complete>> {
        if !self.sizes.is_empty() {
            self.complete_file()?;
        }
        let mut index = self.target.create_below("index.json")?;
        let described = json!({ "shards": self.index, "version": 2 });
        index.write_all(python_json(&described).as_bytes())?;
        self.samples.remove()?;
        self.complete.push(index.complete()?);
        Ok(self.complete)
    }
}

/// The bytes of a file that has no samples, as the format's own writer counts them.
fn size_without_samples(columns: &str) -> u64 {
    4 + 4 + columns.len() as u64
}

/// What comes before the items of an array: its number of dimensions, and that of its items.
fn array_head(items: usize) -> io::Result<Vec<u8>> {
    const ONE_DIMENSION: u8 = 1 << 2;
    match (u8::try_from(items), u16::try_from(items), u32::try_from(items)) {
        (Ok(0), ..) => Err(io::Error::other("MosaicML's format cannot hold a document without tokens")),
        (Ok(items), ..) => Ok(vec![ONE_DIMENSION, items]),
        (_, Ok(items), _) => Ok([&[ONE_DIMENSION | 1][..], &items.to_le_bytes()].concat()),
        (.., Ok(items)) => Ok([&[ONE_DIMENSION | 2][..], &items.to_le_bytes()].concat()),
        _ => Err(too_long()),
    }
}

fn too_long() -> io::Error {
    io::Error::other("a document is too long for MosaicML's format")
}

fn columns(width: Width) -> Value {
    let encoding = match width {
        Width::Two => "ndarray:uint16",
        Width::Four => "ndarray:uint32",
    };
    json!({
        "column_encodings": [encoding],
        "column_names": ["tokens"],
        "column_sizes": [null],
        "compression": null,
        "format": "mds",
        "hashes": [],
        "size_limit": SIZE_LIMIT,
        "version": 2,
    })
}

/// A file as the index describes it.
fn describe(width: Width, name: &str, bytes: u32, samples: u32) -> Value {
    let mut described = columns(width);
    described["raw_data"] = json!({ "basename": name, "bytes": bytes, "hashes": {} });
    described["samples"] = samples.into();
    described["zip_data"] = Value::Null;
    described
}

/// JSON with blanks after colons and commas, as Python's `json.dumps(value, sort_keys=True)` writes it.
fn python_json(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(python_json).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(entries) => {
            let mut keys: Vec<&String> = entries.keys().collect();
            keys.sort();
            let entries: Vec<String> =
                keys.iter().map(|&key| format!("\"{key}\": {}", python_json(&entries[key]))).collect();
            format!("{{{}}}", entries.join(", "))
        }
        scalar => scalar.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::error::Place;

    #[test]
    fn a_file_that_is_full_is_followed_by_another() {
        let folder = std::env::temp_dir().join(format!("offlock-mds-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let target =
            Target { folder: folder.clone(), index: 0, name: "a".to_owned(), source: folder.clone() };
        let mut files = Files::begin(&target, 1000).unwrap();
        let place = Place { number: 1, offset: 0, is_page: false };
        let document = Document { end: 0, bytes: 0, place, id: None, row: 0 };
        let columns = files.columns.len() as u64;
        // Room for the number, the end, two samples of 10 bytes and their offsets.
        files.limit = 8 + columns + 2 * (10 + 4);
        for token in 0..5 {
            files.write(&[token, token], &document, &Task::new()).unwrap();
        }
        let names: Vec<String> = Box::new(files)
            .finish()
            .unwrap()
            .into_iter()
            .map(|file| {
                let written = file.finish(&folder, &Task::new()).unwrap();
                format!("{} {}", written.name, written.size)
            })
            .collect();
        let full = 8 + columns + 2 * 14;
        let index = std::fs::read_to_string(folder.join("a/index.json")).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(names[0], format!("a/shard.00000.mds {full}"));
        assert_eq!(names[1], format!("a/shard.00001.mds {full}"));
        assert_eq!(names[2], format!("a/shard.00002.mds {}", full - 14));
        assert_eq!(names[3], format!("a/index.json {}", index.len()));
        assert_eq!(index.matches("\"samples\": 2").count(), 2);
        assert_eq!(index.matches("\"samples\": 1").count(), 1);
    }

    #[test]
    fn json_has_blanks_as_python_writes_them() {
        let value = json!({ "b": [1, null, "x"], "a": {}, "c": [] });
        assert_eq!(python_json(&value), r#"{"a": {}, "b": [1, null, "x"], "c": []}"#);
    }

    #[test]
    fn the_number_of_items_is_as_narrow_as_possible() {
        assert_eq!(array_head(255).unwrap(), [4, 255]);
        assert_eq!(array_head(256).unwrap(), [5, 0, 1]);
        assert_eq!(array_head(1 << 16).unwrap(), [6, 0, 0, 1, 0]);
        assert!(array_head(0).is_err());
    }
}
