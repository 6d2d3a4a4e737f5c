//! What a trace consists of, and the bytes it is written as.

pub(super) mod definition;
pub(super) mod event;
pub(super) mod wire;
