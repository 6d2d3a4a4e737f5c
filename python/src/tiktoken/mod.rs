//! The native half of `offlock.tiktoken`.

pub(crate) mod chunks;
pub(crate) mod decode;
pub(crate) mod encode;
mod error;
pub(crate) mod ids;
mod methods;
pub(crate) mod packed;
mod special;
pub(crate) mod stream;
pub(crate) mod tokenizer;
