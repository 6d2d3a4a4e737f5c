//! Text to tokens and back, exactly as tiktoken does it.
//!
//! An [`Encoding`] cuts text into pieces with a pattern, looks each piece up in its vocabulary, and splits the
//! pieces that are not there by byte pair encoding. [`get`] hands out the public encodings.

mod atoms;
mod batch;
mod bits;
mod builtin;
mod encoder;
mod encoding;
mod error;
mod memory;
mod merge;
pub mod models;
mod orderly;
mod packed;
mod runs;
mod seams;
mod short;
mod slots;
mod specials;
mod split;
mod table;
mod unstable;
mod vocabulary;

pub use builtin::{get, names};
pub use encoding::{Encoding, Truncated};
pub use error::{Error, ErrorKind};
pub use specials::Specials;

/// A token.
pub type TokenId = u32;
