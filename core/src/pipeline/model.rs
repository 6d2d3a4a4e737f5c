//! What encodes the texts: a public encoding, or the tokenizer of a model.

use std::fmt;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use super::error::{Error as PipelineError, ErrorKind};
use super::hex::hex;
use crate::Task;
use crate::tokens::model::{Options, Tokenizer};
use crate::tokens::{self, Encoding, Error, Specials, TokenId, models};

/// The files of a model's folder that are looked for, in this order.
const FILES: [&str; 2] = ["tokenizer.json", "tekken.json"];

/// What encodes the texts.
///
/// Special tokens' texts are ordinary text, because documents may hold anything. A tokenizer's template is not
/// applied.
pub enum Model {
    /// A public encoding.
    Encoding(&'static Encoding),
    /// The tokenizer of a model.
    Tokenizer {
        /// The tokenizer.
        tokenizer: Arc<Tokenizer>,
        /// The name that results mention.
        name: String,
    },
}

/// Where to get the tokenizer of a model.
#[derive(Clone)]
pub enum TokenizerSource<'a> {
    /// From its file, or the folder that has it.
    File(&'a Path),
    /// It is there already.
    Loaded(Arc<Tokenizer>),
}

/// How a model's tokenizer treats documents.
const OPTIONS: Options = Options { add_special_tokens: false, split_special_tokens: true };

impl Model {
    /// The public encoding of a name, the encoding of an OpenAI model, or the tokenizer of
    /// another; `o200k_base` if none of them is given.
    ///
    /// # Errors
    ///
    /// `Invalid` for an unknown name and for more than one choice; those of [`load`](Self::load).
    pub fn choose(
        encoding: Option<&str>,
        model: Option<&str>,
        tokenizer: Option<TokenizerSource<'_>>,
        task: &Task<'_>,
    ) -> Result<Self, PipelineError> {
        match (encoding, model, tokenizer) {
            (None, None, Some(TokenizerSource::File(path))) => Self::load(path, task),
            (None, None, Some(TokenizerSource::Loaded(tokenizer))) => {
                let name = format!("a tokenizer of {} tokens", tokenizer.vocab_size());
                Ok(Self::Tokenizer { tokenizer, name })
            }
            (None, Some(model), None) => match models::encoding_name_for_model(model) {
                Some(name) => Self::public(name),
                None => Err(unknown(model, "model")),
            },
            (None, None, None) => Self::public("o200k_base"),
            (Some(name), None, None) => Self::public(name),
            _ => {
                let message = "only one of encoding, model and tokenizer can be chosen".to_owned();
                Err(PipelineError::new(Path::new("the tokens"), ErrorKind::Invalid { message }))
            }
        }
    }

    fn public(name: &str) -> Result<Self, PipelineError> {
        let found = tokens::load(name).map_err(|error| PipelineError::new(Path::new(name), error))?;
        found.map(Self::Encoding).ok_or_else(|| unknown(name, "encoding"))
    }

    /// Reads the tokenizer of a model: a `tokenizer.json` or `tekken.json`, or the folder that has one. Nothing is
    /// downloaded.
    ///
    /// # Errors
    ///
    /// `Io` if the file cannot be read, `Tokens` if it is not the file of a byte-level BPE tokenizer.
    pub fn load(path: &Path, task: &Task<'_>) -> Result<Self, PipelineError> {
        let file = FILES.map(|name| path.join(name)).into_iter().find(|file| file.exists());
        let file = file.unwrap_or_else(|| path.to_owned());
        let content = fs::read(&file).map_err(|error| PipelineError::new(&file, error))?;
        let tokenizer =
            Tokenizer::from_json(&content, task).map_err(|error| PipelineError::new(&file, error))?;
        let name = path.display().to_string();
        Ok(Self::Tokenizer { tokenizer: Arc::new(tokenizer), name })
    }

    /// What tells tokenizers apart: the name of an encoding, or the checksum of a tokenizer's file.
    pub(super) fn identity(&self) -> String {
        match self {
            Self::Encoding(encoding) => encoding.name().to_owned(),
            Self::Tokenizer { tokenizer, .. } => hex(tokenizer.sha256()),
        }
    }

    /// Appends the tokens of `text`.
    pub(super) fn encode(&self, text: &str, tokens: &mut Vec<TokenId>, task: &Task<'_>) -> Result<(), Error> {
        match self {
            Self::Encoding(encoding) => encoding.encode_to(text, Specials::None, tokens, task),
            Self::Tokenizer { tokenizer, .. } => tokenizer.encode_to(text, OPTIONS, tokens, task),
        }
    }

    /// The name.
    pub fn name(&self) -> &str {
        match self {
            Self::Encoding(encoding) => encoding.name(),
            Self::Tokenizer { name, .. } => name,
        }
    }

    /// One more than the greatest token.
    pub fn n_vocab(&self) -> usize {
        match self {
            Self::Encoding(encoding) => encoding.n_vocab(),
            Self::Tokenizer { tokenizer, .. } => tokenizer.n_vocab(),
        }
    }

    /// The number of the special token `text`.
    pub fn special(&self, text: &str) -> Option<TokenId> {
        match self {
            Self::Encoding(encoding) => {
                encoding.specials().find(|(special, _)| *special == text).map(|(_, token)| token)
            }
            Self::Tokenizer { tokenizer, .. } => {
                tokenizer.added_tokens().find(|(added, ..)| *added == text).map(|(_, token, _)| token)
            }
        }
    }
}

fn unknown(name: &str, what: &str) -> PipelineError {
    let message = format!("this {what} is not known; choose an encoding or the file of a tokenizer");
    PipelineError::new(Path::new(name), ErrorKind::Invalid { message })
}

impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Model").field(&self.name()).finish()
    }
}
