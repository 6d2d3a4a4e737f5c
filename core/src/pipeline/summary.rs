//! What a run found out about its shards.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// How many documents there are of each length, in tokens.
///
/// The sum of distinct lengths is at most the number of all tokens. So a trillion tokens have at most 1.4 million
/// distinct lengths, and all are kept: percentiles are exact.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Lengths(BTreeMap<u64, u64>);

impl Lengths {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn add(&mut self, length: u64) {
        *self.0.entry(length).or_default() += 1;
    }

    pub(super) fn merge(&mut self, other: &Self) {
        for (&length, &documents) in &other.0 {
            *self.0.entry(length).or_default() += documents;
        }
    }

    /// The least length that at least `percent` of the documents do not exceed; 0 if there is none.
    pub fn percentile(&self, percent: f64) -> u64 {
        let all: u64 = self.0.values().sum();
        let wanted = (all as f64 * percent / 100.0).ceil().max(1.0) as u64;
        let mut seen = 0;
        let reached = self.0.iter().find(|&(_, documents)| {
            seen += documents;
            seen >= wanted
        });
        reached.map_or(0, |(&length, _)| length)
    }

    /// The greatest length; 0 if there is none.
    pub fn longest(&self) -> u64 {
        self.0.last_key_value().map_or(0, |(&length, _)| length)
    }
}

/// The numbers of one shard, or of several together.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Documents that were encoded.
    pub documents: u64,
    /// Their texts' bytes.
    pub bytes: u64,
    /// Their tokens, with those put before and after documents.
    pub tokens: u64,
    /// Records that failed and were left out, and shards that could not be read to their end.
    pub errors: u64,
    /// The documents' lengths.
    #[serde(default, skip_serializing_if = "Lengths::is_empty")]
    pub lengths: Lengths,
}

impl Totals {
    fn merge(&mut self, other: &Self) {
        self.documents += other.documents;
        self.bytes += other.bytes;
        self.tokens += other.tokens;
        self.errors += other.errors;
        self.lengths.merge(&other.lengths);
    }
}

/// A file that was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// Its name in the folder.
    pub name: String,
    /// Its size in bytes.
    pub size: u64,
    /// The SHA-256 of its content, in hexadecimal digits.
    pub sha256: String,
}

/// What became of a shard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    /// The file that was read.
    pub path: PathBuf,
    /// Its size in bytes.
    pub size: u64,
    /// When it was last changed, in nanoseconds since 1970.
    pub modified: u64,
    /// Its numbers.
    pub totals: Totals,
    /// The files that were written.
    #[serde(default)]
    pub files: Vec<Written>,
}

/// What a run did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// The shards, in the order in which they were named.
    pub shards: Vec<Done>,
    /// The lengths of all documents; those of single shards are empty.
    pub lengths: Lengths,
    /// How many of them an earlier run had finished.
    pub resumed: usize,
}

impl Summary {
    /// The numbers of all shards together.
    pub fn totals(&self) -> Totals {
        let mut totals = Totals { lengths: self.lengths.clone(), ..Totals::default() };
        self.shards.iter().for_each(|shard| totals.merge(&shard.totals));
        totals
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_the_sorted_list() {
        let mut lengths = Lengths::default();
        [5, 1, 9, 5].into_iter().for_each(|length| lengths.add(length));
        let at = |percent| lengths.percentile(percent);
        assert_eq!((at(0.0), at(25.0), at(26.0), at(75.0), at(76.0), at(100.0)), (1, 1, 5, 5, 9, 9));
        assert_eq!((lengths.longest(), Lengths::default().longest()), (9, 0));
        assert_eq!(Lengths::default().percentile(50.0), 0);
    }
}
