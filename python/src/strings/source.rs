//! The sources of the characters of strings: pieces of a text, or arenas in which they were stored.

use std::borrow::Cow;

use offlock_core::Task;
use offlock_core::text::{Arena, Piece, Pieces};

use super::error::StringsError;

/// A source of characters.
pub(crate) trait StrSource {
    /// Calls `each` with the pieces, in order, until it fails. (Iterators of different types would pass each
    /// piece through memory, which waits for all pending writes.)
    fn for_each<E>(&self, each: impl FnMut(Piece<'_>) -> Result<(), E>) -> Result<(), E>;

    /// The piece with this number.
    fn piece(&self, number: usize) -> Piece<'_>;

    /// The number of pieces.
    fn count(&self) -> usize;

    /// The memory of characters that is freed with this source.
    fn owned_bytes(&self) -> usize;

    /// Calls `each` with the pieces in one arena after the other, until it fails.
    fn for_each_arena(
        &self,
        task: &Task<'_>,
        each: impl FnMut(&Arena) -> Result<(), StringsError>,
    ) -> Result<(), StringsError>;

    /// The pieces in arenas.
    fn stored(&self, task: &Task<'_>) -> Result<Cow<'_, [Arena]>, StringsError>;
}

impl StrSource for Pieces<'_> {
    #[inline]
    fn for_each<E>(&self, each: impl FnMut(Piece<'_>) -> Result<(), E>) -> Result<(), E> {
        Pieces::for_each(self, each)
    }

    fn piece(&self, number: usize) -> Piece<'_> {
        Pieces::piece(self, number)
    }

    fn count(&self) -> usize {
        self.len()
    }

    fn owned_bytes(&self) -> usize {
        Pieces::owned_bytes(self)
    }

    fn for_each_arena(
        &self,
        task: &Task<'_>,
        mut each: impl FnMut(&Arena) -> Result<(), StringsError>,
    ) -> Result<(), StringsError> {
        Arena::for_each(self, task, |arena| each(&arena))
    }

    fn stored(&self, task: &Task<'_>) -> Result<Cow<'_, [Arena]>, StringsError> {
        Ok(Arena::store(self, task)?.into())
    }
}

impl StrSource for &[Arena] {
    #[inline]
    fn for_each<E>(&self, mut each: impl FnMut(Piece<'_>) -> Result<(), E>) -> Result<(), E> {
        self.iter().try_for_each(|arena| arena.pieces().try_for_each(&mut each))
    }

    fn piece(&self, number: usize) -> Piece<'_> {
        let mut before = number;
        for arena in *self {
            match arena.stored().get(before) {
                Some(stored) => return arena.piece(*stored),
                None => before -= arena.stored().len(),
            }
        }
        unreachable!("there are fewer than {number} pieces")
    }

    fn count(&self) -> usize {
        self.iter().map(|arena| arena.stored().len()).sum()
    }

    fn owned_bytes(&self) -> usize {
        0
    }

    fn for_each_arena(
        &self,
        task: &Task<'_>,
        mut each: impl FnMut(&Arena) -> Result<(), StringsError>,
    ) -> Result<(), StringsError> {
        self.iter().try_for_each(|arena| {
            task.check()?;
            each(arena)
        })
    }

    fn stored(&self, _: &Task<'_>) -> Result<Cow<'_, [Arena]>, StringsError> {
        Ok((*self).into())
    }
}
