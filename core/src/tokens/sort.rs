//! Merge sort that checks a task: the sorts of the standard library cannot be stopped halfway.
//!
//! Bottom-up: runs of [`RUN`] items are sorted by the standard library, then neighbouring runs are merged,
//! twice as long each time. Two runs that are in order already are copied, so that sorted input takes linear
//! time. It takes up to twice the time of `sort_unstable` on random input, and memory for a second copy of
//! the items.

use super::Error;
use crate::{Task, memory};

/// The items that are sorted or merged between two checks of the task: some tenths of a millisecond.
const RUN: usize = 4096;

/// Sorts `items`; equal ones keep their order only within a run.
pub(super) fn sort<T: Copy + Ord>(items: &mut Vec<T>, task: &Task<'_>) -> Result<(), Error> {
    for run in items.chunks_mut(RUN) {
        task.check()?;
        run.sort_unstable();
    }
    let mut merged = memory::with_capacity(if items.len() > RUN { items.len() } else { 0 })?;
    let mut length = RUN;
    while length < items.len() {
        merged.clear();
        for pair in items.chunks(2 * length) {
            let (left, right) = pair.split_at(pair.len().min(length));
            merge(left, right, &mut merged, task)?;
        }
        std::mem::swap(items, &mut merged);
        length *= 2;
    }
    Ok(())
}

/// Appends the items of two sorted slices in order.
fn merge<T: Copy + Ord>(
    mut left: &[T],
    mut right: &[T],
    merged: &mut Vec<T>,
    task: &Task<'_>,
) -> Result<(), Error> {
    task.check()?;
    let is_in_order = left.last() <= right.first();
    while let ([a, after_a @ ..], [b, after_b @ ..]) = (left, right)
        && !is_in_order
    {
        if merged.len().is_multiple_of(RUN) {
            task.check()?;
        }
        if b < a {
            merged.push(*b);
            right = after_b;
        } else {
            merged.push(*a);
            left = after_a;
        }
    }
    merged.extend_from_slice(left);
    merged.extend_from_slice(right);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Numbers of a linear congruential generator.
    fn scattered(count: usize) -> Vec<u64> {
        let next = |last: &u64| Some(last.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
        std::iter::successors(Some(1), next).map(|number| number >> 40).take(count).collect()
    }

    proptest! {
        #[test]
        fn as_the_standard_library_sorts(count in 0..5 * RUN) {
            let mut items = scattered(count);
            let mut expected = items.clone();
            expected.sort_unstable();
            sort(&mut items, &Task::new()).unwrap();
            prop_assert_eq!(&items, &expected);
            sort(&mut items, &Task::new()).unwrap();
            prop_assert_eq!(items, expected);
        }
    }

    #[test]
    fn the_task_is_checked_all_along() {
        let checks = std::sync::atomic::AtomicUsize::new(0);
        let poll = |_| {
            checks.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            false
        };
        sort(&mut scattered(64 * RUN), &Task::with_poll(&poll)).unwrap();
        // 64 runs, and 64 pieces in each of six rounds of merging.
        assert!(checks.into_inner() >= 64 + 6 * 64);
    }
}
