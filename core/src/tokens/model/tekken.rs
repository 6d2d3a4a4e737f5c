//! Mistral's `tekken.json`: ranks in base64, a pattern, and special tokens in front.
//!
//! A file has more ranks than the vocabulary: only as many count as fit in `default_vocab_size` with the
//! special tokens, whose numbers come first. In a text special tokens are ordinary text, as in
//! mistral-common.

use super::reader::{self, Collect, Collected};
use super::tokenizer::Tokenizer;
use super::{invalid, unsupported};
use crate::memory::OutOfMemory;
use crate::task::Stretches;
use crate::tokens::model::ranks::base64;
use crate::tokens::split::Splitter;
use crate::tokens::strings::Strings;
use crate::tokens::vocabulary::Vocabulary;
use crate::tokens::{Error, TokenId};
use crate::{Task, memory};
use serde::Deserialize;
use std::sync::Arc;

#[derive(Deserialize)]
struct File {
    config: Config,
    vocab: Collected<Ranks>,
    special_tokens: Option<Collected<Vec<Special>>>,
}

#[derive(Deserialize)]
struct Config {
    pattern: String,
    default_vocab_size: usize,
    default_num_special_tokens: TokenId,
}

#[derive(Deserialize)]
struct Rank {
    rank: TokenId,
    token_bytes: String,
}

/// The tokens in base64, and their ranks.
#[derive(Default)]
struct Ranks {
    tokens: Strings,
    ranks: Vec<TokenId>,
}

impl Collect for Ranks {
    type Item = Rank;

    fn add(&mut self, Rank { rank, token_bytes }: Rank) -> Result<(), OutOfMemory> {
        self.tokens.push(token_bytes.as_bytes())?;
        memory::push(&mut self.ranks, rank)
    }
}

#[derive(Deserialize)]
struct Special {
    rank: TokenId,
    token_str: String,
}

/// The most special tokens. Mistral's files have 1000.
const MOST_SPECIALS: TokenId = 1 << 16;

/// The special tokens of files that do not list them.
const SPECIALS: [&str; 20] = [
    "<unk>",
    "<s>",
    "</s>",
    "[INST]",
    "[/INST]",
    "[AVAILABLE_TOOLS]",
    "[/AVAILABLE_TOOLS]",
    "[TOOL_RESULTS]",
    "[/TOOL_RESULTS]",
    "[TOOL_CALLS]",
    "[IMG]",
    "<pad>",
    "[IMG_BREAK]",
    "[IMG_END]",
    "[PREFIX]",
    "[MIDDLE]",
    "[SUFFIX]",
    "[SYSTEM_PROMPT]",
    "[/SYSTEM_PROMPT]",
    "[TOOL_CONTENT]",
];

impl Tokenizer {
    /// The tokenizer that Mistral's `tekken.json` describes.
    ///
    /// # Errors
    ///
    /// As [`from_json`](Self::from_json).
    pub(super) fn from_tekken(json: &[u8], task: &Task<'_>) -> Result<Self, Error> {
        let File { config, vocab, special_tokens } = reader::read(json, task)?;
        let first = config.default_num_special_tokens;
        let ordinary = config.default_vocab_size.checked_sub(first as usize);
        let (vocab, special_tokens) = (vocab.0?, special_tokens.map(|tokens| tokens.0).transpose()?);
        let ordinary = ordinary.filter(|&count| count <= vocab.ranks.len());
        let ordinary = ordinary.ok_or_else(|| invalid("default_vocab_size does not fit the vocabulary"))?;
        let mut ranks = memory::with_capacity(ordinary)?;
        let mut stretches = Stretches::of_items(task);
        for (index, (token, &rank)) in vocab.tokens.iter().zip(&vocab.ranks).take(ordinary).enumerate() {
            stretches.check(index)?;
            if rank as usize != index {
                return Err(invalid(format!("the rank {rank} stands at place {index}")));
            }
            let wrong = || invalid(format!("\"{}\" is not base64", token.escape_ascii()));
            ranks.push((base64(token)?.ok_or_else(wrong)?, rank.saturating_add(first)));
        }
        drop(vocab);
        let specials = specials(special_tokens, first)?;
        let begin = specials.iter().find(|(text, _)| text == "<s>").map(|&(_, id)| id);
        let vocabulary = Arc::new(Vocabulary::new(ranks, task)?);
        let splitter = Splitter::new(&config.pattern)?;
        let mut tokenizer = Self::assemble(splitter, vocabulary, Vec::new(), Vec::new(), Vec::new(), task)?;
        tokenizer.add_specials(specials);
        tokenizer.before = begin.into_iter().collect();
        Ok(tokenizer)
    }
}

/// The special tokens: those that are listed, and a filler for each other number below `count`.
fn specials(listed: Option<Vec<Special>>, count: TokenId) -> Result<Vec<(String, TokenId)>, Error> {
    if count > MOST_SPECIALS {
        return Err(unsupported(format!("{count} special tokens, more than {MOST_SPECIALS}")));
    }
    let listed = listed.unwrap_or_else(|| {
        let special = |(rank, text): (TokenId, &&str)| Special { rank, token_str: (*text).to_owned() };
        (0..).zip(&SPECIALS).map(special).collect()
    });
    if let Some(special) = listed.iter().find(|special| special.rank >= count) {
        return Err(invalid(format!("the special token {:?} has the number of a rank", special.token_str)));
    }
    let named = TokenId::try_from(listed.len()).unwrap_or(count);
    let listed = listed.into_iter().map(|special| (special.token_str, special.rank));
    Ok(listed.chain((named..count).map(|id| (format!("<SPECIAL_{id}>"), id))).collect())
}
