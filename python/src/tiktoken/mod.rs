//! The native half of `offlock.tiktoken`.

mod decode;
mod encode;
mod error;
mod ids;
mod methods;
pub(crate) mod packed;
mod special;
pub(crate) mod tokenizer;
