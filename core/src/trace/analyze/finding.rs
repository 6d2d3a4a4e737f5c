//! One thing that a recording shows.

use serde::Serialize;

/// How much a finding matters.
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

/// One thing that a recording shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How much it matters.
    pub weight: Weight,
    /// What is the case.
    pub text: String,
    /// What to do about it, if anything.
    pub advice: Option<String>,
}
