//! llm.c's files: `NAME.bin`.
//!
//! A header of 256 numbers of 32 bits, of which three are used, and the tokens. The header begins with 20240520
//! and the version 1 for tokens of 16 bits, or with 20240801 and the version 7 for tokens of 32 bits; the number
//! of tokens follows. Source: `dev/data/data_common.py` of llm.c.

use std::io::{self, Write};

use super::unfinished::{Complete, Unfinished};
use super::width::Width;
use super::writer::{Target, Writer};
use crate::Task;
use crate::pipeline::documents::Document;
use crate::tokens::TokenId;

/// The size of the header in bytes.
const HEADER: usize = 1024;

pub(super) struct Files {
    tokens: Unfinished,
    width: Width,
    count: i32,
}

impl Files {
    pub(super) fn begin(target: &Target, n_vocab: usize) -> io::Result<Self> {
        let mut tokens = target.create("bin")?;
        tokens.write_all(&[0; HEADER])?;
        Ok(Self { tokens, width: Width::for_vocabulary(n_vocab), count: 0 })
    }
}

impl Writer for Files {
    fn write(&mut self, tokens: &[TokenId], _: &Document, _: &Task<'_>) -> io::Result<()> {
        let more = i32::try_from(tokens.len()).ok();
        self.count = more.and_then(|more| self.count.checked_add(more)).ok_or_else(|| {
            io::Error::other(
                "a file of llm.c's holds fewer than 2^31 tokens; cut the shard into smaller ones",
            )
        })?;
        self.width.write(tokens, &mut self.tokens)
    }

    fn finish(mut self: Box<Self>) -> io::Result<Vec<Complete>> {
        let (magic, version) = match self.width {
            Width::Two => (20_240_520_i32, 1_i32),
            Width::Four => (20_240_801, 7),
        };
        let header = [magic, version, self.count].map(i32::to_le_bytes);
        self.tokens.patch(header.as_flattened())?;
        Ok(vec![self.tokens.complete()?])
    }
}
