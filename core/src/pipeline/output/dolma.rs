//! Dolma's files: `NAME.npy` and `NAME.csv.gz`.
//!
//! The first one has the tokens, 16 bits each, or 32 if the vocabulary has more than 65,536, and no header,
//! despite its name. The second one has a row for each document: where its tokens begin and end, its id, the file
//! and the record it comes from. A document without an id gets one of the file's path and the record. Source: `dolma/tokenizer/memmap_writer.py` of dolma 1.2.1.

use std::io::{self, Write};

use sha2::{Digest, Sha256};

use super::unfinished::{Complete, Unfinished};
use super::width::Width;
use super::writer::{Target, Writer};
use crate::Task;
use crate::deflate::{self, Config, Deflater, Flush, Output};
use crate::pipeline::documents::Document;
use crate::pipeline::hex::hex;
use crate::tokens::TokenId;

/// gzip's format, for zlib.
const GZIP: i32 = 31;

/// The bytes of rows that are compressed at a time.
const ROWS: usize = 64 << 10;

pub(super) struct Files {
    tokens: Unfinished,
    index: Unfinished,
    rows: Vec<u8>,
    deflater: Deflater,
    source: String,
    /// What the ids of documents that have none begin with: the SHA-256 of the path.
    path_sum: String,
    width: Width,
    end: u64,
}

impl Files {
    pub(super) fn begin(target: &Target, n_vocab: usize) -> io::Result<Self> {
        Ok(Self {
            tokens: target.create("npy")?,
            index: target.create("csv.gz")?,
            rows: Vec::new(),
            deflater: Deflater::new(Config { wbits: GZIP, ..Config::default() }).map_err(io::Error::other)?,
            path_sum: hex(&Sha256::digest(target.source.to_string_lossy().as_bytes())),
            source: quoted(&target.source.to_string_lossy()),
            width: Width::for_vocabulary(n_vocab),
            end: 0,
        })
    }

    fn compress(&mut self, flush: Flush) -> io::Result<()> {
        let (mut rows, mut packed) = (&self.rows[..], Output::new());
        let compressed: Result<_, deflate::Error> =
            self.deflater.run(&mut rows, &mut packed, flush, &Task::new());
        compressed.map_err(io::Error::other)?;
        self.rows.clear();
        self.index.write_all(&packed.into_bytes())
    }
}

impl Writer for Files {
    fn write(&mut self, tokens: &[TokenId], document: &Document, _: &Task<'_>) -> io::Result<()> {
        let start = self.end;
        self.end += tokens.len() as u64;
        let number = document.place.number;
        let id = match &document.id {
            Some(id) => quoted(id),
            None => format!("{}-{number}", self.path_sum),
        };
        let (end, source) = (self.end, &self.source);
        write!(self.rows, "{start},{end},{id},{source},{number}\r\n")?;
        if self.rows.len() >= ROWS {
            self.compress(Flush::None)?;
        }
        self.width.write(tokens, &mut self.tokens)
    }

    fn finish(mut self: Box<Self>) -> io::Result<Vec<Complete>> {
        self.compress(Flush::Finish)?;
        Ok(vec![self.tokens.complete()?, self.index.complete()?])
    }
}

/// The field of a CSV file, quoted where it must be, as Python's `csv.writer` does.
fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\r', '\n']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn fields_are_quoted_where_they_must_be() {
        assert_eq!(quoted("a b"), "a b");
        assert_eq!(quoted("a,\"b\""), "\"a,\"\"b\"\"\"");
    }
}
