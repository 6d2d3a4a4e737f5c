//! Tokenizers of models: byte pair encoding with what a model's files add to it.
//!
//! # How a text is encoded
//!
//! 1. `added.rs` finds the added tokens that are looked for in the text as it is.
//! 2. The text between them is normalized (`normalize.rs`), and the other added tokens are found.
//! 3. What is left is cut into pieces and encoded as by an [`Encoding`](super::Encoding): the same scanners,
//!    tables and caches.
//! 4. The tokens of the template go before and after it.
//!
//! The results are those of Hugging Face's `tokenizers`. `file.rs` reads a `tokenizer.json`, `tekken.rs`
//! Mistral's format, `ranks.rs` files of ranks; what they ask for that is not here is an error that names it.

mod added;
mod byte_level;
mod chunks;
mod file;
mod form;
mod normalize;
mod offsets;
mod padded;
mod parts;
mod pattern;
mod ranks;
mod reader;
mod settings;
mod stream;
mod tekken;
mod tokenizer;

pub use offsets::{Encoded, Unit};
pub use padded::{Layout, Padded, Side};
pub use tokenizer::{Options, Tokenizer};

use super::{Error, ErrorKind};

/// The error for a model that needs what there is not.
fn unsupported(missing: impl Into<String>) -> Error {
    ErrorKind::Unsupported { missing: shortened(missing.into()) }.into()
}

/// The error for a file that contradicts itself or its format.
fn invalid(message: impl Into<String>) -> Error {
    ErrorKind::BadVocabulary { message: shortened(message.into()) }.into()
}

/// The beginning of a message: it may have a token or a pattern of megabytes in it.
fn shortened(message: String) -> String {
    match message.char_indices().nth(300) {
        Some((end, _)) => format!("{}…", &message[..end]),
        None => message,
    }
}
