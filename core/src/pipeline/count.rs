//! Counting tokens.

use super::error::Error;
use super::run::{Plan, Run};
use super::settings::Settings;
use super::shard::Shard;
use super::summary::Summary;
use crate::Task;

/// Counts the documents of `shards` and their tokens. With [`OnError::Report`], `report` is called with the error
/// of each record that is left out. The task advances by the bytes of the shards that were read.
///
/// # Errors
///
/// Those of [`ErrorKind`]; with [`OnError::Fail`] that of the first record that fails.
pub fn count(
    shards: &[Shard],
    settings: &Settings,
    report: &(dyn Fn(&Error) + Sync),
    task: &Task<'_>,
) -> Result<Summary, Error> {
    let run = Run {
        shards,
        format: settings.format,
        extraction: settings.extraction(),
        report,
        threads: settings.thread_count(),
        begin: &|_| Ok(Plan::Read(None)),
        finished: &|_, _| Ok(()),
    };
    run.run(task)
}
