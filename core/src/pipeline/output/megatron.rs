//! Megatron-LM's indexed dataset: `NAME.bin` and `NAME.idx`.
//!
//! The first file has the tokens. The second one has a header of 34 bytes (`MMIDIDX\0\0`, the version 1 as u64, a
//! code of the tokens' type as u8, the number of sequences and that of documents plus one as u64), the length of
//! each sequence in tokens as i32, its offset in the first file in bytes as i64, and the index of the sequence
//! that each document begins with, as i64. Here each document is one sequence. Tokens are of the type uint16
//! (code 8) if the vocabulary has fewer than 65,500 of them, else int32 (code 4). Source:
//! `megatron/core/datasets/indexed_dataset.py` of Megatron-LM.
//!
//! The lengths are kept in a file until all are known, so memory does not grow with the number of documents.

use std::io::{self, Write};

use super::unfinished::{Complete, Unfinished};
use super::width::Width;
use super::writer::{Target, Writer};
use crate::Task;
use crate::pipeline::documents::Document;
use crate::tokens::TokenId;

/// From this number of tokens on, Megatron-LM uses 32 bits.
const WIDE_FROM: usize = 65_500;

pub(super) struct Files {
    tokens: Unfinished,
    index: Unfinished,
    lengths: Unfinished,
    width: Width,
    documents: u64,
}

impl Files {
    pub(super) fn begin(target: &Target, n_vocab: usize) -> io::Result<Self> {
        Ok(Self {
            tokens: target.create("bin")?,
            index: target.create("idx")?,
            lengths: target.create("lengths")?,
            width: if n_vocab < WIDE_FROM { Width::Two } else { Width::Four },
            documents: 0,
        })
    }

    fn header(&self) -> Vec<u8> {
        let code = match self.width {
            Width::Two => 8,
            Width::Four => 4,
        };
        let mut header = b"MMIDIDX\0\0".to_vec();
        header.extend(1_u64.to_le_bytes());
        header.push(code);
        header.extend(self.documents.to_le_bytes());
        header.extend((self.documents + 1).to_le_bytes());
        header
    }

    fn write_index(&mut self) -> io::Result<()> {
        let header = self.header();
        let Self { index, lengths, width, documents, .. } = self;
        index.write_all(&header)?;
        lengths.read_back(|piece| index.write_all(piece))?;
        let mut offset = 0_u64;
        lengths.read_back(|piece| {
            for length in piece.as_chunks().0 {
                index.write_all(&offset.to_le_bytes())?;
                offset += u64::from(u32::from_le_bytes(*length)) * width.bytes();
            }
            Ok(())
        })?;
        (0..=*documents).try_for_each(|document| index.write_all(&document.to_le_bytes()))
    }
}

impl Writer for Files {
    fn write(&mut self, tokens: &[TokenId], _: &Document, _: &Task<'_>) -> io::Result<()> {
        let length = i32::try_from(tokens.len())
            .map_err(|_| io::Error::other("a document has more tokens than Megatron-LM's format can say"))?;
        self.lengths.write_all(&length.to_le_bytes())?;
        self.documents += 1;
        self.width.write(tokens, &mut self.tokens)
    }

    fn finish(mut self: Box<Self>) -> io::Result<Vec<Complete>> {
        self.write_index()?;
        self.lengths.remove()?;
        Ok(vec![self.tokens.complete()?, self.index.complete()?])
    }
}
