//! The places of strings in a tuple or list.

use std::ops::Range;
use std::sync::Arc;

use offlock_core::Task;
use offlock_core::memory;
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
    pub(super) fn numbered(&self, numbers: Vec<u32>, task: &Task<'_>) -> Result<Vec<u32>, StringsError> {
        let mut next = numbers.iter().copied();
        match self {
            Self::All => Ok(numbers),
            Self::Nulls(count) => mapped(0..*count, task, |_| NONE),
            Self::Present(present) => mapped(0..present.len(), task, |place| {
                if present[place] { next.next().unwrap_or(NONE) } else { NONE }
            }),
            Self::Numbered(old) => {
                mapped(0..old.len(), task, |place| numbers.get(old[place] as usize).copied().unwrap_or(NONE))
            }
        }
    }
}

/// Elements between two checks of the task.
const STRETCH: usize = 1 << 16;

/// Parts of `range` that are short enough for a check of the task before each.
pub(super) fn stretches(range: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    range.clone().step_by(STRETCH).map(move |start| start..range.end.min(start.saturating_add(STRETCH)))
}

/// What `make` returns for each index of `range`.
#[inline]
pub(super) fn mapped<T>(
    range: Range<usize>,
    task: &Task<'_>,
    mut make: impl FnMut(usize) -> T,
) -> Result<Vec<T>, StringsError> {
    let mut made = memory::with_capacity(range.len())?;
    for stretch in stretches(range) {
        task.check()?;
        for index in stretch {
            made.push(make(index));
        }
    }
    Ok(made)
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
            Some(numbers) => Places::Numbered(Large::new(self.places.numbered(numbers, task)?).into()),
            None => self.places,
        };
        Ok(Self { source, places })
    }
}
