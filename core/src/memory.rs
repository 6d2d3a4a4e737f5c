//! Allocation that returns an error instead of ending the process.
//!
//! `Vec`'s own methods abort the process if memory runs out. Where the input decides how much memory is
//! needed, an attacker or a mistake could end the process that way. Such vectors grow through the functions
//! of this module, and [`OutOfMemory`] becomes the operation's error, which the front ends raise as an
//! exception.
//!
//! ```
//! use offlock_core::memory;
//!
//! let mut bytes = memory::with_capacity(4)?;
//! memory::append(&mut bytes, b"off the lock")?;
//! assert_eq!(bytes, b"off the lock");
//! assert!(memory::with_capacity::<u64>(usize::MAX).is_err());
//! # Ok::<_, memory::OutOfMemory>(())
//! ```

use std::collections::TryReserveError;
use std::fmt;

/// The system cannot provide that much memory, or not in one piece.
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
///
/// # Errors
///
/// [`OutOfMemory`] if the allocation fails.
pub fn with_capacity<T>(length: usize) -> Result<Vec<T>, OutOfMemory> {
    let mut vector = Vec::new();
    vector.try_reserve_exact(length)?;
    Ok(vector)
}

/// A vector of `length` clones of `item`.
///
/// # Errors
///
/// [`OutOfMemory`] if the allocation fails.
pub fn filled<T: Clone>(item: T, length: usize) -> Result<Vec<T>, OutOfMemory> {
    let mut vector = with_capacity(length)?;
    vector.resize(length, item);
    Ok(vector)
}

/// A vector with the same items.
///
/// # Errors
///
/// [`OutOfMemory`] if the allocation fails.
pub fn copied<T: Copy>(items: &[T]) -> Result<Vec<T>, OutOfMemory> {
    let mut vector = with_capacity(items.len())?;
    vector.extend_from_slice(items);
    Ok(vector)
}

/// The concatenation of `parts`.
///
/// # Errors
///
/// [`OutOfMemory`] if the allocation fails.
pub fn joined<T: Copy>(parts: &[&[T]]) -> Result<Vec<T>, OutOfMemory> {
    let mut vector = with_capacity(parts.iter().map(|part| part.len()).sum())?;
    parts.iter().for_each(|part| vector.extend_from_slice(part));
    Ok(vector)
}

/// The items of `items`, or its first error.
///
/// # Errors
///
/// The first error of `items`, or [`OutOfMemory`] if an allocation fails.
pub fn collected<T, E: From<OutOfMemory>>(
    items: impl IntoIterator<Item = Result<T, E>>,
) -> Result<Vec<T>, E> {
    let items = items.into_iter();
    let mut vector = with_capacity(items.size_hint().0)?;
    for item in items {
        push(&mut vector, item?)?;
    }
    Ok(vector)
}

/// Appends an item, as `Vec::push` does.
///
/// # Errors
///
/// [`OutOfMemory`] if the allocation fails; the vector is unchanged.
#[inline]
pub fn push<T>(vector: &mut Vec<T>, item: T) -> Result<(), OutOfMemory> {
    if vector.len() == vector.capacity() {
        grow(vector, 1)?;
    }
    vector.push(item);
    Ok(())
}

/// Appends copies of items, as `Vec::extend_from_slice` does.
///
/// # Errors
///
/// [`OutOfMemory`] if the allocation fails; the vector is unchanged.
#[inline]
pub fn append<T: Copy>(vector: &mut Vec<T>, items: &[T]) -> Result<(), OutOfMemory> {
    reserve(vector, items.len())?;
    vector.extend_from_slice(items);
    Ok(())
}

/// Makes room for at least `more` items. Doubles the capacity if that is more, so that appending takes
/// amortized constant time.
///
/// # Errors
///
/// [`OutOfMemory`] if the allocation fails; the vector is unchanged.
#[inline]
pub fn reserve<T>(vector: &mut Vec<T>, more: usize) -> Result<(), OutOfMemory> {
    if vector.capacity() - vector.len() < more { grow(vector, more) } else { Ok(()) }
}

/// Not inlined, so that the callers stay small. If there is no memory for doubling the capacity, tries
/// smaller steps.
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
        assert_eq!(with_capacity::<u64>(TOO_MUCH), Err(OutOfMemory));
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
