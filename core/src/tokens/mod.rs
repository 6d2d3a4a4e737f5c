//! Text to tokens and back, with the results of tiktoken.
//!
//! ```
//! use offlock_core::tokens::{self, Specials};
//! use offlock_core::Task;
//!
//! let encoding = tokens::get("o200k_base").unwrap();
//! let task = Task::new();
//! let tokens = encoding.encode("off the lock", Specials::None, &task)?;
//! assert_eq!(tokens, [2864, 290, 8109]);
//! assert_eq!(encoding.decode_bytes(&tokens, &task)?, b"off the lock");
//! assert_eq!(encoding.count("off the lock<|endoftext|>", Specials::All, &task)?, 4);
//! # Ok::<_, tokens::Error>(())
//! ```
//!
//! # How a text is encoded
//!
//! 1. `specials.rs` finds the special tokens that the caller allows, and cuts the text there.
//! 2. `split/` cuts the text between them into *pieces*, as the encoding's pattern demands: roughly, words. It does
//!    so for 64 bytes at a time, by bitmaps of the classes of characters (`split/bitmap/`).
//! 3. `encoder.rs` looks up 64 pieces at a time in the vocabulary (`table.rs`, `compact_map.rs`). In ordinary
//!    prose and code, 86 to 89% of the pieces are tokens; in mixed scripts, 53 to 67%. Once much text has been
//!    encoded, it first looks among the words that occur often (`words.rs`).
//! 4. The other pieces are split by byte pair encoding (BPE): join the two neighbours that form the token of
//!    lowest rank, the leftmost of equals, and repeat until no two neighbours form a token. `vocabulary.rs`
//!    tries these methods in order, all with the same result:
//!    - a cache of short pieces seen before (`cache.rs`),
//!    - runs of equal bytes (`runs.rs`),
//!    - pieces of up to 96 bytes and 32 parts: the plain algorithm in SIMD registers (`simd_merge.rs`), which
//!      starts from whole characters where it can (`char_seeds.rs`),
//!    - longer pieces: from left to right (`backtrack.rs`),
//!    - vocabularies that are not *orderly*: a heap of pairs (`merge.rs`).
//!
//! `model/` has the tokenizers of models, whose files list merges: `merge_list.rs` finds out whether some order
//! of the tokens has the same effect as the list, so that the methods above apply.
//!
//! A vocabulary is orderly if all 256 bytes are tokens and BPE joins every token that it makes from two
//! tokens of lower rank (`merges.rs`). The public encodings are. Time is linear in the length of the text for
//! orderly vocabularies, and at most n log n in the length of a piece for others.

mod backtrack;
mod batch;
mod beginnings;
mod bits;
mod boundary_ranks;
mod builtin;
mod cache;
mod capacity;
mod char_seeds;
mod chunks;
mod compact_map;
mod encoder;
mod encoding;
mod encoding_stream;
mod error;
mod gaps;
mod joins;
mod merge;
mod merge_list;
mod merges;
pub mod model;
pub mod models;
mod piece_key;
mod runs;
mod side_by_side;
mod simd_merge;
mod sort;
mod specials;
mod split;
mod stream;
mod strings;
mod table;
#[cfg(test)]
mod test_pieces;
mod unstable;
mod vocab_format;
mod vocabulary;
mod words;
mod words_first;

pub use builtin::{get, load, names};
pub use chunks::{Boundary, Chunk, ChunkOptions};
pub use encoding::{Encoding, Truncated};
pub use error::{Error, ErrorKind};
pub use specials::Specials;
pub use stream::{Fed, Stream};

/// A token.
pub type TokenId = u32;
