//! Hugging Face datatrove's tokenized files: `NAME.ds`, `NAME.ds.index` and `NAME.ds.metadata`.
//!
//! The first file has the tokens, 16 bits each, or 32 if the vocabulary has more than 65,536. The index has the
//! end of each document in tokens, as u64. The last one is a text of three lines: the tokenizer's name and the
//! size of a token in bytes, the number of tokens, and that number rounded. Source: `TokenizedFile` in
//! `datatrove/pipeline/tokens/tokenizer.py` of datatrove 0.10.

use std::io::{self, Write};

use super::unfinished::{Complete, Unfinished};
use super::width::Width;
use super::writer::{Target, Writer};
use crate::Task;
use crate::pipeline::documents::Document;
use crate::tokens::TokenId;

pub(super) struct Files {
    tokens: Unfinished,
    index: Unfinished,
    metadata: Unfinished,
    model: String,
    width: Width,
    end: u64,
}

impl Files {
    pub(super) fn begin(target: &Target, model: &str, n_vocab: usize) -> io::Result<Self> {
        Ok(Self {
            tokens: target.create("ds")?,
            index: target.create("ds.index")?,
            metadata: target.create("ds.metadata")?,
            model: model.to_owned(),
            width: Width::for_vocabulary(n_vocab),
            end: 0,
        })
    }
}

impl Writer for Files {
    fn write(&mut self, tokens: &[TokenId], _: &Document, _: &Task<'_>) -> io::Result<()> {
        self.end += tokens.len() as u64;
        self.index.write_all(&self.end.to_le_bytes())?;
        self.width.write(tokens, &mut self.tokens)
    }

    fn finish(mut self: Box<Self>) -> io::Result<Vec<Complete>> {
        let (model, bytes, count) = (&self.model, self.width.bytes(), self.end);
        write!(self.metadata, "{model}|{bytes}\n{count}\n{}", rounded(count))?;
        Ok(vec![self.tokens.complete()?, self.index.complete()?, self.metadata.complete()?])
    }
}

/// The number with three digits and a unit, as `humanize.metric(count, unit="T")` of Python writes it.
fn rounded(count: u64) -> String {
    let exponent = count.checked_ilog10().unwrap_or(0);
    let thousands = exponent / 3;
    let value = count as f64 / 1000_f64.powi(thousands as i32);
    let prefix = ["", "k", "M", "G", "T", "P", "E"][thousands as usize];
    format!("{value:.*} {prefix}T", 2 - (exponent % 3) as usize)
}

#[cfg(test)]
mod tests {
    use super::rounded;

    #[test]
    fn counts_are_rounded_as_humanize_does() {
        for (count, text) in [
            (0, "0.00 T"),
            (7, "7.00 T"),
            (42, "42.0 T"),
            (999, "999 T"),
            (1_000, "1.00 kT"),
            (999_999, "1000 kT"),
            (1_551_234, "1.55 MT"),
            (15_000_000_000_000, "15.0 TT"),
        ] {
            assert_eq!(rounded(count), text);
        }
    }
}
