//! Text to tokens and back, exactly as tiktoken does it.
//!
//! An [`Encoding`] cuts text into pieces with a pattern, looks each piece up in its vocabulary, and splits the
//! pieces that are not there by byte pair encoding. [`get`] hands out the public encodings.

mod backtrack;
mod batch;
mod bits;
mod boundary_ranks;
mod builtin;
mod cache;
mod char_seeds;
mod compact_map;
mod encoder;
mod encoding;
mod error;
mod merge;
mod merges;
pub mod models;
mod runs;
mod simd_merge;
mod specials;
mod split;
mod table;
mod unstable;
mod vocab_format;
mod vocabulary;

pub use builtin::{get, load, names};
pub use encoding::{Encoding, Truncated};
pub use error::{Error, ErrorKind};
pub use specials::Specials;

/// A token.
pub type TokenId = u32;
