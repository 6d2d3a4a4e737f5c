//! What the extension knows of CRuby beyond what magnus wraps.

pub(crate) mod ractor;
pub(crate) mod raw;
pub(crate) mod thread;
