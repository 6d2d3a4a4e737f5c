//! The places of strings in a tuple or list.

use std::sync::Arc;

use offlock_core::Task;
use offlock_core::memory::{self, OutOfMemory};
use offlock_core::text::Pieces;

use super::error::StringsError;
use crate::large::Large;

/// What each place of a tuple or list holds.
#[derive(Debug, Clone)]
pub(crate) enum Places {
    /// The strings one by one.
    All,
    /// This many times `None`.
    Nulls(usize),
    /// The next string where true, `None` where false.
    Present(Arc<Large<Vec<bool>>>),
    /// The string with this number; `None` for [`NONE`].
    Numbered(Arc<Large<Vec<u32>>>),
}

/// In [`Places::Numbered`], stands for `None`.
pub(crate) const NONE: u32 = u32::MAX;

impl Places {
    /// The number of places when there are `strings` strings.
    pub(super) fn count(&self, strings: usize) -> usize {
        match self {
            Self::All => strings,
            Self::Nulls(count) => *count,
            Self::Present(present) => present.len(),
            Self::Numbered(numbers) => numbers.len(),
        }
    }

    /// For each place one of `numbers`, which has one number for each string, or [`NONE`].
    pub(super) fn numbered(&self, numbers: Vec<u32>) -> Result<Vec<u32>, OutOfMemory> {
        if let Self::All = self {
            return Ok(numbers);
        }
        let mut placed = memory::with_capacity(self.count(numbers.len()))?;
        let mut next = numbers.iter().copied();
        match self {
            Self::All => {}
            Self::Nulls(count) => placed.resize(*count, NONE),
            Self::Present(present) => {
                let mut number = |present: bool| if present { next.next() } else { None };
                placed.extend(present.iter().map(|&present| number(present).unwrap_or(NONE)));
            }
            Self::Numbered(old) => {
                placed.extend(old.iter().map(|&old| numbers.get(old as usize).copied().unwrap_or(NONE)));
            }
        }
        Ok(placed)
    }
}

/// Strings of one source, and their places.
pub(super) struct Batch<S> {
    pub(super) source: S,
    pub(super) places: Places,
}

impl<S> Batch<S> {
    pub(super) fn all(source: S) -> Self {
        Self { source, places: Places::All }
    }
}

impl<'a> Batch<Pieces<'a>> {
    /// One string for each piece. If many pieces are equal, they share one string.
    pub(super) fn of(pieces: Pieces<'a>, task: &Task<'_>) -> Result<Self, StringsError> {
        Self::all(pieces).without_repeats(task)
    }

    /// The same places. If many pieces are equal, they share one string.
    pub(super) fn without_repeats(self, task: &Task<'_>) -> Result<Self, StringsError> {
        let (source, numbers) = self.source.without_repeats(task)?;
        let places = match numbers {
            Some(numbers) => Places::Numbered(Large::new(self.places.numbered(numbers)?).into()),
            None => self.places,
        };
        Ok(Self { source, places })
    }
}
