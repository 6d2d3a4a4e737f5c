//! Memory that is asked for, not taken for granted.
//!
//! Where an input decides how much is needed, running out of memory is an answer like any other: `Vec`'s own methods
//! would end the process. So such vectors grow by what is here, and [`OutOfMemory`] becomes the operation's error.

use std::collections::TryReserveError;
use std::fmt;

/// The system has no more memory to give, or not in one piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutOfMemory;

impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("out of memory")
    }
}

impl std::error::Error for OutOfMemory {}

impl From<TryReserveError> for OutOfMemory {
    fn from(_: TryReserveError) -> Self {
        Self
    }
}

/// An empty vector with room for `length` items.
pub fn with_room<T>(length: usize) -> Result<Vec<T>, OutOfMemory> {
    let mut vector = Vec::new();
    vector.try_reserve_exact(length)?;
    Ok(vector)
}

/// `length` times `item`.
pub fn filled<T: Clone>(item: T, length: usize) -> Result<Vec<T>, OutOfMemory> {
    let mut vector = with_room(length)?;
    vector.resize(length, item);
    Ok(vector)
}

/// A vector with the same items.
pub fn copied<T: Copy>(items: &[T]) -> Result<Vec<T>, OutOfMemory> {
    let mut vector = with_room(items.len())?;
    vector.extend_from_slice(items);
    Ok(vector)
}

/// All `parts`, one behind the other.
pub fn joined<T: Copy>(parts: &[&[T]]) -> Result<Vec<T>, OutOfMemory> {
    let mut vector = with_room(parts.iter().map(|part| part.len()).sum())?;
    parts.iter().for_each(|part| vector.extend_from_slice(part));
    Ok(vector)
}

/// What `items` gives, or its first failure.
pub fn collected<T, E: From<OutOfMemory>>(
    items: impl IntoIterator<Item = Result<T, E>>,
) -> Result<Vec<T>, E> {
    let items = items.into_iter();
    let mut vector = with_room(items.size_hint().0)?;
    for item in items {
        push(&mut vector, item?)?;
    }
    Ok(vector)
}

/// `Vec::push`.
#[inline]
pub fn push<T>(vector: &mut Vec<T>, item: T) -> Result<(), OutOfMemory> {
    if vector.len() == vector.capacity() {
        grow(vector, 1)?;
    }
    vector.push(item);
    Ok(())
}

/// `Vec::extend_from_slice`.
#[inline]
pub fn append<T: Copy>(vector: &mut Vec<T>, items: &[T]) -> Result<(), OutOfMemory> {
    reserve(vector, items.len())?;
    vector.extend_from_slice(items);
    Ok(())
}

/// Makes room for `more` items, and for as many as there are if that is more.
#[inline]
pub fn reserve<T>(vector: &mut Vec<T>, more: usize) -> Result<(), OutOfMemory> {
    if vector.capacity() - vector.len() < more { grow(vector, more) } else { Ok(()) }
}

/// Apart, so that what asks is small. Where there is no memory for twice as much as there is, a smaller step may still do.
#[cold]
#[inline(never)]
fn grow<T>(vector: &mut Vec<T>, more: usize) -> Result<(), OutOfMemory> {
    if vector.try_reserve(more).is_ok() {
        return Ok(());
    }
    let steps = std::iter::successors(Some(vector.len() / 2), |step| Some(step / 2));
    for step in steps.take_while(|&step| step > more) {
        if vector.try_reserve_exact(step).is_ok() {
            return Ok(());
        }
    }
    Ok(vector.try_reserve_exact(more)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// More than there are addresses.
    const TOO_MUCH: usize = isize::MAX as usize / 2;

    #[test]
    fn what_there_is_no_memory_for_is_an_error() {
        assert_eq!(with_room::<u64>(TOO_MUCH), Err(OutOfMemory));
        assert_eq!(filled(0_u64, TOO_MUCH), Err(OutOfMemory));
        let mut vector = vec![1_u64];
        assert_eq!(reserve(&mut vector, TOO_MUCH), Err(OutOfMemory));
        assert_eq!(vector, [1]);
    }

    #[test]
    fn vectors_grow_as_usual() {
        let mut vector = copied(&[1, 2]).unwrap();
        push(&mut vector, 3).unwrap();
        append(&mut vector, &[4, 5]).unwrap();
        assert_eq!(vector, [1, 2, 3, 4, 5]);
        assert_eq!(joined(&[&[1, 2][..], &[], &[3]]), Ok(vec![1, 2, 3]));
        assert_eq!(collected([Ok(1), Ok::<_, OutOfMemory>(2)]), Ok(vec![1, 2]));
        assert_eq!(filled(7, 3), Ok(vec![7; 3]));
    }

    #[test]
    fn the_first_failure_ends_a_collection() {
        assert_eq!(collected([Ok(1), Err(OutOfMemory), Ok(2)]), Err(OutOfMemory));
    }
}
