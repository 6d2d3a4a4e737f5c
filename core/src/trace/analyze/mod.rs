//! What a recording says: from its bytes to states, blame, numbers and findings.

pub(super) mod blame;
pub(super) mod compare;
pub(super) mod finding;
mod findings;
pub(super) mod recording;
mod summarize;
pub(super) mod summary;
mod table;
mod text;
pub(super) mod timeline;
mod units;
