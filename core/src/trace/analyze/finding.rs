//! A finding: a conclusion about a recording.

use serde::Serialize;

/// The kind of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Weight {
    /// Do not trust the numbers without reading this.
    Caveat,
    /// The lock costs time here.
    Problem,
    /// Good to know.
    Note,
}

/// A conclusion about a recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Its kind.
    pub weight: Weight,
    /// The conclusion.
    pub text: String,
    /// What to do about it, if anything.
    pub advice: Option<String>,
}
