//! Reads JSON with an eye on the task: a vocabulary of 30 MB takes some tenths of a second.

use super::invalid;
use crate::Task;
use crate::tokens::Error;
use serde::de::DeserializeOwned;
use std::io::{self, BufReader, Read};

/// The bytes between two checks of the task.
const STRETCH: usize = 16 << 10;

struct Checked<'a> {
    bytes: &'a [u8],
    task: &'a Task<'a>,
}

impl Read for Checked<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.task.check().map_err(io::Error::other)?;
        self.bytes.read(buffer)
    }
}

/// The value that `json` describes.
pub(super) fn read<T: DeserializeOwned>(json: &[u8], task: &Task<'_>) -> Result<T, Error> {
    let bytes = json.strip_prefix(b"\xef\xbb\xbf").unwrap_or(json);
    let reader = BufReader::with_capacity(STRETCH, Checked { bytes, task });
    serde_json::from_reader(reader).map_err(|error| match task.check() {
        Err(stopped) => stopped.into(),
        Ok(()) => invalid(format!("the file is not a tokenizer's: {error}")),
    })
}
