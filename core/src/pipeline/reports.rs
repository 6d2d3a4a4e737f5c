//! The errors of a run whose caller looks at them afterwards.

use std::sync::Mutex;

use super::error::Error;
use crate::fork::lock;

/// Collects the first errors of records that are left out: its [`add`](Self::add) is the `report` of
/// [`count`](super::count) and [`write`](super::write) for callers that cannot be called from other threads.
#[derive(Debug, Default)]
pub struct Reports(Mutex<Vec<Error>>);

impl Reports {
    /// The most errors that are kept, because an input may have any number. [`Totals::errors`](super::Totals) counts
    /// all.
    pub const LIMIT: usize = 1000;

    /// Keeps an error if there are fewer than [`LIMIT`](Self::LIMIT).
    pub fn add(&self, error: &Error) {
        let mut errors = lock(&self.0);
        if errors.len() < Self::LIMIT && errors.try_reserve(1).is_ok() {
            errors.push(error.clone());
        }
    }

    /// The errors that were kept.
    pub fn into_errors(self) -> Vec<Error> {
        self.0.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
