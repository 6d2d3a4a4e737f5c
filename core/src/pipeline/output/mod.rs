//! Files of tokens in the formats of training programs, one file per format.
//!
//! Each shard gets files of its own. They are written in a folder of unfinished files and moved to their places
//! when the shard is complete, so what stands there is whole.

mod datatrove;
mod dolma;
mod llmc;
mod mds;
mod megatron;
mod nanogpt;
mod parquet;
mod unfinished;
mod width;
mod writer;

pub(super) use unfinished::{create_folder, synced};
pub(super) use writer::{Target, Writer};

use std::io;

use super::error::ErrorKind;
use width::SIXTEEN_BITS;

/// A format of files of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// Megatron-LM's indexed dataset: `NAME.bin` and `NAME.idx`.
    Megatron,
    /// Hugging Face datatrove: `NAME.ds`, `NAME.ds.index` and `NAME.ds.metadata`.
    Datatrove,
    /// llm.c: `NAME.bin` with a header of 256 integers.
    Llmc,
    /// nanoGPT: `NAME.bin`, 16-bit numbers and nothing else.
    Nanogpt,
    /// Dolma: `NAME.npy`, which is numbers and nothing else, and `NAME.csv.gz`.
    Dolma,
    /// MosaicML Streaming: `NAME/shard.00000.mds`, …, and `NAME/index.json`.
    Mds,
    /// Hugging Face datasets, and programs that read tables: `NAME.parquet`, with the column `input_ids`.
    Parquet,
}

/// Where the token that separates documents goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Eos {
    /// After each document.
    Append,
    /// Before each document.
    Prepend,
    /// Nowhere.
    None,
}

impl Eos {
    /// All places with their names.
    pub const NAMES: [(&'static str, Self); 3] =
        [("append", Self::Append), ("prepend", Self::Prepend), ("none", Self::None)];
}

impl Output {
    /// All formats with their names.
    pub const NAMES: [(&'static str, Self); 7] = [
        ("megatron", Self::Megatron),
        ("datatrove", Self::Datatrove),
        ("llmc", Self::Llmc),
        ("nanogpt", Self::Nanogpt),
        ("dolma", Self::Dolma),
        ("mds", Self::Mds),
        ("parquet", Self::Parquet),
    ];

    /// The name.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, output)| *output == self).map_or("", |(name, _)| name)
    }

    /// Where the format's own writer puts the token that separates documents.
    pub fn usual_eos(self) -> Eos {
        match self {
            Self::Llmc => Eos::Prepend,
            _ => Eos::Append,
        }
    }

    /// Whether the files can hold documents without tokens.
    pub(super) fn holds_empty_documents(self) -> bool {
        self != Self::Mds
    }

    /// Whether the files mention the documents' names.
    pub(super) fn names_documents(self) -> bool {
        matches!(self, Self::Dolma | Self::Parquet)
    }

    /// The name of the column of tokens, if the other columns of a table are kept beside it.
    pub(super) fn keeps_columns_beside(self) -> Option<&'static str> {
        (self == Self::Parquet).then_some(parquet::COLUMN)
    }

    /// Checks that the format can hold the tokens of a vocabulary.
    pub(super) fn check_vocabulary(self, n_vocab: usize) -> Result<(), ErrorKind> {
        if self != Self::Nanogpt || n_vocab <= SIXTEEN_BITS {
            return Ok(());
        }
        let message = format!("nanoGPT's files hold 16-bit numbers, and the vocabulary has {n_vocab} tokens");
        Err(ErrorKind::Invalid { message })
    }

    /// Begins the files of a shard.
    pub(super) fn begin(self, target: &Target, model: &str, n_vocab: usize) -> io::Result<Box<dyn Writer>> {
        Ok(match self {
            Self::Megatron => Box::new(megatron::Files::begin(target, n_vocab)?),
            Self::Datatrove => Box::new(datatrove::Files::begin(target, model, n_vocab)?),
            Self::Llmc => Box::new(llmc::Files::begin(target, n_vocab)?),
            Self::Nanogpt => Box::new(nanogpt::Files::begin(target)?),
            Self::Dolma => Box::new(dolma::Files::begin(target, n_vocab)?),
            Self::Mds => Box::new(mds::Files::begin(target, n_vocab)?),
            Self::Parquet => Box::new(parquet::Files::begin(target)?),
        })
    }
}
