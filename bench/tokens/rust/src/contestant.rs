//! The encoders that are compared.

use fastokens::Tokenizer;
use offlock_core::Task;
use offlock_core::tokens::{self, Encoding};

/// Their names in the results.
pub(crate) const NAMES: [&str; 2] = ["offlock", "fastokens"];

/// An encoder, ready to use.
pub(crate) enum Contestant {
    Offlock(&'static Encoding),
    Fastokens(Box<Tokenizer>),
}

impl Contestant {
    /// Both, in the order of their names.
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
        }
    }
}
