//! Shards of documents, counted, written and read without the lock.
//!
//! [`tokens`] has the runs over shards, [`batches`] the documents of a shard as Python sees them, and [`summary`] what a
//! run found out. The verbs that a program uses are in `offlock/pipeline.py`.

mod batches;
mod error;
mod file_name;
mod packed;
mod summary;
mod tokens;

use pyo3::pymodule;

/// The extension module `offlock._offlock.pipeline`.
#[pymodule]
pub(crate) mod pipeline {
    #[pymodule_export]
    use crate::pipeline::batches::{Batch, Batches};
    #[pymodule_export]
    use crate::pipeline::summary::{ShardSummary, Summary};
    #[pymodule_export]
    use crate::pipeline::tokens::{Shards, Tokens};
}
