//! The format of trace files: events, definitions, and their encoding.

pub(super) mod definition;
pub(super) mod event;
pub(super) mod wire;
