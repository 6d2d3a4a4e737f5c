//! The encoders that are compared.

use fastokens::Tokenizer;
use offlock_core::Task;
use offlock_core::tokens::model::{self, Options};
use offlock_core::tokens::{self, Encoding};
use std::fs;
use std::path::Path;

/// Their names in the results.
pub(crate) const NAMES: [&str; 2] = ["offlock", "fastokens"];

/// An encoder, ready to use.
pub(crate) enum Contestant {
    Offlock(&'static Encoding),
    Fastokens(Box<Tokenizer>),
    OfflockModel(Box<model::Tokenizer>),
    FastokensModel(Box<Tokenizer>),
}

impl Contestant {
    /// Both with the model in a folder.
    pub(crate) fn both_with_model(folder: &Path) -> [Self; 2] {
        let path = folder.join("tokenizer.json");
        let json = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let ours = model::Tokenizer::from_json(&json, &Task::new()).expect("a model that offlock reads");
        let peer = Tokenizer::from_file(&path).expect("a model that the peer reads");
        [Self::OfflockModel(Box::new(ours)), Self::FastokensModel(Box::new(peer))]
    }

    /// Both with a public encoding, in the order of their names.
    pub(crate) fn both(encoding: &str) -> [Self; 2] {
        let ours = tokens::get(encoding).expect("a public encoding");
        let ranks: Vec<(Vec<u8>, u32)> = ours.ranks().map(|(bytes, token)| (bytes.to_vec(), token)).collect();
        let config = match encoding {
            "cl100k_base" => fastokens::TiktokenConfig::cl100k_base(),
            _ => fastokens::TiktokenConfig::o200k_base(),
        };
        let peer = Tokenizer::from_tiktoken_ranks(&ranks, config).expect("the ranks of a public encoding");
        [Self::Offlock(ours), Self::Fastokens(Box::new(peer))]
    }

    /// The tokens of `text`, without special tokens.
    #[inline(never)]
    pub(crate) fn encode(&self, text: &str) -> Vec<u32> {
        match self {
            Self::Offlock(encoding) => {
                encoding.encode_ordinary(text, &Task::new()).expect("a text is encoded")
            }
            Self::Fastokens(tokenizer) => tokenizer.encode_ordinary(text).expect("a text is encoded"),
            Self::OfflockModel(tokenizer) => {
                let options = Options { add_special_tokens: false, split_special_tokens: false };
                tokenizer.encode(text, options, &Task::new()).expect("a text is encoded")
            }
            Self::FastokensModel(tokenizer) => {
                tokenizer.encode_with_special_tokens(text, false).expect("a text is encoded")
            }
        }
    }
}
