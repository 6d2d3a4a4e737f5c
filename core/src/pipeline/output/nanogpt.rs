//! nanoGPT's files: `NAME.bin`, the tokens as 16-bit numbers and nothing else. Source:
//! `data/openwebtext/prepare.py` of nanoGPT.

use std::io;

use super::unfinished::{Complete, Unfinished};
use super::width::Width;
use super::writer::{Target, Writer};
use crate::Task;
use crate::pipeline::documents::Document;
use crate::tokens::TokenId;

pub(super) struct Files {
    tokens: Unfinished,
}

impl Files {
    pub(super) fn begin(target: &Target) -> io::Result<Self> {
        Ok(Self { tokens: target.create("bin")? })
    }
}

impl Writer for Files {
    fn write(&mut self, tokens: &[TokenId], _: &Document, _: &Task<'_>) -> io::Result<()> {
        Width::Two.write(tokens, &mut self.tokens)
    }

    fn finish(self: Box<Self>) -> io::Result<Vec<Complete>> {
        Ok(vec![self.tokens.complete()?])
    }
}
