//! The format of trace files: events, definitions, code, and their encoding.

pub(super) mod code;
pub(super) mod definition;
pub(super) mod event;
pub(super) mod wire;
