//! The options that control how objects are built, and the limits of a message.

use offlock_core::msgpack::Limits;

use crate::cruby::{Hash, Objects};

/// The maximum depth of nesting, as in msgpack.
pub(super) const MAX_DEPTH: usize = 128;

/// The limits of a message: those of the format, apart from the depth.
pub(super) const LIMITS: Limits = Limits::depth(MAX_DEPTH);

/// The options that control how objects are built.
#[derive(Clone, Copy, Default)]
pub(super) struct Options {
    pub(super) symbolize_keys: bool,
    pub(super) freeze: bool,
    pub(super) allow_unknown_ext: bool,
    pub(super) key_cache: bool,
}

impl Options {
    /// Reads the options that control how objects are built.
    pub(super) fn from(objects: &Objects, options: Option<Hash>) -> Self {
        if options.is_none() {
            return Self::default();
        }
        let is_set = |name| objects.option(options, name).is_true();
        Self {
            symbolize_keys: is_set(c"symbolize_keys"),
            freeze: is_set(c"freeze"),
            allow_unknown_ext: is_set(c"allow_unknown_ext"),
            key_cache: is_set(c"key_cache"),
        }
    }
}
